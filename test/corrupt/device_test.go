package corrupt

import (
	"context"
	"errors"
	"fmt"
	"path"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
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

// A salvage that fails removes what it has made, so that it can be tried again, and nothing is left open.
func TestSalvageThatFailsLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	many := memfs.New() // more than a batch holds in memory
	db, err := pando.Open(dir, options(many))
	must(t, err)
	for i := range 2000 {
		must(t, db.Put(fmt.Append(nil, i), distinct(i)[:100]))
	}
	must(t, db.Close())
	for source, image := range map[string]*memfs.FS{"all kinds": newSample(t).image, "many": many} {
		for name, rule := range map[string]faultfs.Rule{
			"io error":  {Ops: faultfs.Mutating &^ faultfs.Ops(faultfs.OpRemove)},
			"disk full": {Ops: faultfs.Mutating &^ faultfs.Ops(faultfs.OpRemove, faultfs.OpSync, faultfs.OpSyncDir, faultfs.OpLock), Err: vfs.ErrNoSpace},
			"read":      {Ops: faultfs.Ops(faultfs.OpReadAt, faultfs.OpOpen)},
		} {
			t.Run(source+"/"+name, func(t *testing.T) {
				for salvageFails(t, image, rule) {
					rule.Skip += 1 + rule.Skip/failureStep
				}
			})
		}
	}
}

// salvageFails reports whether a salvage came to the fault.
func salvageFails(t *testing.T, source *memfs.FS, rule faultfs.Rule) bool {
	image := source.KillImage()
	fsys := faultfs.New(image)
	fsys.Set(rule)
	report, err := pando.Salvage(context.Background(), dir, "target", options(fsys))
	hit := fsys.Triggered() > 0
	if leaks := fsys.Leaks(); len(leaks) > 0 {
		t.Fatalf("call %d: left open: %v", rule.Skip, leaks)
	}
	if err != nil && !hit {
		t.Fatalf("without a fault: %v", err)
	}
	if names, listing := image.List("target"); err != nil && listing == nil {
		t.Fatalf("call %d: %v (%v), which left %q", rule.Skip, err, report, names)
	}
	return hit
}
