package pando

import (
	"encoding/binary"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// A transaction reads through as many range deletes as it has room for.
func TestTransactionReadsThroughManyRangeDeletes(t *testing.T) {
	const ranges = 80_000
	db := openMem(t, memfs.New(), Options{MemoryBytes: 256 << 20})
	key := func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }
	must(t, db.Put(key(2*ranges-2), nil))
	must(t, db.Put(key(2*ranges-1), nil))
	tx, err := db.Begin(true)
	must(t, err)
	defer tx.Rollback()
	for i := range ranges {
		must(t, tx.DeleteRange(key(2*i), key(2*i+1)))
	}
	_, err = tx.Get(key(2*ranges - 2))
	wantErr(t, "a key in the last range", err, ErrNotFound)
	_, err = tx.Get(key(2*ranges - 1))
	must(t, err)
}
