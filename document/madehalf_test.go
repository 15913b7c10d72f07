package document

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// A capped collection has two keyspaces: where the disk was full between the two, the first was there until the store was opened again.
func TestACollectionThatIsHalfMadeLeavesNothing(t *testing.T) {
	for pad := 0; pad < 600; pad += 16 {
		fs := memfs.New()
		s := opened(t, &Options{Storage: pando.Options{FS: fs, MemoryBytes: 1 << 20}, TTLInterval: -1})
		fillWith(t, s, fs, pad)
		before := keyspacesOf(t, s)
		_, err := s.Database("d").Collection(t.Context(), "capped", &CollectionOptions{Capped: true, SizeBytes: 4096})
		if err != nil && !errors.Is(err, pando.ErrDiskFull) {
			t.Fatal(err)
		}
		fs.SetCapacity(0)
		s.dropAgain()
		if after := keyspacesOf(t, s); err != nil && after != before {
			t.Errorf("pad %d: %v, and there are %d keyspaces more", pad, err, after-before)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The same held for the indexes of a collection that a transaction has created; and where it went on without them and was committed, change
// streams and the oplog told of those that had been made before the disk was full.
func TestIndexesThatAreHalfMadeLeaveNothing(t *testing.T) {
	list := []bson.Raw{bson.Raw(mustDocument(t, `{"key": {"a": 1}, "name": "a"}`)), bson.Raw(mustDocument(t, `{"key": {"b": 1}, "name": "b"}`))}
	for pad := 0; pad < 600; pad += 16 {
		fs := memfs.New()
		s := opened(t, &Options{Storage: pando.Options{FS: fs, MemoryBytes: 1 << 20}, TTLInterval: -1})
		tx, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d := s.Database("d")
		if err := tx.Create(t.Context(), d, "c", nil); err != nil {
			t.Fatal(err)
		}
		fillWith(t, s, fs, pad)
		before := keyspacesOf(t, s)
		_, failed := tx.In(d.Lookup("c")).CreateIndexes(t.Context(), list, nil)
		if failed != nil && !errors.Is(failed, pando.ErrDiskFull) {
			t.Fatal(failed)
		}
		fs.SetCapacity(0)
		s.dropAgain()
		if after := keyspacesOf(t, s); failed != nil && after != before {
			t.Errorf("pad %d: %v, and there are %d keyspaces more", pad, failed, after-before)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		told := 0
		for _, err := range s.Database("local").Lookup("oplog.rs").Find(t.Context(), JSON(`{"o.applyOps.o.createIndexes": "c"}`), nil) {
			if err != nil {
				t.Fatal(err)
			}
			told++
		}
		if there, err := d.Lookup("c").Indexes(t.Context()); err != nil || (told > 0) != (len(there) > 1) {
			t.Errorf("pad %d: there are %d indexes, %v, and %d entries tell of some", pad, len(there), err, told)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
