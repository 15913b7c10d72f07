package execute_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/document/internal/execute"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/plan"
)

// motley makes documents whose fields have few values, of many types, or are missing.
func motley(t testing.TB, f *fixture, rng *rand.Rand, n int) (docs []bsoncore.Document) {
	values := []any{
		int32(1), int32(-7), int32(88), int32(1 << 20), int64(1), int64(60), 1.0, 60.5, "JFK", "LGA", "", nil, true, false, bson.A{int32(1), "JFK"}, bson.A{},
		bson.D{{Key: "b", Value: int32(1)}}, bson.A{bson.D{{Key: "b", Value: "JFK"}}}, bson.MinKey{}, bson.DateTime(1), bson.Decimal128{},
	}
	values = append(values, ends()...)
	for i := range n {
		doc := bson.D{{Key: "_id", Value: int32(i)}}
		for _, name := range []string{"a", "c", "d"} {
			if k := rng.IntN(2 * len(values)); k < len(values) {
				doc = append(doc, bson.E{Key: name, Value: values[k]})
			} else if k < 3*len(values)/2 {
				doc = append(doc, bson.E{Key: name, Value: int32(k)}, bson.E{Key: "s" + name, Value: []string{"EWR", "JFK"}[k%2]})
			}
		}
		raw := encode(t, doc)
		if !f.insert(raw) {
			t.Fatal("not taken")
		}
		docs = append(docs, raw)
	}
	return docs
}

// ends are values at the ends of their types, and next to those of others.
func ends() []any {
	return []any{
		int64(1<<53 + 1), float64(1 << 53), int64(math.MaxInt64), float64(1 << 63), int64(math.MinInt64), bson.NewDecimal128(0x3040000000000000, 1<<53+1), bson.NewDecimal128(0x303e000000000000, 5),
		math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0.5, int32(math.MinInt32), "a\x00", "\u00e9", bson.Timestamp{T: 1}, bson.DateTime(-1), bson.Undefined{}, bson.MaxKey{},
	}
}

// TestScansAgreeWithMatch: a scan, which looks at a few bytes of most records only, gives and counts what Match finds among the documents,
// settled and not, and tells that it has looked at all.
func TestScansAgreeWithMatch(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := newFixture(t, codec.Template)
	rng := rand.New(rand.NewPCG(seed, 1))
	docs := motley(t, f, rng, 1500)
	if err := f.db.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := f.reader()
	operands := []any{int32(1), int64(60), 1.5, "JFK", "", nil, true, bson.A{int32(1), "JFK"}, bson.D{{Key: "b", Value: int32(1)}}, bson.MinKey{}}
	operands = append(operands, slices.DeleteFunc(ends(), func(v any) bool { return v == bson.Undefined{} })...) // nothing may be compared with that
	operators := []string{"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$type", "$mod", "$size", "$not", "$elemMatch", "$regex"}
	condition := func() bson.E {
		name := []string{"a", "c", "d", "sa", "sc", "a.b", "_id", "none"}[rng.IntN(8)]
		x := operands[rng.IntN(len(operands))]
		switch op := operators[rng.IntN(len(operators))]; op {
		case "$in", "$nin":
			return bson.E{Key: name, Value: bson.D{{Key: op, Value: bson.A{x, operands[rng.IntN(len(operands))]}}}}
		case "$exists":
			return bson.E{Key: name, Value: bson.D{{Key: op, Value: rng.IntN(2) == 0}}}
		case "$type":
			return bson.E{Key: name, Value: bson.D{{Key: op, Value: []string{"int", "number", "string", "null", "array"}[rng.IntN(5)]}}}
		case "$mod":
			return bson.E{Key: name, Value: bson.D{{Key: op, Value: bson.A{2, 1}}}}
		case "$size":
			return bson.E{Key: name, Value: bson.D{{Key: op, Value: 2}}}
		case "$not", "$elemMatch":
			return bson.E{Key: name, Value: bson.D{{Key: op, Value: bson.D{{Key: "$gt", Value: x}}}}}
		case "$regex":
			return bson.E{Key: name, Value: bson.D{{Key: op, Value: "^[JE]"}}}
		default:
			return bson.E{Key: name, Value: bson.D{{Key: op, Value: x}}}
		}
	}
	for range sievedFilters {
		filter := bson.D{condition()}
		switch rng.IntN(4) {
		case 0:
		case 1:
			filter = bson.D{{Key: "$or", Value: bson.A{filter, bson.D{condition()}}}, condition()}
		default:
			filter = bson.D{{Key: "$and", Value: bson.A{filter, bson.D{condition()}}}}
		}
		scanAgrees(t, f, r, docs, filter)
	}
}

// scanAgrees runs a filter over the collection and compares what it gives with Match.
func scanAgrees(t *testing.T, f *fixture, r execute.Reader, docs []bsoncore.Document, filter bson.D) {
	t.Helper()
	q := f.query(filter)
	q.Hint = bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: encode(t, bson.D{{Key: "$natural", Value: 1}})}
	var want []string
	for _, doc := range docs {
		ok, err := q.Filter.Match(path.Document(doc))
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			want = append(want, doc.String())
		}
	}
	p := f.choose(r, q)
	got, st, err := f.run(r, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, doc := range got {
		texts = append(texts, doc.String())
	}
	if !slices.Equal(texts, want) {
		t.Errorf("%v: %d documents instead of %d", filter, len(texts), len(want))
	}
	for st.Stage != nil && len(st.Inputs) > 0 {
		st = st.Inputs[0]
	}
	if _, ok := st.Stage.(*plan.CollectionScan); ok && (st.Docs != int64(len(docs)) || st.Works != int64(len(docs))+1 || st.Advanced != int64(len(want))) {
		t.Errorf("%v: %d documents looked at in %d steps, %d given", filter, st.Docs, st.Works, st.Advanced)
	}
	q.Goal = plan.Counting
	if n, err := execute.Count(t.Context(), r, f.c, f.choose(r, q), nil); err != nil || n != int64(len(want)) {
		t.Errorf("%v: counted %d instead of %d: %v", filter, n, len(want), err)
	}
}

// polled is a context that ends after it has been asked so often.
type polled struct {
	context.Context
	left int
}

func (c *polled) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestScanOfNothingIsCancelled: a scan that passes over all records looks as often as another one whether it may go on.
func TestScanOfNothingIsCancelled(t *testing.T) {
	f := newFixture(t, codec.Template)
	for i := range 5000 {
		f.insert(encode(t, bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: int32(i % 3)}, {Key: "text", Value: fmt.Sprint(i)}}))
	}
	r := f.reader()
	p := f.choose(r, f.query(bson.D{{Key: "a", Value: int32(7)}}))
	if n, err := execute.Count(&polled{t.Context(), 10}, r, f.c, p, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("counted %d: %v", n, err)
	}
	all := &polled{t.Context(), 1 << 30}
	if n, err := execute.Count(all, r, f.c, p, nil); n != 0 || err != nil {
		t.Errorf("counted %d: %v", n, err)
	}
	if asked := 1<<30 - all.left; asked < 5000/256 {
		t.Errorf("asked %d times", asked)
	}
}
