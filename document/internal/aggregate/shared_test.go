package aggregate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/scratch"
	"github.com/pandodb/pando/vfs/memfs"
)

func scratchSpace(t *testing.T) *scratch.Space {
	t.Helper()
	space, err := scratch.Open(memfs.New(), "scratch", 0)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// unspillable are stages that keep what they cannot spill. Each of them, for 2000 numbers, takes more than half a mebibyte and less than two.
var unspillable = []struct {
	stage string
	code  mongoerror.Code // when there is no memory left
}{
	{`{"$densify": {"field": "_id", "partitionByFields": ["k"], "range": {"step": 1, "bounds": "partition"}}}`, 6007200},
	{`{"$densify": {"field": "_id", "partitionByFields": ["k"], "range": {"step": 1000, "bounds": [0, 1001]}}}`, 6007200},
	{`{"$limit": 1}, {"$graphLookup": {"from": "c", "startWith": {"$range": [0, 2000]}, "connectFromField": "_id", "connectToField": "_id", "as": "r"}}`, 40099},
	{`{"$limit": 1}, {"$graphLookup": {"from": "c", "startWith": {"$range": [0, 9000]}, "connectFromField": "no", "connectToField": "no", "as": "r"}}`, 40099},
}

// TestWhatCannotSpillTakesOfTheSharedMemory: and fails when others hold that, whether it may use the disk or not. However it ends, it
// gives back what it took.
func TestWhatCannotSpillTakesOfTheSharedMemory(t *testing.T) {
	m := numbers(2000)
	for _, u := range unspillable {
		for _, space := range []*scratch.Space{nil, scratchSpace(t)} {
			o := options()
			o.MemoryBytes, o.Scratch, o.Shared = 64<<20, space, scratch.NewMemory(8<<20, scratch.DefaultOwn)
			whole := parseJSON(t, `[`+u.stage+`]`)
			if _, err := m.run(whole, o); err != nil || o.Shared.Held() != 0 {
				t.Fatalf("%s: %v, and %d bytes are held at the end", u.stage, err, o.Shared.Held())
			}

			ctx, stop := context.WithCancel(context.Background())
			c := opened(t, m, whole, o)
			_, ended := c.Next(ctx)
			stop()
			for ended == nil {
				_, ended = c.Next(ctx)
			}
			if err := errors.Join(c.Close(), c.Close()); err != nil || o.Shared.Held() != 0 || !errors.Is(ended, context.Canceled) && !errors.Is(ended, io.EOF) {
				t.Errorf("%s: %v, %v, and %d bytes are held behind what nobody waits for", u.stage, ended, err, o.Shared.Held())
			}

			failing := parseJSON(t, fmt.Sprintf(`[%s, {"$match": {"$expr": {"$divide": [1, 0]}}}]`, u.stage))
			if _, err := m.run(failing, o); err == nil || o.Shared.Held() != 0 {
				t.Errorf("%s: %v, and %d bytes are held behind an error", u.stage, err, o.Shared.Held())
			}

			other := scratch.Allowance{Memory: 64 << 20, Shared: o.Shared}.Share()
			if !other.Fits(8<<20 + scratch.DefaultOwn) {
				t.Fatal("there is no memory")
			}
			if _, err := m.run(whole, o); mongoerror.CodeOf(err) != u.code && (space != nil || !errors.Is(err, mongoerror.QueryExceededMemoryLimitNoDiskUseAllowed)) {
				t.Errorf("%s: %v while there is no memory left", u.stage, err)
			}
			other.Shrink(0)
			if _, err := m.run(whole, o); err != nil || o.Shared.Held() != 0 {
				t.Errorf("%s: %v, %d bytes are held when there is memory again", u.stage, err, o.Shared.Held())
			}
		}
	}
}

// TestSearchesOfGraphLookupAreBounded, and what one has found does not count for the next.
func TestSearchesOfGraphLookupAreBounded(t *testing.T) {
	const stages = `[{"$limit": 50}, {"$graphLookup": {"from": "c", "startWith": {"$range": [0, 300]}, "connectFromField": "_id", "connectToField": "_id", "as": "r"}}]`
	for bytes, code := range map[int64]mongoerror.Code{100_000: 40099, 500_000: 0} {
		o := options()
		o.Shared = scratch.NewMemory(bytes, 0)
		if docs, err := numbers(400).run(parseJSON(t, stages), o); mongoerror.CodeOf(err) != code || code == 0 && len(docs) != 50 {
			t.Errorf("%d bytes: %d documents, %v", bytes, len(docs), err)
		}
	}
}

func opened(t *testing.T, m *memory, stages []document, o *Options) Cursor {
	t.Helper()
	p, err := Parse(stages, o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Run(context.Background(), m)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
