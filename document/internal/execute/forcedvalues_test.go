package execute_test

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/plan"
)

// wrongFirst says what is wrong with documents among which the first with each value of the query's field is to be: the first in the
// order that is asked for, or any where none is.
func (f *forced) wrongFirst(q *plan.Query, docs []bsoncore.Document) string {
	least := map[string]string{} // sort keys
	known := map[string]bool{}
	for _, doc := range f.matching(q) {
		group, order := f.group(q, doc)
		if have, ok := least[group]; !ok || order < have {
			least[group] = order
		}
		known[f.wanted(q, doc)] = true
	}
	for _, doc := range docs {
		group, order := f.group(q, doc)
		want, ok := least[group]
		if !known[f.wanted(q, doc)] || ok && order != want {
			return fmt.Sprintf("this is not the first with its value: %s", doc)
		}
		delete(least, group)
	}
	if len(least) > 0 {
		return fmt.Sprintf("%d values are missing", len(least))
	}
	return ""
}

// group returns the value by which a document is grouped, and its place in the order that is asked for.
func (f *forced) group(q *plan.Query, doc bsoncore.Document) (value, order string) {
	value = string(keyenc.Append(nil, f.single(doc, q.Field), false, nil))
	if len(q.Sort) > 0 {
		order = string(f.sortKeys(q, []bsoncore.Document{doc})[0])
	}
	return value, order
}

// wanted returns the values of the fields that are asked for.
func (f *forced) wanted(q *plan.Query, doc bsoncore.Document) string {
	out := ""
	for _, name := range q.Fields {
		out += string(keyenc.Append(nil, f.single(doc, name), false, nil))
	}
	return out
}

// single returns the value at a path that leads through no array, as grouping sees it: null where there is none.
func (f *forced) single(doc bsoncore.Document, at string) bsoncore.Value {
	v, err := doc.LookupErr(strings.Split(at, ".")...)
	if err != nil {
		return bsoncore.Value{Type: bsoncore.TypeNull}
	}
	return v
}

// values returns the distinct values of the query's field, as keys.
func (f *forced) values(q *plan.Query, docs []bsoncore.Document) map[string]bool {
	out := map[string]bool{}
	for _, doc := range docs {
		path.Parse(q.Field).Walk(path.Document(doc), path.Each, func(v bsoncore.Value, _ int) bool {
			if v.Type != 0 {
				out[string(keyenc.Append(nil, v, false, q.Collation))] = true
			}
			return false
		})
	}
	return out
}
