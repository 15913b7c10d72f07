package pando

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A file of values that does not open while the log is applied, where the process has no handles left, say, keeps Open from going on. It was
// once taken for a value that had not survived, behind which the log ended: all that had been acknowledged since was lost.
func TestValuesWhoseFilesDoNotOpenAreNotLost(t *testing.T) {
	const n = 60
	fsys := memfs.New()
	o := Options{Profile: Relaxed, Compression: None}
	db := openMem(t, fsys, o)
	for i := range n {
		must(t, db.Put(fmt.Append(nil, i), bytes.Repeat([]byte{byte(i)}, 40_000)))
	}
	for skip, hit := 0, true; hit; skip++ {
		killed := faultfs.New(fsys.KillImage())
		killed.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpOpen), Name: "*.seg", Skip: skip, Times: -1})
		o.FS, o.MemoryBytes = killed, 1<<20
		if db, err := Open("db", &o); err == nil {
			_ = db.Close()
		}
		hit = killed.Triggered() > 0
		killed.Set()
		db, err := Open("db", &o)
		must(t, err)
		for i := range n {
			if v, err := db.Get(fmt.Append(nil, i)); err != nil || !bytes.Equal(v, bytes.Repeat([]byte{byte(i)}, 40_000)) {
				t.Fatalf("behind %d files that opened: record %d has %d bytes, %v", skip, i, len(v), err)
			}
		}
		must(t, db.Close())
	}
}
