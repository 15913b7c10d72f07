// Package filling fills the disk of a database with its own records, and says what should be in it then.
//
// It promises that what it has put and not deleted is all that Check wants to find. It fails through testing.TB, and needs a keyspace to
// itself.
package filling

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pandodb/pando"
)

// Filling is what one keyspace holds.
type Filling struct {
	t    testing.TB
	db   *pando.DB
	ks   *pando.Keyspace
	rnd  *rand.Rand
	size int // of values
	keys [][]byte
}

// New returns a Filling with values of so many bytes. Open comes first.
func New(t testing.TB, seed uint64, size int) *Filling {
	return &Filling{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), size: size}
}

// Open opens the keyspace "k" of a database.
func (f *Filling) Open(dir string, o pando.Options, layout pando.Layout) {
	f.t.Helper()
	var err error
	f.db, err = pando.Open(dir, &o)
	f.must(err)
	f.ks, err = f.db.Keyspace("k", &pando.KeyspaceOptions{Layout: layout})
	f.must(err)
}

// Close closes the database.
func (f *Filling) Close() {
	f.t.Helper()
	f.must(f.db.Close())
}

// Len is how many records there should be.
func (f *Filling) Len() int { return len(f.keys) }

// Fill writes until there is no more room, nor a moment later.
func (f *Filling) Fill() {
	f.t.Helper()
	for refused := 0; refused < 20; {
		key := binary.BigEndian.AppendUint64(nil, f.rnd.Uint64())
		err := f.ks.Put(key, f.value(key))
		if errors.Is(err, pando.ErrDiskFull) {
			refused++
			time.Sleep(10 * time.Millisecond)
			continue
		}
		f.must(err)
		f.keys = append(f.keys, key)
		refused = 0
	}
}

// Thin deletes two records in three, which must not fail, and settles what has been deleted.
func (f *Filling) Thin() {
	f.t.Helper()
	kept := f.keys[:0]
	for i, key := range f.keys {
		if i%3 == 0 {
			kept = append(kept, key)
		} else if err := f.ks.Delete(key); err != nil {
			f.t.Fatalf("delete %d of %d: %v", i, len(f.keys), err)
		}
	}
	f.keys = kept
	f.must(f.db.Checkpoint(context.Background()))
}

// Check looks at all records, and verifies the database.
func (f *Filling) Check() {
	f.t.Helper()
	for _, key := range slices.SortedFunc(slices.Values(f.keys), bytes.Compare) { // those of a leaf one after the other
		if got, err := f.ks.Get(key); err != nil || !bytes.Equal(got, f.value(key)) {
			f.t.Fatalf("key %x: %d bytes, %v", key, len(got), err)
		}
	}
	if n, err := f.ks.Count(nil, nil); err != nil || n != int64(len(f.keys)) {
		f.t.Fatalf("%d records, %v, want %d", n, err, len(f.keys))
	}
	report, err := f.db.Check(context.Background())
	f.must(err)
	for _, d := range report.Damage {
		f.t.Error(d.Err)
	}
}

// Again fills the disk, deletes, and fills it again: there must be room for half as many as were deleted.
func (f *Filling) Again() {
	f.t.Helper()
	f.Fill()
	before := f.Len()
	f.Thin()
	f.Check()
	left := f.Len()
	f.Fill()
	if room := f.Len() - left; 2*room < before-left {
		f.t.Errorf("of %d records %d were deleted, and there was room for %d", before, before-left, room)
	}
	f.Check()
}

// value is the one of a key: bytes that no codec makes shorter.
func (f *Filling) value(key []byte) []byte {
	value := make([]byte, f.size)
	_, _ = rand.NewChaCha8([32]byte(bytes.Repeat(key, 4))).Read(value)
	return value
}

func (f *Filling) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}
