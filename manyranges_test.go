package pando

import (
	"encoding/binary"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// Counts and positions look at the range deletes near each change, of thousands, and at what lies between them.
func TestCountsBetweenManyRangeDeletes(t *testing.T) {
	const records, width = 10_000, 7 // every other stretch of so many records is deleted
	db := openMem(t, memfs.New(), Options{MemoryBytes: 64 << 20})
	key := func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }
	b := db.NewBatch()
	for i := range records {
		must(t, b.Put(key(i), nil))
	}
	must(t, db.Write(b))
	must(t, db.Checkpoint(t.Context()))
	b.Reset()
	for i := 0; i < records; i += 2 * width {
		must(t, b.DeleteRange(key(i), key(min(i+width, records))))
	}
	for i := 3; i < records; i += 5 { // some are put again, some lie where nothing was deleted
		must(t, b.Put(key(i), nil))
	}
	must(t, db.Write(b))
	var there []int
	for i := range records {
		if i/width%2 == 1 || i%5 == 3 {
			there = append(there, i)
		}
	}
	if n, err := db.Count(nil, nil); err != nil || n != int64(len(there)) {
		t.Errorf("%d pairs, %v, want %d", n, err, len(there))
	}
	for at := 0; at+1000 < len(there); at += 997 {
		lo, hi := there[at], there[at+1000]
		if n, err := db.Count(key(lo), key(hi)); err != nil || n != 1000 {
			t.Errorf("from %d to %d: %d pairs, %v, want 1000", lo, hi, n, err)
		}
		if got, _, err := db.Nth(key(lo), nil, 500); err != nil || string(got) != string(key(there[at+500])) {
			t.Errorf("behind %d: %x, %v, want %x", lo, got, err, key(there[at+500]))
		}
	}
}
