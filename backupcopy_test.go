package pando

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// Where the file system has no links, a backup that was cut off once left copies that were complete but not on stable storage. The
// next one found them as they should be, and a power cut took them from under a backup that had succeeded.
func TestCopiesThatWereNotSyncedAreMadeAgain(t *testing.T) {
	base := memfs.New()
	fsys := faultfs.New(base)
	spared := -1 // syncs in the backup until one fails; negative: none does
	fsys.OnCall(func(op faultfs.Op, name string) error {
		switch {
		case op == faultfs.OpLink:
			return errors.ErrUnsupported
		case op == faultfs.OpSync && strings.HasPrefix(name, "backup"):
			if spared--; spared == -1 {
				return faultfs.ErrInjected
			}
		}
		return nil
	})
	db, err := Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i := range 2000 {
		if err := db.Put(fmt.Append(nil, i), fmt.Appendf(nil, "value %d", i*i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // one of them fails at the segment with the records
		spared = i
		if err := db.Backup(t.Context(), "backup"); err != nil && !errors.Is(err, faultfs.ErrInjected) {
			t.Fatalf("a sync fails: %v", err)
		}
	}
	spared = -1
	if err := db.Backup(t.Context(), "backup"); err != nil {
		t.Fatal(err)
	}
	image := base.CrashImage(memfs.Policy{Unsynced: memfs.None})
	copied, err := Open("backup", &Options{FS: image, MemoryBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	report, err := copied.Check(t.Context())
	if err = errors.Join(err, report.Err(), copied.Close()); err != nil {
		t.Error(err)
	}
	if names, err := image.List("backup/segments"); err != nil || strings.Contains(strings.Join(names, " "), "new") {
		t.Errorf("the backup has the segments %v, %v", names, err)
	}
}
