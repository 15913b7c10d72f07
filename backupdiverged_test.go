package pando

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// Two databases that were one have different segments under the same numbers. A backup of one of them onto that of the other once
// replaced these before it had said that the earlier backup is none any more: what was left then was damaged.
func TestBackupOfADatabaseThatWentAnotherWay(t *testing.T) {
	base := memfs.New()
	with := func(dir string, fns ...func(*DB) error) {
		t.Helper()
		db, err := Open(dir, &Options{FS: base, MemoryBytes: 1 << 20})
		must(t, err)
		for _, fn := range fns {
			must(t, fn(db))
		}
		must(t, db.Close())
	}
	fill := func(prefix string) func(*DB) error {
		return func(db *DB) error {
			for i := range 300 {
				must(t, db.Put(fmt.Appendf(nil, "%s%05d", prefix, i), make([]byte, 100)))
			}
			return db.Checkpoint(t.Context())
		}
	}
	backup := func(dir string) func(*DB) error { return func(db *DB) error { return db.Backup(t.Context(), dir) } }
	with("one", fill("shared"), backup("other"), fill("one"), backup("backup")) // with 600 records
	with("other", fill("a"), fill("b"), fill("c"))                              // it has 1,200
	for _, links := range []bool{true, false} {
		for skip, more := 0, true; more; skip++ {
			more = backupThatFails(t, base.KillImage(), links, skip)
		}
	}
}

// backupThatFails lets one call of such a backup fail, and looks at what a power cut, or none, leaves in its place. It reports whether
// there was such a call.
func backupThatFails(t *testing.T, base *memfs.FS, links bool, skip int) (hit bool) {
	fsys, counts := faultfs.New(base), false
	fsys.OnCall(func(op faultfs.Op, name string) error {
		switch {
		case op == faultfs.OpLink && !links:
			return errors.ErrUnsupported
		case strings.HasPrefix(name, "backup") && counts: // in this order: the background calls too
			if skip--; skip == -1 {
				hit = true
				return faultfs.ErrInjected
			}
		}
		return nil
	})
	db, err := Open("other", &Options{FS: fsys, MemoryBytes: 1 << 20})
	must(t, err)
	defer db.Close()
	counts = true
	failed := db.Backup(t.Context(), "backup")
	counts = false
	for _, unsynced := range []memfs.Unsynced{memfs.None, memfs.All} {
		isOneOf(t, base.CrashImage(memfs.Policy{Unsynced: unsynced}), failed, 600, 1200)
	}
	must(t, db.Backup(t.Context(), "backup"))
	isOneOf(t, base, nil, 600, 1200)
	return hit
}

// isOneOf wants a backup to be whole, with one of two numbers of records, or to say that it is none. Unless the backup has failed it
// is the later one.
func isOneOf(t *testing.T, fsys *memfs.FS, failed error, earlier, later int64) {
	t.Helper()
	db, err := Open("backup", &Options{FS: fsys, ReadOnly: true, MemoryBytes: 1 << 20})
	if failed != nil && errors.Is(err, ErrUnfinished) {
		return
	}
	if err != nil {
		t.Fatalf("after %v: %v", failed, err)
	}
	defer db.Close()
	report, err := db.Check(t.Context())
	must(t, errors.Join(err, report.Err()))
	n, err := db.Count(nil, nil)
	must(t, err)
	if n != later && (failed == nil || n != earlier) {
		t.Fatalf("after %v: %d records", failed, n)
	}
}
