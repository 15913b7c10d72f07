package document

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// A drop is two entries of the log: that the collection is gone, and that what it held is. Where others had filled the disk between the two, the
// drop failed, and all the same the collection was gone, so that nobody could drop it again: its space was lost until the store was opened again,
// and that failed as long as the disk was full.
func TestDropOnAFullDiskGivesItsSpaceBackLater(t *testing.T) {
	ctx := t.Context()
	o := &Options{Storage: pando.Options{MemoryBytes: 1 << 20}, TTLInterval: -1}
	holds := func(s *Store) bool {
		t.Helper()
		all, err := s.DB().Keyspaces()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range all {
			if k.Name == recordsName(1) {
				return true
			}
		}
		return false
	}
	times := 0 // that the log came to the end of what it has between the two
	for pad := 0; pad < 3000; pad += 16 {
		fs := memfs.New()
		o.Storage.FS = fs
		s := opened(t, o)
		c := s.Database("d").Lookup("c")
		if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: 1}}); err != nil {
			t.Fatal(err)
		}
		fillWith(t, s, fs, pad)
		err := c.Drop(ctx)
		if there, failed := c.Exists(); there != (err != nil) || failed != nil {
			t.Errorf("pad %d: %v, and it is there: %v, %v", pad, err, there, failed)
		}
		if err == nil && holds(s) {
			if times++; times%2 == 0 {
				_ = s.Close() // what is not settled yet is in the log
				s = opened(t, o)
			}
			fs.SetCapacity(0)
			if s.dropAgain(); holds(s) {
				t.Errorf("pad %d: what it held is there when there is room again", pad)
			}
		}
		fs.SetCapacity(0)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if times < 2 {
		t.Errorf("the disk was full between the two %d times", times)
	}
}
