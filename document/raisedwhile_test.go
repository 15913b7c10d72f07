package document

import (
	"context"
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// during is a context in which something happens when it is asked for the first time, which a write does before it writes.
type during struct {
	context.Context
	happens func()
}

func (d *during) Value(key any) any {
	if fn := d.happens; fn != nil {
		d.happens = nil
		fn()
	}
	return d.Context.Value(key)
}

// raising is a store with two collections, of which the first has an index that has met no array.
func raising(t *testing.T) (fs *memfs.FS, s *Store, a, b *Collection) {
	t.Helper()
	fs = memfs.New()
	fs.TellSpace()
	s = opened(t, &Options{Storage: pando.Options{FS: fs, MemoryBytes: 8 << 20}, TTLInterval: -1})
	a, b = s.Database("d").Lookup("a"), s.Database("d").Lookup("b")
	if _, err := a.CreateIndex(t.Context(), Index{Keys: bson.D{{Key: "x", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Collection{a, b} {
		if _, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: c.Name()}}); err != nil {
			t.Fatal(err)
		}
	}
	return fs, s, a, b
}

// fillUp leaves no room for what adds.
func fillUp(t *testing.T, fs *memfs.FS, c *Collection) {
	t.Helper()
	for _, size := range []int{900, 0} {
		for refused := 0; refused < 50; {
			fs.SetCapacity(fs.Used())
			_, err := c.Insert(t.Context(), bson.D{{Key: "s", Value: make([]byte, size)}})
			if errors.Is(err, pando.ErrDiskFull) {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// reopenedOptions closes a store, and returns what listCollections shows of the collections that are there when it is opened again.
func reopenedOptions(t *testing.T, fs *memfs.FS, s *Store) map[string]string {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = opened(t, &Options{Storage: pando.Options{FS: fs, MemoryBytes: 8 << 20}, TTLInterval: -1})
	list, err := s.Database("d").Collections(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, i := range list {
		if _, err := s.Database("d").Lookup(i.Name).Get(t.Context(), i.Name); err != nil {
			t.Errorf("a document of %s: %v", i.Name, err)
		}
		shown[i.Name] = i.Options.String()
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return shown
}

// unfinished is a write to a collection, which inserts the first array that its index meets, before its commit.
func unfinished(t *testing.T, x *collection) (insert func(), w *writer) {
	t.Helper()
	w, err := x.store.newWriter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := toDocument(bson.D{{Key: "_id", Value: 1}, {Key: "x", Value: bson.A{1, 2}}})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := w.insert(x, doc); err != nil {
			t.Error(err)
		}
	}, w
}

// The first array that an index meets is noted with the collection's entry in the catalogue. A write that met it while its collection was being
// renamed, in vain, put the entry under the name that it did not get: over that of the collection which was to be replaced.
func TestArrayThatComesWhileARenameFails(t *testing.T) {
	fs, s, a, b := raising(t)
	x, err := a.use()
	if err != nil {
		t.Fatal(err)
	}
	fillUp(t, fs, b)
	insert, w := unfinished(t, x)
	defer w.tx.Rollback()
	if err := a.Rename(&during{t.Context(), insert}, "d", "b", true); !errors.Is(err, pando.ErrDiskFull) {
		t.Fatalf("a rename on a full disk: %v", err)
	}
	fs.SetCapacity(0)
	if err := w.commit(); err != nil && !isConflict(err) {
		t.Fatal(err)
	}
	if shown := reopenedOptions(t, fs, s); len(shown) != 2 {
		t.Errorf("there are %v", shown)
	}
}

// So it put options there that collMod could not store: they were in force when the store was opened again.
func TestArrayThatComesWhileACollModFails(t *testing.T) {
	for _, late := range []bool{false, true} {
		fs, s, a, b := raising(t)
		x, err := a.use()
		if err != nil {
			t.Fatal(err)
		}
		insert, w := unfinished(t, x)
		happens := func() {
			insert()
			if !late && x.schema.TryRLock() { // it can commit
				x.schema.RUnlock()
				if err := w.commit(); err != nil {
					t.Error(err)
				}
			}
			fillUp(t, fs, b)
		}
		images := bson.D{{Key: "changeStreamPreAndPostImages", Value: bson.D{{Key: "enabled", Value: true}}}}
		if err := a.Modify(&during{t.Context(), happens}, images); !errors.Is(err, pando.ErrDiskFull) {
			t.Fatalf("a collMod on a full disk: %v", err)
		}
		fs.SetCapacity(0)
		if late {
			if err := w.commit(); err != nil && !isConflict(err) {
				t.Fatal(err)
			}
		}
		w.tx.Rollback()
		if shown := reopenedOptions(t, fs, s); shown["a"] != "{}" {
			t.Errorf("late %v: there are %v", late, shown)
		}
	}
}
