package document_test

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// What a projection makes of a record of which only a part is read is what it makes of the whole document, in finds and in pipelines.
func TestProjectionsReadParts(t *testing.T) {
	docs := []any{}
	for i := range 40 {
		d := bson.D{{Key: "z", Value: i}, {Key: "_id", Value: i}, {Key: "a", Value: bson.D{{Key: "c", Value: i}, {Key: "b", Value: "text"}}}, {Key: "list", Value: bson.A{i, bson.D{{Key: "x", Value: i}}}},
			{Key: "s", Value: "some text"}, {Key: "d", Value: float64(i) / 4}, {Key: "y", Value: nil}}
		switch i % 4 {
		case 1:
			d = bson.D{d[1], d[4], d[0]}
		case 2:
			d = bson.D{d[1], {Key: "a", Value: i}, {Key: "z", Value: bson.A{}}, {Key: "s", Value: true}}
		case 3:
			d = bson.D{d[1], {Key: "s", Value: int64(i)}, d[5], d[3], d[2], d[0]}
		}
		docs = append(docs, d)
	}
	projections := []string{
		`{"z": 1}`, `{"s": 1, "z": 1, "_id": 0}`, `{"a.b": 1, "s": 1}`, `{"a": 1, "list.x": 1}`, `{"list": {"$slice": 1}, "z": 1}`, `{"no": 1}`, `{"no": 1, "_id": 0}`,
		`{"s": "$z", "d": 1}`, `{"a.n": "$d", "z": 1}`, `{"x": "$$ROOT", "z": 1}`, `{"list": {"$elemMatch": {"x": 4}}}`, `{"x": {"$literal": 1}, "_id": 0}`, `{"s": 0}`,
		`{"y": 1, "d": 1, "s": 1, "list": 1, "a": 1, "_id": 1, "z": 1, "no": 1, "nor": 1}`, `{"x": {"$add": ["$_id", "$d"]}, "y": 1}`,
	}
	var first []string
	for _, f := range []document.Format{document.BSON, document.Template, document.AsJSON} { // BSON is not read in parts
		s := open(t, memfs.New())
		c := collection(t, s, "things", &document.CollectionOptions{Format: f})
		for range 2 { // until the shapes are known
			_, err := c.Delete(ctx, bson.D{}, &document.DeleteOptions{Many: true})
			must(t, err)
			_, err = c.InsertMany(ctx, docs, nil)
			must(t, err)
		}
		var all []string
		for _, p := range projections {
			var spec bson.D
			must(t, bson.UnmarshalExtJSON([]byte(p), false, &spec))
			for _, o := range []*document.FindOptions{{}, {Sort: bson.D{{Key: "d", Value: -1}, {Key: "_id", Value: 1}}}} {
				o.Projection = spec
				all = append(all, find(t, c, `{"_id": {"$gte": 3}}`, o))
			}
			for _, stages := range [][]bson.D{
				{}, {{{Key: "$match", Value: bson.D{{Key: "s", Value: "some text"}}}}}, {{{Key: "$sort", Value: bson.D{{Key: "_id", Value: -1}}}}, {{Key: "$limit", Value: 9}}},
				{{{Key: "$unwind", Value: "$list"}}}, {{{Key: "$unset", Value: "z"}}},
			} {
				out := p
				for doc, err := range c.Aggregate(ctx, append(stages, bson.D{{Key: "$project", Value: spec}}), nil) {
					if err != nil { // a projection that only finds have
						out += err.Error()
						break
					}
					out += "\n" + text(t, doc)
				}
				all = append(all, out)
			}
		}
		if first == nil {
			first = all
		}
		for i := range all {
			expect(t, projections[i/7], all[i], first[i])
		}
	}
}
