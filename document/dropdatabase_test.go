package document

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// A database was dropped collection by collection, and what somebody had created between two of them was still there after change streams and the
// oplog had told that the database is dropped: who follows them had it no more.
func TestADroppedDatabaseHoldsNothingFromBefore(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1})
	defer s.Close()
	for round := range 20 {
		d := s.Database(fmt.Sprint("d", round))
		for i := range 50 {
			if _, err := d.Collection(t.Context(), fmt.Sprint("c", i), nil); err != nil {
				t.Fatal(err)
			}
		}
		created := make(chan error)
		go func() {
			for {
				if list, err := d.Collections(t.Context()); len(list) < 49 || err != nil {
					break
				}
			}
			_, err := d.Lookup("new").Insert(t.Context(), bson.D{})
			created <- err
		}()
		if err := d.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-created; err != nil {
			t.Fatal(err)
		}
		there := false
		for entry, err := range s.Database("local").Lookup("oplog.rs").Find(t.Context(), bson.D{{Key: "ns", Value: d.name + ".$cmd"}}, nil) {
			if err != nil {
				t.Fatal(err)
			}
			if name, _ := entry.Lookup("o", "create").StringValueOK(); name == "new" {
				there = true
			}
			if name, _ := entry.Lookup("o", "drop").StringValueOK(); name == "new" || entry.Lookup("o", "dropDatabase").Type != 0 {
				there = false
			}
		}
		if is, err := d.Lookup("new").Exists(); is != there || err != nil {
			t.Errorf("it is there: %v, %v; as the oplog tells: %v", is, err, there)
		}
	}
}
