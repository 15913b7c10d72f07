package pando_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestRecoverLongLog recovers a log that is handed from one goroutine to the other in many pieces: batches of all lengths, among them
// some too long for that, single writes, range deletes, and keyspaces that are made and dropped in between; with room for all of it in
// one memtable, and without.
func TestRecoverLongLog(t *testing.T) {
	for _, budget := range []int64{64 << 20, 1 << 20} {
		disk := memfs.New()
		db, err := pando.Open("/db", &pando.Options{FS: disk, MemoryBytes: budget, Profile: pando.Relaxed})
		if err != nil {
			t.Fatal(err)
		}
		want := writeLong(t, db)
		image := disk.KillImage()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []bool{true, false} {
			db, err = pando.Open("/db", &pando.Options{FS: image, MemoryBytes: budget, Profile: pando.Relaxed, ReadOnly: readOnly})
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range want {
				got, err := db.Get(longKey(i))
				if v == nil && !errors.Is(err, pando.ErrNotFound) || v != nil && (err != nil || !bytes.Equal(got, v)) {
					t.Fatalf("budget %d, key %d: %d bytes, %v, want %d", budget, i, len(got), err, len(v))
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func longKey(i int) []byte { return binary.BigEndian.AppendUint32([]byte("key"), uint32(i)) }

// writeLong writes a few megabytes and returns what each key then has.
func writeLong(t *testing.T, db *pando.DB) [][]byte {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var want [][]byte
	value := func(n int) []byte {
		v := bytes.Repeat([]byte{byte(len(want))}, n)
		want = append(want, v)
		return v
	}
	for round, records := range []int{1, 3000, 5, 1, 1, 9000, 2, 700, 1, 5000, 40, 1} {
		b := db.NewBatch()
		for range records {
			key := longKey(len(want))
			b.Put(key, value(20+round*10))
		}
		must(db.Write(b))
		for range 300 {
			key := longKey(len(want))
			must(db.Put(key, value(30)))
		}
		gone := len(want) / 2
		must(db.DeleteRange(longKey(gone), longKey(gone+50)))
		clear(want[gone : gone+50])
		ks, err := db.Keyspace("beside", nil)
		must(err)
		must(ks.Put([]byte("k"), []byte("v")))
		must(db.DropKeyspace("beside"))
	}
	return want
}
