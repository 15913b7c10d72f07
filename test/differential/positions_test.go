package differential

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestNumbersInPaths: a number in a path is the position of an element, and the name of a field. Where an index is on such a path, filters for
// null find other documents by it than without, on both servers.
func TestNumbersInPaths(t *testing.T) {
	t.Parallel()
	p := &pair{t: t, us: ours(t), them: theirs(t), known: knownDifferences(t)}
	for collection, index := range map[string]bson.D{
		"none": nil, "field": doc("m.0.b", int32(1)), "element": doc("m.0", int32(1)), "compound": doc("m.0.b", int32(1), "_id", int32(1)),
	} {
		p.same(doc("insert", collection, "documents", numbered(t)), true)
		hints := []bson.D{nil}
		if index != nil {
			p.same(doc("createIndexes", collection, "indexes", bson.A{doc("key", index, "name", "i")}), true)
			hints = append(hints, doc("hint", "i"))
		}
		for _, path := range []string{"m.0", "m.0.b"} {
			for _, condition := range []any{
				nil, int32(1), int32(2), doc("$in", bson.A{nil, int32(1)}), doc("$nin", bson.A{nil}), doc("$ne", nil), doc("$exists", false),
				doc("$exists", true), doc("$gte", nil), doc("$lte", nil), doc("$not", doc("$gt", int32(1))), doc("$type", "null"),
			} {
				for _, hint := range hints {
					find := doc("find", collection, "filter", doc(path, condition), "batchSize", int32(1000))
					p.same(append(find, hint...), false)
				}
			}
		}
	}
}

// numbered returns documents in which "m.0" and "m.0.b" are there, or not, in each way that they may.
func numbered(t *testing.T) (docs bson.A) {
	for i, m := range []string{
		`null`, `[]`, `[null]`, `[1]`, `[{}]`, `[{"b": null}]`, `[{"b": 1}]`, `{"b": 1}`, `{"0": {"b": 1}}`, `{"0": {}}`, `{"0": 1}`,
		`[{"0": {"b": 1}}]`, `[{"0": {"c": 1}}]`, `[{"0": 1}]`, `[{"0": null}]`, `[{"b": 1}, {"0": {"b": 2}}]`, `[[{"b": 1}]]`, `[[1]]`,
		`[[]]`, `[[null]]`, `1`, `[1, {"0": null}]`, `[{"b": [null]}]`, `[{"b": []}]`, `[{"b": 1}, {}]`, `[{"b": 1}, {"b": null}]`,
		`[{"b": 1}, {"0": 1}]`, `{"0": [{"b": 1}]}`, `{"0": [{}]}`, `{"0": [1]}`, `{"0": []}`,
	} {
		var d bson.D
		if err := bson.UnmarshalExtJSON(fmt.Appendf(nil, `{"_id": %d, "m": %s}`, i, m), false, &d); err != nil {
			t.Fatal(err)
		}
		docs = append(docs, d)
	}
	return append(docs, doc("_id", int32(-1)))
}
