package corrupt

import (
	"context"
	"errors"
	"path"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// broken is a file system on which one file cannot be read.
type broken struct {
	vfs.FS
	name string
}

type brokenFile struct{ vfs.File }

var errDevice = errors.New("the device fails")

func (b broken) Open(name string) (vfs.File, error) {
	f, err := b.FS.Open(name)
	if err == nil && path.Clean(name) == b.name {
		f = brokenFile{f}
	}
	return f, err
}

func (brokenFile) ReadAt([]byte, int64) (int, error) { return 0, errDevice }

// A file that the device does not give back is damage like any other; one of the log once ended the salvage.
func TestSalvageWithoutAFileThatCannotBeRead(t *testing.T) {
	s := newSample(t)
	all := 0
	for _, pairs := range s.final() {
		all += len(pairs)
	}
	for _, name := range s.files {
		report, err := pando.Salvage(context.Background(), dir, "target", options(broken{s.image.KillImage(), name}))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if report.Records == 0 || len(report.Lost) == 0 && report.Records != int64(all) {
			t.Errorf("%s: %d records, lost %v", name, report.Records, report.Lost)
		}
	}
}

// A backup has a log without a record, which was once called a loss.
func TestSalvageOfABackupLosesNothing(t *testing.T) {
	fsys := memfs.New()
	db, err := pando.Open(dir, options(fsys))
	must(t, err)
	must(t, db.Put([]byte("key"), []byte("value")))
	must(t, db.Backup(context.Background(), "backup"))
	must(t, db.Close())
	report, err := pando.Salvage(context.Background(), "backup", "target", options(fsys))
	must(t, err)
	if report.Records != 1 || len(report.Lost) != 0 {
		t.Errorf("%d records, lost %v", report.Records, report.Lost)
	}
}
