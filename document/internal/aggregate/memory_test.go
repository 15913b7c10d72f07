package aggregate

import (
	"bytes"
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/query"
	"github.com/pandodb/pando/document/internal/sortkey"
)

// memory is an Environment of collections in memory. It poisons what a cursor gave before, to find out who keeps it.
type memory struct {
	collections map[string][]document
	finds       int
	counts      int
	merged      []document
}

func (m *memory) Find(_ context.Context, _, collection string, r *Request) (Cursor, error) {
	m.finds++
	filter := r.Filter
	if filter == nil {
		filter = fields()
	}
	f, err := query.Parse(filter, &query.Options{Collation: r.Collation, Let: r.Let})
	if err != nil {
		return nil, err
	}
	var docs []document
	for _, doc := range m.collections[collection] {
		ok, err := f.Match(path.Document(doc))
		if err != nil {
			return nil, err
		}
		if ok {
			docs = append(docs, doc)
		}
	}
	if r.Sort != nil {
		p, err := sortkey.Parse(r.Sort, r.Collation)
		if err != nil {
			return nil, err
		}
		keys := map[*byte][]byte{}
		for _, doc := range docs {
			if keys[&doc[0]], err = p.Append(nil, path.Document(doc)); err != nil {
				return nil, err
			}
		}
		slices.SortStableFunc(docs, func(a, b document) int { return bytes.Compare(keys[&a[0]], keys[&b[0]]) })
	}
	docs = docs[min(r.Skip, int64(len(docs))):]
	if r.Limit > 0 {
		docs = docs[:min(r.Limit, int64(len(docs)))]
	}
	return &poisoned{listCursor: listCursor{docs: docs}}, nil
}

type poisoned struct {
	listCursor
	last []byte
}

func (c *poisoned) Next(ctx context.Context) (document, error) {
	doc, err := c.listCursor.Next(ctx)
	poison(c.last)
	c.last = append([]byte(nil), doc...)
	if err != nil {
		return nil, err
	}
	return c.last, nil
}

// poison fills b, a mebibyte as fast as it is copied.
func poison(b []byte) {
	for n := copy(b, "\xee"); 0 < n && n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

func (m *memory) Count(_ context.Context, _, collection string, r *Request) (int64, bool, error) {
	filter := r.Filter
	m.counts++
	return int64(len(m.collections[collection])), len(filter) <= bsoncore.EmptyDocumentLength, nil
}

func (m *memory) Special(_ context.Context, stage string, _ value, _, _ string) (Cursor, error) {
	return &listCursor{docs: []document{fields("stage", text(stage))}}, nil
}

func (m *memory) Located(context.Context, string, string) (string, error) { return "p", nil }

func (m *memory) Replace(ctx context.Context, _, collection string, docs Cursor) error {
	list := []document{}
	err := drain(ctx, docs, func(doc document) error {
		list = append(list, append(document(nil), doc...))
		return nil
	})
	m.collections[collection] = list
	return err
}

func (m *memory) Unique(string, string, []string, *collation.Collation) (bool, error) {
	return true, nil
}

func (m *memory) Merge(_ context.Context, _, _ string, merge *Merge, docs []document, _ func(err error) error) error {
	for _, doc := range docs {
		b, start := begin(nil)
		b = appendField(b, "doc", documentValue(doc))
		for _, v := range merge.Let {
			b = appendField(b, v.Name, v.Value)
		}
		m.merged = append(m.merged, end(b, start))
	}
	return nil
}

// run runs a pipeline and returns copies of its documents.
func (m *memory) run(pipeline []document, o *Options) ([]document, error) {
	p, err := Parse(pipeline, o)
	if err != nil {
		return nil, err
	}
	return m.runPipeline(p)
}

func (m *memory) runPipeline(p *Pipeline) ([]document, error) {
	ctx := context.Background()
	c, err := p.Run(ctx, m)
	if err != nil {
		return nil, err
	}
	var list []document
	err = drain(ctx, c, func(doc document) error {
		list = append(list, append(document(nil), doc...))
		return nil
	})
	if err != nil {
		return list, joinClose(err, c)
	}
	return list, c.Close()
}
