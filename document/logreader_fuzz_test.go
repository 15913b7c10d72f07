package document

import (
	"bytes"
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/codec"
	"github.com/pandodb/pando/vfs/memfs"
)

// loggedStore is a store whose log has notes of many kinds.
func loggedStore(tb testing.TB) *Store {
	tb.Helper()
	ok := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	s, err := Open("db", &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	ok(err)
	tb.Cleanup(func() { _ = s.Close() })
	ctx := context.Background()
	c, err := s.Database("d").Collection(ctx, "c", &CollectionOptions{PreImages: true})
	ok(err)
	_, err = c.Insert(WithStatements(ctx, "0123456789abcdef", 1, 0), bson.D{{Key: "_id", Value: "one"}, {Key: "a", Value: bson.A{1, 2, 3}}, {Key: "s", Value: bson.D{{Key: "t", Value: "text"}}}})
	ok(err)
	filter := bson.D{{Key: "_id", Value: "one"}}
	_, err = c.Update(ctx, filter, bson.D{{Key: "$set", Value: bson.D{{Key: "a.1", Value: 5}, {Key: "b.c", Value: bson.D{{Key: "x", Value: "y"}}}}}}, nil)
	ok(err)
	_, err = c.CreateIndex(ctx, Index{Keys: bson.D{{Key: "a", Value: 1}}})
	ok(err)
	ok(c.Rename(ctx, "d", "e", false))
	return s
}

// notesOf calls fn with the changes in the log of which change streams and the oplog make something.
func notesOf(tb testing.TB, s *Store, fn func(change pando.Change)) {
	tb.Helper()
	for change, err := range s.db.Changes(context.Background(), pando.ChangesOptions{}) {
		if err != nil {
			tb.Fatal(err)
		}
		if change.Keyspace == metaKeyspace {
			fn(change)
		}
	}
}

// soundNotes hands changes of one commit to what makes events and entries of the oplog, and fails when those are no BSON. A change may be refused.
func soundNotes(t *testing.T, s *Store, changes ...pando.Change) {
	t.Helper()
	st := &stream{o: &WatchOptions{ShowExpandedEvents: true, FullDocumentBeforeChange: "whenAvailable"}, feed: feed{events: make(chan event, 100)}}
	events := &eventMaker{stream: st}
	entries := &entryMaker{add: func(_ context.Context, _ uint64, entry document) error {
		if !codec.Sound(entry) {
			t.Errorf("changes from %d: the entry %x is no BSON", changes[0].Seq, entry)
		}
		return nil
	}}
	for _, deliver := range []func(context.Context, *committed) error{events.take, entries.take} {
		r := &logReader{store: s, deliver: deliver}
		for _, change := range changes {
			if err := r.take(context.Background(), change); err != nil {
				break
			}
		}
	}
	for len(st.events) > 0 {
		if e := <-st.events; e.doc != nil && !codec.Sound(e.doc) {
			t.Errorf("changes from %d: the event %x is no BSON", changes[0].Seq, e.doc)
		}
	}
}

// TestNotesThatMakeNoSense: what is made of a note in which a byte is another one is BSON, if anything is.
func TestNotesThatMakeNoSense(t *testing.T) {
	s := loggedStore(t)
	var commit []pando.Change
	notesOf(t, s, func(change pando.Change) {
		change.Key, change.Value = bytes.Clone(change.Key), bytes.Clone(change.Value)
		commit = append(commit, change)
		if !change.Last {
			return
		}
		soundNotes(t, s, commit...)
		for _, c := range commit {
			for i, b := range c.Value {
				for _, other := range []byte{b + 1, b - 1, 0x02, 0x03, 0x04, 0x7f} {
					c.Value[i] = other
					soundNotes(t, s, commit...)
				}
				c.Value[i] = b
			}
		}
		commit = nil
	})
}

// FuzzNotes reads notes of any bytes as change streams and the oplog do.
func FuzzNotes(f *testing.F) {
	s := loggedStore(f)
	notesOf(f, s, func(change pando.Change) { f.Add(change.Key, change.Value, change.Kind == pando.ChangeNote) })
	f.Fuzz(func(t *testing.T, key, value []byte, note bool) {
		change := pando.Change{Seq: 1, Kind: pando.ChangePut, Keyspace: metaKeyspace, Key: key, Value: value, Last: true}
		if note {
			change.Kind = pando.ChangeNote
		}
		soundNotes(t, s, change)
	})
}
