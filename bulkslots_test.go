package pando

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/vfs/faultfs"
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

// Close, and a pause, leave a batch larger than memory in both root slots: whichever is damaged later, the batch is there. Once it was in
// one of them alone, and without that one the database opened as it was before the batch.
func TestLargeBatchOutlivesItsRootSlotAfterAPause(t *testing.T) {
	const n = 3000
	fill := func(db *DB) error {
		b := db.NewBatch()
		for i := range n {
			must(t, b.Put(fmt.Appendf(nil, "%06d", i), make([]byte, 100)))
		}
		return db.Write(b)
	}
	for what, leave := range map[string]func(t *testing.T, fsys *memfs.FS, db *DB) *memfs.FS{
		"Close": func(t *testing.T, fsys *memfs.FS, db *DB) *memfs.FS {
			must(t, db.Close())
			return fsys
		},
		"a pause": func(t *testing.T, fsys *memfs.FS, db *DB) *memfs.FS {
			time.Sleep(31 * time.Second)
			synctest.Wait()
			return fsys.CrashImage(memfs.Policy{})
		},
		"a kill, and Close of the next one": func(t *testing.T, fsys *memfs.FS, db *DB) *memfs.FS {
			image := fsys.KillImage()
			next, err := Open("db", &Options{FS: image, MemoryBytes: 1 << 20, Profile: db.e.Metrics().Profile})
			must(t, err)
			must(t, next.Close())
			return image
		},
		"a kill, an Open that fails, and Close of the one behind it": func(t *testing.T, fsys *memfs.FS, db *DB) *memfs.FS {
			image := fsys.KillImage()
			faulty := faultfs.New(image)
			faulty.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpOpen), Name: "*.seg", Times: -1})
			o := Options{FS: faulty, MemoryBytes: 1 << 20, Profile: db.e.Metrics().Profile}
			_, err := Open("db", &o)
			wantErr(t, "open", err, faultfs.ErrInjected)
			faulty.Set()
			next, err := Open("db", &o)
			must(t, err)
			must(t, next.Close())
			return image
		},
	} {
		for _, profile := range []Profile{Durable, Bench} {
			if what == "a pause" && profile == Bench {
				continue // which promises nothing of pauses
			}
			synctest.Test(t, func(t *testing.T) {
				fsys := memfs.New()
				db := openMem(t, fsys, Options{Profile: profile})
				must(t, db.Put([]byte("first"), nil))
				must(t, db.Checkpoint(t.Context()))
				must(t, fill(db))
				left := leave(t, fsys, db)
				for slot := range int64(2) {
					image := left.KillImage()
					f, err := image.OpenReadWrite("db/ROOT")
					must(t, err)
					_, err = f.WriteAt(make([]byte, 64), slot*4096+20)
					must(t, errors.Join(err, f.Close()))
					damaged, err := Open("db", &Options{FS: image, MemoryBytes: 1 << 20, Profile: profile})
					if err != nil {
						t.Errorf("%v, %s, slot %d damaged: %v", profile, what, slot, err)
						continue
					}
					if count, err := damaged.Count([]byte("0"), []byte("a")); err != nil || count != n {
						t.Errorf("%v, %s, slot %d damaged: %d of %d records, %v", profile, what, slot, count, n, err)
					}
					must(t, damaged.Close())
				}
			})
		}
	}
}
