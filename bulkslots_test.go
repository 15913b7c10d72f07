package pando

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// A batch larger than memory is committed by a root slot alone. Where that is damaged, and the log has gone on behind the batch, the older slot
// must not pass for the database: it would be without the batch, and have what was written after it.
func TestOlderSlotDoesNotHideALargeBatch(t *testing.T) {
	for _, later := range []bool{false, true} {
		fsys := memfs.New()
		db := openMem(t, fsys, Options{})
		must(t, db.Put([]byte("first"), nil))
		must(t, db.Checkpoint(t.Context()))
		const n = 3000
		b := db.NewBatch()
		for i := range n {
			must(t, b.Put(fmt.Appendf(nil, "%06d", i), make([]byte, 100)))
		}
		must(t, db.Write(b))
		if later {
			must(t, db.Put([]byte("later"), nil))
		}
		refused := 0
		for slot := range int64(2) {
			image := fsys.CrashImage(memfs.Policy{})
			f, err := image.OpenReadWrite("db/ROOT")
			must(t, err)
			_, err = f.WriteAt(make([]byte, 64), slot*4096+20)
			must(t, errors.Join(err, f.Close()))
			damaged, err := Open("db", &Options{FS: image, MemoryBytes: 1 << 20})
			if err != nil {
				wantErr(t, fmt.Sprintf("slot %d", slot), err, ErrCorrupt)
				refused++
				continue
			}
			count, err := damaged.Count([]byte("0"), []byte("a"))
			if err != nil || count != n && (later || count != 0) {
				t.Errorf("slot %d damaged, later: %t: %d of %d records, %v", slot, later, count, n, err)
			}
			must(t, damaged.Close())
		}
		if later && refused != 1 {
			t.Errorf("%d of 2 damaged slots are refused", refused)
		}
	}
}

// The change feed gives each batch larger than memory its own changes, though the files of earlier ones have gone. Where they have gone
// OldestChange lies behind them.
func TestFeedBesideBatchesWhoseFilesHaveGone(t *testing.T) {
	fsys := memfs.New()
	batch := func(db *DB, prefix string) {
		b := db.NewBatch()
		for i := range 3000 {
			must(t, b.Put(fmt.Appendf(nil, "%s%06d", prefix, i), make([]byte, 100)))
		}
		must(t, db.Write(b))
	}
	db := openMem(t, fsys, Options{})
	must(t, db.Put([]byte("first"), nil))
	batch(db, "one")
	must(t, db.Put([]byte("second"), nil))
	for c, err := range db.Changes(t.Context(), ChangesOptions{From: db.OldestChange()}) {
		if err != nil || string(c.Key) != "second" {
			t.Errorf("%q, %v", c.Key, err)
		}
	}
	must(t, db.Close())
	db = openMem(t, fsys, Options{KeepChanges: 1 << 20})
	batch(db, "two")
	must(t, db.Put([]byte("third"), nil))
	for c, err := range db.Changes(t.Context(), ChangesOptions{}) {
		if err != nil {
			wantErr(t, "the changes of the first batch", err, ErrChangesGone)
			break
		}
		if key := string(c.Key); key > "two" && c.Seq <= 3001 {
			t.Fatalf("change %d is %q, of a later batch", c.Seq, key)
		}
	}
	must(t, db.Close())
}
