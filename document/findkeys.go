package document

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// keyed is the documents of a query with where they are: their keys in the index instead of what else they hold, the keys of their
// records, or both. It implements source.
type keyed struct {
	found  found
	fields []string // of the index; nil: the documents themselves are wanted
	record bool
	capped bool
	out    []byte
}

// openKeyed is OpenFind with ReturnKey or ShowRecordID.
func (c *Collection) openKeyed(ctx context.Context, x *collection, q *findQuery) (*Cursor, error) {
	k := &keyed{record: q.options.ShowRecordID && !q.options.ReturnKey, capped: x.settings.Load().capped}
	if q.options.ReturnKey {
		q.Projection, q.Project = nil, nil
		fields, err := c.planFields(ctx, q)
		if err != nil {
			return nil, err
		}
		k.fields = fields
	}
	m, err := c.open(ctx, x, q)
	if err != nil {
		return nil, err
	}
	k.found = found{m: m, q: q}
	return newCursor(ctx, k), nil
}

// planFields returns the fields of the index that a query uses; none when it uses no index.
func (c *Collection) planFields(ctx context.Context, q *findQuery) ([]string, error) {
	o := q.options
	o.Verbosity, o.Projection, o.ReturnKey, o.ShowRecordID = "queryPlanner", nil, false, false
	raw, err := c.Explain(ctx, bson.Raw(q.spec), &o)
	if err != nil {
		return nil, err
	}
	fields := []string{}
	stage, _ := document(raw).Lookup("queryPlanner", "winningPlan").DocumentOK()
	for stage != nil {
		if pattern, ok := stage.Lookup("keyPattern").DocumentOK(); ok {
			for _, e := range elementsOf(pattern) {
				fields = append(fields, e.Key())
			}
			return fields, nil
		}
		name, _ := stage.Lookup("stage").StringValueOK()
		stage, _ = stage.Lookup("inputStage").DocumentOK()
		if stage == nil && (name != "COLLSCAN" || len(elementsOf(q.Sort)) > 0 && elementsOf(q.Sort)[0].Key() == "_id") {
			return []string{"_id"}, nil // the records themselves are in its order
		}
	}
	return fields, nil
}

// next implements source.
func (k *keyed) next(ctx context.Context) (document, bool, error) {
	doc, ok, err := k.found.next(ctx)
	if !ok || err != nil {
		return nil, ok, err
	}
	at, out := bsoncore.AppendDocumentStart(k.out[:0])
	if k.fields == nil {
		out = append(out, doc[4:len(doc)-1]...)
	}
	for _, field := range k.fields {
		out = bsoncore.AppendValueElement(out, field, keyOf(doc, field))
	}
	if k.record {
		out = bsoncore.AppendValueElement(out, "$recordId", recordID(k.found.m.key(), k.capped))
	}
	k.out, err = bsoncore.AppendDocumentEnd(out, at)
	return k.out, err == nil, err
}

// keyOf returns the value of a field in an index's entry for a document: of an array, that of its first element.
func keyOf(doc document, field string) bsoncore.Value {
	v, err := doc.LookupErr(strings.Split(field, ".")...)
	if err != nil {
		return bsoncore.Value{Type: bsoncore.TypeNull}
	}
	if v.Type != bsoncore.TypeArray {
		return v
	}
	elements := elementsOf(document(v.Data))
	if len(elements) == 0 {
		return bsoncore.Value{Type: bsoncore.TypeUndefined}
	}
	return elements[0].Value()
}

func (k *keyed) rest() {
	k.out = nil
	k.found.rest()
}

func (k *keyed) close() error { return k.found.close() }
