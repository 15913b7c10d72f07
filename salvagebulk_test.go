package pando

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// bulkRecords is how many records largeBatch has.
const bulkRecords = 3000

// largeBatch returns a batch that is larger than memory.
func largeBatch(t *testing.T, db *DB) *Batch {
	t.Helper()
	b := db.NewBatch()
	for i := range bulkRecords {
		must(t, b.Put(fmt.Appendf(nil, "%06d", i), make([]byte, 100)))
	}
	return b
}

// withoutSlot damages one of the slots of ROOT, salvages what is left, and returns how many records there are.
func withoutSlot(t *testing.T, slot int, image *memfs.FS) (int64, *SalvageReport) {
	t.Helper()
	image = image.KillImage()
	f, err := image.OpenReadWrite("db/ROOT")
	must(t, err)
	_, err = f.WriteAt(make([]byte, 64), int64(slot)*4096+20)
	must(t, err)
	must(t, f.Close())
	report, err := Salvage(t.Context(), "db", "saved", &Options{FS: image, MemoryBytes: 1 << 20})
	must(t, err)
	return report.Records, report
}

// Of a bulk load the log only says that there was one: what commits it is a root. Where that one's slot was damaged, the older slot once
// counted because the log goes on where it ends, and all that was loaded was missing, without a word.
func TestSalvageFindsABulkLoadBehindTheOlderSlot(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{})
	must(t, db.Put([]byte("first"), nil))
	must(t, db.Checkpoint(t.Context()))
	must(t, db.Write(largeBatch(t, db)))
	must(t, db.Put([]byte("later"), nil))
	image := fsys.CrashImage(memfs.Policy{Unsynced: memfs.None})
	for slot := range 2 {
		if n, report := withoutSlot(t, slot, image); n != bulkRecords+2 || len(report.Lost) != 1 {
			t.Errorf("without slot %d: %s", slot, report)
		}
	}

	// The segment with the newest catalogue is gone too.
	segments, err := image.List("db/segments")
	must(t, err)
	must(t, image.Remove("db/segments/"+segments[len(segments)-1]))
	told := false
	for slot := range 2 {
		_, report := withoutSlot(t, slot, image)
		told = told || strings.Contains(report.String(), fmt.Sprintf("bulk load of commands 2 to %d", bulkRecords+1))
	}
	if !told {
		t.Error("nobody hears of the bulk load")
	}
}

// A bulk load that failed has left a record in the log, and perhaps a catalogue in the segments: it is not brought back.
func TestSalvageLeavesABulkLoadOutThatFailed(t *testing.T) {
	logged := 0
	for skip := 0; ; skip++ {
		base := memfs.New()
		fsys := faultfs.New(base)
		db := openMem(t, fsys, Options{KeepChanges: 1 << 30})
		must(t, db.Put([]byte("first"), nil))
		must(t, db.Checkpoint(t.Context()))
		b := largeBatch(t, db)
		fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt, faultfs.OpSync), Skip: skip, Err: vfs.ErrNoSpace})
		err := db.Write(b)
		fsys.Set()
		b.Reset()
		if err == nil {
			break
		}
		if db.Put([]byte("later"), nil) != nil {
			continue // it has failed for good
		}
		image := base.KillImage()
		if names, err := image.List("db/spill"); err == nil && len(names) > 0 {
			logged++
		}
		for slot := range 2 {
			if n, report := withoutSlot(t, slot, image); n != 2 || len(report.Lost) != 1 {
				t.Errorf("call %d fails, without slot %d: %s", skip, slot, report)
			}
		}
	}
	if logged == 0 {
		t.Error("no load failed behind its record in the log")
	}
}
