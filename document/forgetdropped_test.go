package document

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// What is needed to read about dropped collections goes once the log does not reach back to them.
func TestDroppedCollectionsAreForgotten(t *testing.T) {
	fs := memfs.New()
	s := opened(t, &Options{Storage: pando.Options{FS: fs, MemoryBytes: 16 << 20}, FS: fs, TTLInterval: -1, History: 1 << 20})
	defer s.Close()
	ctx := context.Background()
	c := s.Database("d").Lookup("c")
	kept := func() (n int) {
		for range s.meta.Prefix([]byte{droppedKey}) {
			n++
		}
		for range s.meta.Prefix([]byte{templateKey}) {
			n++
		}
		return n
	}
	fill := func() {
		t.Helper()
		pad := string(make([]byte, 500))
		for i := range 10 {
			var docs []bson.D
			for j := range 1000 {
				docs = append(docs, bson.D{{Key: "_id", Value: i*1000 + j}, {Key: "pad", Value: pad}})
			}
			if _, err := c.InsertMany(ctx, docs, nil); err != nil {
				t.Fatal(err)
			}
			if err := s.db.Checkpoint(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill()
	if err := c.Drop(ctx); err != nil {
		t.Fatal(err)
	}
	before := kept()
	if err := s.forgetDropped(); err != nil || kept() != before || before < 2 {
		t.Errorf("%d things are kept at once, %d after, %v", before, kept(), err)
	}
	fill()
	if err := s.forgetDropped(); err != nil || kept() != before-1 {
		t.Errorf("%d things are kept in the end, %v", kept(), err)
	}
}

// What is left of a dropped collection stays known until all of it is removed. Where the templates could not be read at the
// first attempt, they once stayed for ever.
func TestTemplatesOfDroppedCollectionsGoWhereTheyCouldNotBeRead(t *testing.T) {
	for skip := range 6 {
		fs := faultfs.New(memfs.New())
		s := withManySessions(t, fs, 1)
		left := func(kind byte) (n int) { // of the first collection
			t.Helper()
			if err := s.eachEntry([]byte{kind, 0, 0, 0, 1}, []byte{kind, 0, 0, 0, 2}, func([]byte, []byte) error { n++; return nil }); err != nil {
				t.Error(err)
			}
			return n
		}
		rule := segmentsCannotBeRead()
		rule.Skip = skip
		fs.Set(rule)
		failed := s.forgetDropped()
		fs.Set()
		if d, n := left(droppedKey), left(templateKey); (d == 0) != (n == 0) {
			t.Errorf("of a dropped collection: %d entries, %d templates; %v", d, n, failed)
		}
		if err := s.forgetDropped(); err != nil || left(templateKey) > 0 {
			t.Errorf("%d templates are left, %v", left(templateKey), err)
		}
	}
}

// The templates of a dropped collection go before its entry, without which nobody looks for them. Where they could not be
// removed, as the disk was full for a moment, the entry once went all the same.
func TestTemplatesOfDroppedCollectionsGoWhereTheDiskWasFull(t *testing.T) {
	ctx := t.Context()
	disk := memfs.New()
	o := func(fs *faultfs.FS) *Options {
		return &Options{Storage: pando.Options{FS: fs, MemoryBytes: 8 << 20}, FS: fs, TTLInterval: -1, History: 1 << 20}
	}
	s := opened(t, o(faultfs.New(disk)))
	docs := make([]any, 1000)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: string(make([]byte, 500))}}
	}
	for i := range 4 {
		c := s.Database("d").Lookup(string(rune('a' + i)))
		if _, err := c.InsertMany(ctx, docs, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Drop(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 { // until the log does not tell of them any more
		if _, err := s.Database("d").Lookup(string(rune('k'+i))).InsertMany(ctx, docs, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.db.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
	}
	image := disk.KillImage()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	failures := 0
	for pad := range 8 {
		fs := faultfs.New(image.KillImage())
		s := opened(t, o(fs))
		fs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpAllocate), Name: "*.wal", Times: -1, Err: vfs.ErrNoSpace})
		storeUntilFull(t, s, 60000, pad)
		fs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpAllocate), Name: "*.wal", Err: vfs.ErrNoSpace})
		if err := s.forgetDropped(); err != nil {
			failures++
		}
		fs.Set()
		if err := s.forgetDropped(); err != nil {
			t.Fatal(err)
		}
		for number := uint32(1); number <= 4; number++ {
			for key := range s.meta.Prefix(templateKeyOf(number, 0)[:5]) {
				t.Errorf("pad %d: %x is there for ever", pad, key)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if failures == 0 {
		t.Error("the disk was never full")
	}
}
