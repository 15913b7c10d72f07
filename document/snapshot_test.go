package document_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A snapshot shows collections that were dropped or renamed since; they once read as empty, without a word.
func TestSnapshotsShowWhatWasDroppedSince(t *testing.T) {
	for _, settled := range []bool{false, true} {
		t.Run(fmt.Sprintf("settled=%v", settled), func(t *testing.T) {
			fs := memfs.New()
			before := open(t, fs)
			fill := func(c *document.Collection, what string) {
				t.Helper()
				_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "v", Value: 1}}})
				must(t, err)
				for i := range 20 {
					_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "v", Value: i % 2}, {Key: "what", Value: what}})
					must(t, err)
				}
			}
			for _, name := range []string{"dropped", "renamed", "replaced"} {
				fill(collection(t, before, name, nil), name)
			}
			s := before
			if settled {
				must(t, before.Close())
				s = open(t, fs)
			}
			snap, err := s.Snapshot(ctx)
			must(t, err)
			defer snap.Close()
			c := func(name string) *document.Collection { return s.Database(document.DefaultDatabase).Lookup(name) }
			dropped, replaced := c("dropped"), c("replaced")
			must(t, dropped.Drop(ctx))
			must(t, c("renamed").Rename(ctx, document.DefaultDatabase, "other", false))
			must(t, replaced.Drop(ctx))
			fill(collection(t, s, "replaced", nil), "new")
			must(t, s.DB().Checkpoint(ctx))
			must(t, s.DB().Compact(ctx, pando.CompactOptions{}))
			for _, name := range []string{"dropped", "renamed", "replaced"} {
				at := snap.In(s.Database(document.DefaultDatabase).Lookup(name))
				for _, filter := range []string{`{}`, `{"v": {"$gte": 0}}`, `{"what": "` + name + `"}`} {
					n, err := at.Count(ctx, document.JSON(filter), nil)
					if err != nil || n != 20 {
						t.Errorf("%s has %d documents with %s, %v", name, n, filter, err)
					}
				}
				if doc, err := at.Get(ctx, 7); err != nil || doc.Lookup("what").StringValue() != name {
					t.Errorf("%s: document 7 is %v, %v", name, doc, err)
				}
			}
			if n, err := snap.In(c("other")).Count(ctx, nil, nil); n != 0 || err != nil {
				t.Errorf("under its new name there are %d documents, %v", n, err)
			}
		})
	}
}

// A snapshot is the newest one until something is committed, in a collection or in what there is of them.
func TestTheNewestSnapshot(t *testing.T) {
	s := open(t, memfs.New())
	c := s.Database(document.DefaultDatabase).Lookup("c")
	for what, change := range map[string]func() error{
		"insert": func() error { _, err := c.Insert(ctx, bson.D{}); return err },
		"create": func() error {
			return s.Database(document.DefaultDatabase).Create(ctx, "other", bson.D{})
		},
	} {
		snap, err := s.Snapshot(ctx)
		must(t, err)
		_, err = c.Count(ctx, nil, nil)
		must(t, err)
		if !snap.Newest() {
			t.Errorf("before the %s it is not the newest", what)
		}
		must(t, change())
		if snap.Newest() {
			t.Errorf("after the %s it is the newest", what)
		}
		must(t, snap.Close())
	}
}

// A handle of a snapshot changes nothing, what the collection is included, and one of a transaction nothing that would be no part of it:
// Drop once dropped the collection for everybody.
func TestHandlesThatCannotAlter(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "v", Value: 1}}})
	must(t, err)
	_, err = c.Insert(ctx, bson.D{{Key: "v", Value: 1}})
	must(t, err)
	snap, err := s.Snapshot(ctx)
	must(t, err)
	defer snap.Close()
	tx, err := s.Begin(ctx)
	must(t, err)
	defer tx.Abort()
	for want, in := range map[document.Code]func(c *document.Collection) *document.Collection{
		72: snap.In, 263: tx.In,
	} {
		at := in(c)
		for what, call := range map[string]func() error{
			"drop":          func() error { return at.Drop(ctx) },
			"rename":        func() error { return at.Rename(ctx, document.DefaultDatabase, "other", false) },
			"drop an index": func() error { return at.DropIndex(ctx, "v_1") },
			"modify":        func() error { return at.Modify(ctx, bson.D{{Key: "validationLevel", Value: "off"}}) },
			"make capped":   func() error { return at.MakeCapped(ctx, 1<<20) },
			"copy capped":   func() error { return at.CopyCapped(ctx, "other", 1<<20) },
			"make an index": func() error {
				_, err := at.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "w", Value: 1}}})
				return err
			},
			"have the index": func() error {
				_, err := at.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "v", Value: 1}}})
				return err
			},
		} {
			if err := call(); document.CodeOf(err) != want {
				t.Errorf("%s: %v, want code %d", what, err, want)
			}
		}
	}
	if _, err := snap.In(s.Database(document.DefaultDatabase).Lookup("none")).Insert(ctx, bson.D{}); document.CodeOf(err) != 72 {
		t.Errorf("insert: %v", err)
	}
	for _, into := range []string{"$out", "$merge"} { // what was read then may be written now
		for _, err := range snap.In(c).Aggregate(ctx, []bson.D{{{Key: into, Value: "copy"}}}, nil) {
			must(t, err)
		}
	}
	into := s.Database(document.DefaultDatabase).Lookup("copy")
	if n, err := into.Count(ctx, nil, nil); err != nil || n != 1 {
		t.Errorf("%d documents were written: %v", n, err)
	}
	must(t, into.Drop(ctx))
	list, err := s.Database(document.DefaultDatabase).Collections(ctx)
	if must(t, err); len(list) != 1 {
		t.Errorf("there are %d collections", len(list))
	}
	if indexes, err := c.Indexes(ctx); err != nil || len(indexes) != 2 {
		t.Errorf("there are %d indexes: %v", len(indexes), err)
	}
}

// A snapshot for somebody who has gone away is none: it once stayed open for ever, as its caller, who was given an error, did not close it.
func TestSnapshotForNobody(t *testing.T) {
	fs := faultfs.New(memfs.New())
	s := open(t, fs)
	_, err := collection(t, s, "c", nil).Insert(ctx, bson.D{{Key: "x", Value: 1}})
	must(t, err)
	must(t, s.DB().Checkpoint(ctx)) // there is a segment, which stays open as long as somebody may read it
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Snapshot(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("a snapshot with a context that has ended: %v", err)
	}
	must(t, s.Close())
	if leaks := fs.Leaks(); len(leaks) > 0 {
		t.Errorf("left open: %v", leaks)
	}
}
