package document

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/vfs/memfs"
)

// hookedClock calls something when it has been asked for the time so many times.
type hookedClock struct {
	clock.Clock
	left int
	then func()
}

func (c *hookedClock) Now() time.Time {
	if c.left--; c.left == 0 {
		c.then()
	}
	return c.Clock.Now()
}

// What collMod has said holds for whatever is committed from then on, also when it began before: a write that went by the options from before
// has another go.
func TestWritesHeedOptionsThatChangeBesideThem(t *testing.T) {
	many := make([]bson.D, 10)
	for i := range many {
		many[i] = bson.D{{Key: "_id", Value: i}, {Key: "a", Value: 1}}
	}
	writes := map[string]func(ctx context.Context, c *Collection) error{
		"insert": func(ctx context.Context, c *Collection) error {
			_, err := c.Insert(ctx, bson.D{{Key: "a", Value: 1}})
			return err
		},
		"insert of many": func(ctx context.Context, c *Collection) error {
			_, err := c.InsertMany(ctx, many, nil)
			return err
		},
		"update": func(ctx context.Context, c *Collection) error {
			_, err := c.Update(ctx, bson.D{{Key: "b", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}, nil)
			return err
		},
		"transaction": func(ctx context.Context, c *Collection) error {
			return c.store.Transaction(ctx, func(tx *Tx) error {
				_, err := tx.In(c).InsertMany(ctx, many, nil)
				return err
			})
		},
	}
	for name, write := range writes {
		beside := 0 // a write that went on afterwards
		for n := 1; n <= 12; n++ {
			if writeBesideModify(t, name, n, write) {
				beside++
			}
		}
		if beside == 0 {
			t.Errorf("%s: the options never changed beside it", name)
		}
	}
}

// writeBesideModify changes the validator when a write asks for the time, and reports whether that was in front of the commit.
func writeBesideModify(t *testing.T, name string, n int, write func(ctx context.Context, c *Collection) error) (beside bool) {
	t.Helper()
	ctx := t.Context()
	hooked := &hookedClock{Clock: clock.System()}
	o := &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 1 << 20}, TTLInterval: -1, clock: hooked}
	s := opened(t, o)
	defer s.Close()
	c := s.Database("d").Lookup("c")
	if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: "there"}, {Key: "b", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	refused := bson.D{{Key: "a", Value: 1}}
	hooked.then = func() {
		err := c.Modify(ctx, bson.D{{Key: "validator", Value: bson.D{{Key: "a", Value: bson.D{{Key: "$exists", Value: false}}}}}})
		found, failed := c.Count(ctx, refused, nil)
		if err := errors.Join(err, failed); err != nil {
			t.Error(err)
		}
		beside = found == 0
	}
	hooked.left = n
	err := write(ctx, c)
	hooked.left = 0
	found, failed := c.Count(ctx, refused, nil)
	if failed != nil {
		t.Fatal(failed)
	}
	if beside && (!errors.Is(err, DocumentValidationFailure) || found > 0) {
		t.Errorf("%s: when the time is asked for the %d-th time: %v, and there are %d documents that the validator refuses", name, n, err, found)
	}
	return beside
}
