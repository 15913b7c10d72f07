package pando

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// deadValues writes values of which most are dead afterwards, and returns what is there.
func deadValues(t *testing.T, db *DB) map[string][]byte {
	t.Helper()
	noise, there := rand.NewChaCha8([32]byte{1}), map[string][]byte{}
	for i := range 100 {
		key, value := fmt.Sprintf("key %02d", i%40), make([]byte, 5_000)
		_, _ = noise.Read(value)
		must(t, db.Put([]byte(key), value))
		there[key] = value
	}
	for i := range 20 {
		key := fmt.Sprintf("key %02d", i)
		must(t, db.Delete([]byte(key)))
		delete(there, key)
	}
	return there
}

func checkValues(t *testing.T, db *DB, there map[string][]byte) {
	t.Helper()
	if n, err := db.Count(nil, nil); err != nil || n != int64(len(there)) {
		t.Errorf("%d records instead of %d, %v", n, len(there), err)
	}
	for key, value := range there {
		if got, err := db.Get([]byte(key)); err != nil || !bytes.Equal(got, value) {
			t.Errorf("%s: %d bytes, %v", key, len(got), err)
		}
	}
}

// A program that ends right behind its last write leaves no more garbage than one that pauses, be it that a checkpoint came before or not.
func TestCloseGivesDeadValuesBack(t *testing.T) {
	for _, settled := range []bool{false, true} {
		t.Run(fmt.Sprintf("settled %v", settled), func(t *testing.T) {
			fsys := memfs.New()
			db := openMem(t, fsys, Options{})
			there := deadValues(t, db)
			if settled {
				must(t, db.Checkpoint(t.Context()))
			}
			must(t, db.Close())
			bytes := segmentBytes(t, fsys)
			db = openMem(t, fsys, Options{})
			checkValues(t, db, there)
			if live := db.Metrics().LiveBytes; bytes > live*3/2 {
				t.Errorf("the files have %d bytes, of which %d are live", bytes, live)
			}
		})
	}
}

// Whatever fails while Close cleans, nothing is lost.
func TestCloseThatFailsToCleanLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	broken := errors.New("broken")
	for _, failure := range []error{broken, vfs.ErrNoSpace} {
		triggered := true
		for k := 0; triggered; k++ {
			mem := memfs.New()
			fsys := faultfs.New(mem)
			db, err := Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20})
			must(t, err)
			there := deadValues(t, db)
			must(t, db.Checkpoint(t.Context()))
			fsys.FailMutation(k, failure)
			if err := db.Close(); err != nil && !errors.Is(err, failure) {
				t.Errorf("mutation %d, %v: close: %v", k, failure, err)
			}
			triggered = fsys.Triggered() > 0
			db = openMem(t, mem, Options{})
			checkValues(t, db, there)
			must(t, db.Close())
		}
	}
}
