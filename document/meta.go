package document

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/projection"
	"github.com/pandodb/pando/document/internal/query"
	"github.com/pandodb/pando/document/internal/sortkey"
)

// What {$meta: kind} asks for in a query's projection, of what there is.
const (
	metaDistance = "geoNearDistance"
	metaPlace    = "geoNearPoint"
	metaRecord   = "recordId"
	metaSorted   = "sortKey"
)

// metaMissing is MongoDB's code for a $meta of something that the query does not find out.
const metaMissing mongoerror.Code = 40218

// near returns the $near of a query; nil when it has none.
func (q *findQuery) near() *query.Near {
	top := []query.Node{q.Filter.Root}
	if and, isAnd := q.Filter.Root.(*query.And); isAnd {
		top = and.Children
	}
	for _, n := range top {
		if near, isNear := n.(*query.Near); isNear {
			return near
		}
	}
	return nil
}

// checkMeta refuses what the projection and the sort ask for with $meta, and the query does not find out.
func (q *findQuery) checkMeta() error {
	for _, kind := range q.Projection.Meta() {
		if kind == metaSorted && len(q.Sort) <= len(emptyDocument()) {
			return mongoerror.New(mongoerror.BadValue, "cannot use sortKey $meta projection without a sort")
		}
		if err := q.findsOut(kind); err != nil {
			return err
		}
	}
	if !bytes.Contains(q.Sort, []byte("$meta")) {
		return nil // as most do
	}
	for _, e := range elementsOf(q.Sort) {
		spec, _ := e.Value().DocumentOK()
		kind, isMeta := spec.Lookup("$meta").StringValueOK()
		if !isMeta {
			continue
		}
		switch kind {
		case metaPlace, "indexKey":
			return mongoerror.New(mongoerror.Code(31138), "Illegal $meta sort: %s", e.String())
		case "searchScore", "searchHighlights", "vectorSearchScore":
			return mongoerror.New(mongoerror.Code(31218), "$meta sort by '%s' metadata is not supported", kind)
		}
		if err := q.findsOut(kind); err != nil {
			return err
		}
	}
	return nil
}

// findsOut refuses a kind of metadata that the query has none of.
func (q *findQuery) findsOut(kind string) error {
	what := map[string]string{metaDistance: "$geoNear distance", metaPlace: "$geoNear point", "textScore": "text score"}[kind]
	if what == "" || kind != "textScore" && q.near() != nil {
		return nil
	}
	return mongoerror.New(metaMissing, "query requires %s metadata, but it is not available", what)
}

// wantsMeta reports whether the projection asks for what only openMeta gives.
func (q *findQuery) wantsMeta() bool {
	return slices.ContainsFunc(q.Projection.Meta(), func(kind string) bool {
		return kind == metaDistance || kind == metaPlace || kind == metaRecord || kind == metaSorted
	})
}

// withMeta is the documents of a query, projected with what is known of them beside what they hold. It implements source.
type withMeta struct {
	found  found
	near   *query.Near // nil: there is none
	sorted func(doc document) (bsoncore.Value, error)
	apply  *projection.Projection
	capped bool
	out    []byte
}

// openMeta is OpenFind of a query that wantsMeta: the plan gives whole documents, as it knows nothing of $meta.
func (c *Collection) openMeta(ctx context.Context, x *collection, q *findQuery) (*Cursor, error) {
	sorted, err := q.sortedBy()
	if err != nil {
		return nil, err
	}
	w := &withMeta{near: q.near(), sorted: sorted, apply: q.Projection, capped: x.settings.Load().capped}
	q.Projection, q.Project = nil, nil
	m, err := c.open(ctx, x, q)
	if err != nil {
		return nil, err
	}
	w.found = found{m: m, q: q}
	return newCursor(ctx, w), nil
}

// sortedBy returns what gives the values that a document is sorted by, as an array; nil where nobody asks for it. There are none in the
// order of the records.
func (q *findQuery) sortedBy() (func(doc document) (bsoncore.Value, error), error) {
	if !slices.Contains(q.Projection.Meta(), metaSorted) {
		return nil, nil
	}
	pattern := new(sortkey.Pattern)
	if _, err := q.Sort.LookupErr("$natural"); err != nil {
		if pattern, err = sortkey.Parse(q.Sort, q.Collation); err != nil {
			return nil, err
		}
	}
	return func(doc document) (bsoncore.Value, error) {
		values, err := pattern.Values(path.Document(doc))
		b := bsoncore.NewArrayBuilder()
		for _, v := range values {
			b.AppendValue(v)
		}
		return bsoncore.Value{Type: bsoncore.TypeArray, Data: b.Build()}, err
	}, nil
}

// next implements source.
func (w *withMeta) next(ctx context.Context) (document, bool, error) {
	doc, ok, err := w.found.next(ctx)
	if !ok || err != nil {
		return nil, ok, err
	}
	known := []expression.Variable{{Name: projection.MetaVariable(metaRecord), Value: recordID(w.found.m.key(), w.capped)}}
	if w.sorted != nil {
		by, err := w.sorted(doc)
		if err != nil {
			return nil, false, err
		}
		known = append(known, expression.Variable{Name: projection.MetaVariable(metaSorted), Value: by})
	}
	if w.near != nil {
		distance, place, _ := w.near.Nearest(path.Document(doc))
		known = append(known, expression.Variable{Name: projection.MetaVariable(metaPlace), Value: place}, expression.Variable{
			Name: projection.MetaVariable(metaDistance), Value: bsoncore.Value{Type: bsoncore.TypeDouble, Data: bsoncore.AppendDouble(nil, distance)},
		})
	}
	w.out, err = w.apply.ApplyWith(w.out[:0], doc, known)
	return w.out, err == nil, err
}

func (w *withMeta) rest() {
	w.out = nil
	w.found.rest()
}

func (w *withMeta) close() error { return w.found.close() }

// recordID is the key of a record as it is shown: of a capped collection it is a number.
func recordID(key []byte, capped bool) bsoncore.Value {
	if capped && len(key) == 8 {
		return bsoncore.Value{Type: bsoncore.TypeInt64, Data: bsoncore.AppendInt64(nil, int64(binary.BigEndian.Uint64(key)))}
	}
	return bsoncore.Value{Type: bsoncore.TypeBinary, Data: bsoncore.AppendBinary(nil, bson.TypeBinaryGeneric, key)}
}
