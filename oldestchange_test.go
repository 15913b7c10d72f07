package pando

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// OldestChange is where the changes can be asked for from, also after a kill: files of the log that wait to be used again were once taken
// for log that is kept, though values and files of batches that it tells of had gone.
func TestChangesReachBackToOldestChangeAfterAKill(t *testing.T) {
	fsys := memfs.New()
	o := Options{KeepChanges: 64 << 10, Compression: None}
	db := openMem(t, fsys, o)
	for i := range 2000 { // with little data the log keeps no files
		must(t, db.Put(fmt.Append(nil, "before", i), make([]byte, 900)))
	}
	for round := range byte(8) {
		for i := range 60 {
			must(t, db.Put(fmt.Append(nil, "long", i%7), bytes.Repeat([]byte{round}, 40_000)))
			must(t, db.Put(fmt.Append(nil, "short", i), bytes.Repeat([]byte{round}, 900)))
		}
		must(t, db.Checkpoint(t.Context()))
		before := db.OldestChange()
		killed := openMem(t, fsys.KillImage(), o)
		oldest := killed.OldestChange()
		if oldest < before {
			t.Errorf("round %d: the oldest change was %d, and is %d after a kill", round, before, oldest)
		}
		for _, err := range killed.Changes(t.Context(), ChangesOptions{From: oldest}) {
			if err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
	}
}
