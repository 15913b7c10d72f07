package document

import (
	"context"
	"io"
	"slices"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// askedContext counts how often somebody asks whether it has ended.
type askedContext struct {
	context.Context
	asked atomic.Int64
}

func (c *askedContext) Err() error {
	c.asked.Add(1)
	return c.Context.Err()
}

// Positions are different ones, ascending, and each is as likely as any other; so are pairs of them.
func TestPositions(t *testing.T) {
	const n, size, rounds = 10, 4, 20_000
	var drawn [n]int
	var both [n][n]int
	for range rounds {
		list := positions(n, size)
		if len(list) != size {
			t.Fatalf("%d positions", len(list))
		}
		for i, x := range list {
			if i > 0 && x <= list[i-1] {
				t.Fatal(list)
			}
			drawn[x]++
			for _, y := range list[:i] {
				both[y][x]++
			}
		}
	}
	for x := range n { // 8000 and 2667 are expected, with deviations of 69 and 48
		if drawn[x] < 7600 || drawn[x] > 8400 {
			t.Errorf("%d was drawn %d times", x, drawn[x])
		}
		for y := range x {
			if both[y][x] < 2400 || both[y][x] > 2950 {
				t.Errorf("%d and %d were drawn together %d times", y, x, both[y][x])
			}
		}
	}
	for _, n := range []int64{0, 1, 3} {
		if got := positions(n, 3); int64(len(got)) != n {
			t.Errorf("%d of %d", got, n)
		}
	}
}

// By their positions all documents are as likely, those that have not settled, and none that are deleted, wherever their keys lie.
func TestSampleByPositionIsDrawnFromAll(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}})
	defer s.Close()
	ctx := context.Background()
	c := s.Database("d").Lookup("c")
	there := map[int64]int{}
	for i := range int64(80) {
		id := i
		if i%4 == 0 {
			id = i * 1_000_000 // far from the others
		}
		if i == 50 {
			if err := s.DB().Compact(ctx, pando.CompactOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: id}, {Key: "n", Value: i}}); err != nil {
			t.Fatal(err)
		}
		there[i] = 0
	}
	for i := range int64(80) {
		if i%5 == 1 {
			if _, err := c.Delete(ctx, bson.D{{Key: "n", Value: i}}, nil); err != nil {
				t.Fatal(err)
			}
			delete(there, i)
		}
	}
	x, err := c.use()
	if err != nil {
		t.Fatal(err)
	}
	m := s.moment(nil)
	defer m.close()
	const size, rounds = 16, 4000
	for range rounds {
		d, err := m.drawByPosition(ctx, x, size)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for {
			doc, err := d.Next(ctx)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			n := doc.Lookup("n").AsInt64()
			if _, ok := there[n]; !ok {
				t.Fatalf("%d is deleted", n)
			}
			there[n]++
			seen++
		}
		if seen != size {
			t.Fatalf("%d of %d", seen, size)
		}
	}
	for n, drawn := range there { // 1000 are expected, with a deviation of 27
		if drawn < 840 || drawn > 1160 {
			t.Errorf("%d was drawn %d times", n, drawn)
		}
	}
}

// A small sample of a large collection that has settled does not walk over all of it, and one in a transaction does.
func TestSampleOfManyDoesNotWalk(t *testing.T) {
	const documents = 60_000
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 16 << 20}, TTLInterval: -1})
	defer s.Close()
	c := s.Database("d").Lookup("c")
	for i := 0; i < documents; i += 10_000 {
		docs := make([]bson.D, 10_000)
		for j := range docs {
			docs[j] = bson.D{{Key: "n", Value: i + j}}
		}
		if _, err := c.InsertMany(context.Background(), docs, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DB().Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	if z := s.DB().Metrics(); z.LastSeq != z.Settled {
		t.Fatalf("%d changes have not settled", z.LastSeq-z.Settled)
	}
	asked := func(c *Collection) int64 { // a walk asks once for each document that it takes, too, which are sometimes more and sometimes fewer
		const rounds = 100
		ctx := &askedContext{Context: context.Background()}
		for range rounds {
			for _, err := range c.Aggregate(ctx, bson.A{bson.D{{Key: "$sample", Value: bson.D{{Key: "size", Value: 1}}}}}, nil) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		return ctx.asked.Load() / rounds
	}
	few := asked(c)
	tx, err := s.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Abort()
	const spared = documents / passedPerCheck / 2
	if all := asked(tx.In(c)); all-few < spared {
		t.Errorf("asked %d times whether to go on, and %d times where it walks over all", few, all)
	}
	if _, err := c.InsertMany(context.Background(), slices.Repeat([]bson.D{{}}, 100), nil); err != nil {
		t.Fatal(err)
	}
	if walked := asked(c); walked-few < spared {
		t.Errorf("asked %d times, although all that has not settled has to be looked at to count", walked)
	}
}
