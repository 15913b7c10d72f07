package document

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// Of a dropped collection of which the log does not tell any more the templates go first: where they could not be removed, as the disk was full
// for a moment, the entry went all the same, and nobody looked for the templates ever again.
func TestTemplatesOfADroppedCollectionDoNotStayForEver(t *testing.T) {
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
