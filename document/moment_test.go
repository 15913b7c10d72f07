package document

import (
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/vfs/memfs"
)

// ticking is a clock on which it is later each time that somebody looks.
type ticking struct {
	clock.Clock
	looks atomic.Int64
}

func (c *ticking) Now() time.Time { return time.UnixMilli(1e12 + c.looks.Add(1)) }

// TestAReadHasOneMoment: $$NOW is the same in all of a pipeline, also where a part of it is answered by the collection, in the views and the
// other collections that it reads, and in the variables of the command.
func TestAReadHasOneMoment(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1, clock: &ticking{Clock: clock.System()}})
	defer s.Close()
	db := s.Database(DefaultDatabase)
	if _, err := db.Lookup("c").Insert(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	d := func(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }
	same := d("$expr", d("$eq", bson.A{"$$now", "$$NOW"}))
	if _, err := s.Collection(t.Context(), "v", &CollectionOptions{ViewOn: "c", Pipeline: bson.A{d("$set", d("seen", "$$NOW"))}}); err != nil {
		t.Fatal(err)
	}
	lookup := bson.D{{Key: "from", Value: "v"}, {Key: "let", Value: d("outer", "$$NOW")}, {Key: "as", Value: "found"},
		{Key: "pipeline", Value: bson.A{d("$match", d("$expr", d("$eq", bson.A{"$$outer", "$$NOW"})))}}}
	for name, pipeline := range map[string]bson.A{
		"a filter of the collection": {d("$match", same)},
		"a filter behind a stage":    {d("$set", d("at", "$$NOW")), d("$match", d("$expr", d("$eq", bson.A{"$at", "$$now"})))},
		"a filter before a stage":    {d("$match", same), d("$set", d("at", "$$NOW")), d("$match", d("$expr", d("$eq", bson.A{"$at", "$$now"})))},
		"a join":                     {d("$lookup", lookup), d("$match", d("found._id", 1))},
	} {
		for _, of := range []string{"c", "v"} {
			n := 0
			for _, err := range db.Lookup(of).Aggregate(t.Context(), pipeline, &AggregateOptions{Let: d("now", "$$NOW")}) {
				if n++; err != nil {
					t.Fatal(err)
				}
			}
			if n != 1 {
				t.Errorf("%s, of %s: %d documents", name, of, n)
			}
		}
	}
	if _, err := db.Lookup("c").Insert(t.Context(), bson.D{{Key: "_id", Value: 2}}); err != nil {
		t.Fatal(err)
	}
	merge := bson.D{{Key: "into", Value: "c"}, {Key: "whenMatched", Value: bson.A{d("$set", bson.D{{Key: "at", Value: "$$NOW"}, {Key: "as", Value: "$$new.seen"}})}}}
	for _, err := range db.Lookup("v").Aggregate(t.Context(), bson.A{d("$merge", merge)}, nil) {
		t.Fatal(err)
	}
	if n, err := db.Lookup("c").Count(t.Context(), d("$expr", d("$eq", bson.A{"$at", "$as"})), nil); n != 2 || err != nil {
		t.Errorf("of 2 documents that were merged %d have the moment of the pipeline, %v", n, err)
	}
	for of, earlier := range map[string]string{"c": "$$now", "v": "$seen"} {
		o := &FindOptions{Let: d("now", "$$NOW"), Projection: d("same", d("$eq", bson.A{earlier, "$$NOW"}))}
		n := 0
		for doc, err := range db.Lookup(of).Find(t.Context(), same, o) {
			if n++; err != nil || !doc.Lookup("same").Boolean() {
				t.Errorf("find in %s: %s, %v", of, doc, err)
			}
		}
		if n != 2 {
			t.Errorf("find in %s: %d documents", of, n)
		}
	}
}

// TestNowIsKnownEverywhere: in the pipelines of change streams, and of updates whose filter cannot be parsed, which is then what is wrong.
func TestNowIsKnownEverywhere(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	defer s.Close()
	c := s.Database(DefaultDatabase).Lookup("c")
	late := bson.D{{Key: "$match", Value: bson.D{{Key: "$expr", Value: bson.D{{Key: "$lt", Value: bson.A{time.UnixMilli(0), "$$NOW"}}}}}}}
	w, err := c.OpenWatch(t.Context(), bson.A{late}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	if !w.Next(t.Context()) {
		t.Errorf("no event: %v", w.Err())
	}
	stamp := bson.A{bson.D{{Key: "$set", Value: bson.D{{Key: "at", Value: "$$NOW"}}}}}
	if _, err := c.Update(t.Context(), bson.D{{Key: "a", Value: bson.D{{Key: "$bogus", Value: 1}}}}, stamp, nil); CodeOf(err) != 2 {
		t.Errorf("an update with a wrong filter: %v", err)
	}
}
