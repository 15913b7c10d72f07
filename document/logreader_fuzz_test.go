package document

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// FuzzNotes reads notes of any bytes as change streams and the oplog do.
func FuzzNotes(f *testing.F) {
	s, err := Open("db", &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	ctx := context.Background()
	c := s.Database("d").Lookup("c")
	if _, err := c.Insert(WithStatements(ctx, "0123456789abcdef", 1, 0), bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.A{1, 2, 3}}}); err != nil {
		f.Fatal(err)
	}
	filter := bson.D{{Key: "_id", Value: 1}}
	if _, err := c.Update(ctx, filter, bson.D{{Key: "$set", Value: bson.D{{Key: "a.1", Value: 5}, {Key: "b.c", Value: 1}}}}, nil); err != nil {
		f.Fatal(err)
	}
	if _, err := c.CreateIndex(ctx, Index{Keys: bson.D{{Key: "a", Value: 1}}}); err != nil {
		f.Fatal(err)
	}
	if err := c.Rename(ctx, "d", "e", false); err != nil {
		f.Fatal(err)
	}
	for change, err := range s.db.Changes(ctx, pando.ChangesOptions{}) {
		if err != nil {
			f.Fatal(err)
		}
		if change.Keyspace == metaKeyspace {
			f.Add(change.Key, change.Value, change.Kind == pando.ChangeNote)
		}
	}
	f.Fuzz(func(_ *testing.T, key, value []byte, note bool) {
		change := pando.Change{Seq: 1, Kind: pando.ChangePut, Keyspace: metaKeyspace, Key: key, Value: value, Last: true}
		if note {
			change.Kind = pando.ChangeNote
		}
		st := &stream{o: &WatchOptions{ShowExpandedEvents: true}, feed: feed{events: make(chan event, 100)}}
		events := &eventMaker{stream: st}
		entries := &entryMaker{add: func(context.Context, uint64, document) error { return nil }}
		for _, deliver := range []func(context.Context, *committed) error{events.take, entries.take} {
			r := &logReader{store: s, deliver: deliver}
			_ = r.take(ctx, change) // which may fail, and does not panic
		}
	})
}
