package document

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// A message may have very many variables, each of which takes milliseconds to compute: whoever hangs up, or has no more time, ends that.
func TestComputingVariablesEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}})
	defer s.Close()
	c := s.Database("d").Lookup("c")
	one, err := bson.ParseDecimal128("1.5")
	if err != nil {
		t.Fatal(err)
	}
	var let bson.D
	for i := range 100 {
		let = append(let, bson.E{Key: fmt.Sprint("v", i), Value: bson.D{{Key: "$ln", Value: one}}})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	find := &FindOptions{Let: let}
	for what, parse := range map[string]func(ctx context.Context) error{
		"find": func(ctx context.Context) error {
			_, err := c.parseFind(ctx, bson.D{}, find)
			return err
		},
		"distinct": func(ctx context.Context) error {
			_, err := c.parseDistinct(ctx, "a", bson.D{}, find)
			return err
		},
		"update": func(ctx context.Context) error {
			_, err := c.Update(ctx, bson.D{{Key: "a", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 2}}}}, &UpdateOptions{Let: let})
			return err
		},
		"aggregate": func(ctx context.Context) error {
			_, err := c.OpenAggregate(ctx, bson.A{}, &AggregateOptions{Let: let})
			return err
		},
	} {
		if err := parse(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if err := parse(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("%s of a call that has ended: %v", what, err)
		}
	}
}
