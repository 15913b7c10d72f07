//go:build slow

package pando

import (
	"encoding/binary"
	"testing"
)

// Behind a savepoint a transaction stays in memory until it ends, and may have MaxBatchBytes there. One that made more commands than a record
// of the log takes ended all writing, and one that made more than a frame of a spill file takes was taken for damage.
func TestTransactionWithASavepointIsLargerThanARecordOfTheLog(t *testing.T) {
	for _, c := range []struct {
		name   string
		memory int64
		count  uint32
		value  int
	}{
		{"many small writes", 640 << 20, 12_000_000, 0}, // 48 MB of keys, and more than 64 MiB of commands
		{"few large writes", 16 << 20, 1200, 60 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			db, err := Open(t.TempDir(), &Options{MemoryBytes: c.memory, Profile: Relaxed, ValueThreshold: 64 << 10})
			must(t, err)
			defer db.Close()
			must(t, db.Update(func(tx *Tx) error {
				tx.Savepoint()
				key, value := make([]byte, 4), make([]byte, c.value)
				for i := range c.count {
					binary.BigEndian.PutUint32(key, i)
					if err := tx.Put(key, value); err != nil {
						return err
					}
				}
				return nil
			}))
			if n, err := db.Count(nil, nil); n != int64(c.count) || err != nil {
				t.Errorf("%d records instead of %d, %v", n, c.count, err)
			}
			must(t, db.Put([]byte("another"), nil))
		})
	}
}
