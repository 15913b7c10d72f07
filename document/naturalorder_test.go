package document_test

import (
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestNaturalOrderGoesBackwardByANumberOfAnyType: in a collection and in the oplog, as a sort order and as a hint. A number without a sign
// goes forward.
func TestNaturalOrderGoesBackwardByANumberOfAnyType(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	for i := range 3 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}})
		must(t, err)
	}
	decimal := func(text string) bson.Decimal128 {
		d, err := bson.ParseDecimal128(text)
		must(t, err)
		return d
	}
	inserted := document.JSON(`{"op": "i"}`)
	for _, test := range []struct {
		direction any
		backward  bool
	}{
		{-1, true}, {int64(-1), true}, {-1.0, true}, {decimal("-1"), true}, {decimal("-1E+30"), true}, {math.Inf(-1), true},
		{1, false}, {decimal("1"), false}, {math.Inf(1), false}, {1e300, false}, {math.NaN(), false}, {decimal("NaN"), false}, {-0.5, false},
	} {
		want, order := "012", bson.D{{Key: "$natural", Value: test.direction}}
		if test.backward {
			want = "210"
		}
		for _, o := range []*document.FindOptions{{Sort: order}, {Hint: order}} {
			for where, found := range map[string]func() (*document.Cursor, error){
				"the collection": func() (*document.Cursor, error) { return c.OpenFind(ctx, nil, o) },
				"the oplog":      func() (*document.Cursor, error) { return oplog(s).OpenFind(ctx, inserted, o) },
			} {
				cursor, err := found()
				must(t, err)
				got := ""
				for cursor.Next(ctx) {
					id, err := cursor.Current().LookupErr("o", "_id")
					if err != nil {
						id = cursor.Current().Lookup("_id")
					}
					got += string(rune('0' + id.AsInt64()))
				}
				if must(t, cursor.Close()); got != want {
					t.Errorf("%v in %s gives %s, want %s", order, where, got, want)
				}
			}
		}
	}
}
