package pando

import (
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// What has settled is closed without an error on a full disk, too: a new file for the log, which would have saved space, is not needed.
func TestCloseOfWhatHasSettledOnAFullDisk(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{})
	const n = 50
	for i := range n {
		must(t, db.Put(fmt.Append(nil, "key", i), make([]byte, 900)))
	}
	must(t, db.Checkpoint(t.Context()))
	fsys.SetCapacity(1)
	must(t, db.Close())
	fsys.SetCapacity(0)
	db = openMem(t, fsys, Options{})
	if c, err := db.Count(nil, nil); c != n || err != nil {
		t.Errorf("%d records, %v", c, err)
	}
}
