package document

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/query"
)

// Filter is a parsed filter, for those who match documents of their own. It is safe for concurrent use.
type Filter struct{ f *query.Filter }

// ParseFilter parses a filter of MongoDB's query language.
func ParseFilter(filter any) (*Filter, error) {
	spec, err := toDocument(filter)
	if err != nil {
		return nil, err
	}
	f, err := query.Parse(spec, nil)
	return &Filter{f}, err
}

// Match reports whether a document matches.
func (f *Filter) Match(doc bson.Raw) (bool, error) { return f.f.Match(path.Document(doc)) }

// CheckBSON refuses bytes that are not a well-formed document: see MaxDepth. It does not limit the size, and names may stand twice.
func CheckBSON(doc bson.Raw) error { return checkSpec(doc) }

// NewListCursor returns a cursor over documents that are there already.
func NewListCursor(docs []bson.Raw) *Cursor {
	l := &listed{}
	for _, doc := range docs {
		l.docs = append(l.docs, document(doc))
	}
	return &Cursor{src: l}
}
