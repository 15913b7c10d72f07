package pando

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A salvage that a panic of its caller ends leaves nothing open, nothing locked and nothing where the new database was to be.
func TestSalvageThatPanicsLeavesNothing(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	db := openMem(t, fsys, Options{})
	for i := range 1000 {
		must(t, db.Put(fmt.Appendf(nil, "key %d", i), make([]byte, 100)))
	}
	must(t, db.Close())
	open := len(fsys.Leaks())
	for what, attempt := range map[string]func() error{
		"progress": func() error {
			ctx := WithProgress(t.Context(), func(done, _ int64) {
				if done > 100 {
					panic("of a caller")
				}
			})
			_, err := Salvage(ctx, "db", "new", &Options{FS: fsys})
			return err
		},
		"finish": func() error {
			_, err := SalvageWith(t.Context(), "db", "new", &Options{FS: fsys}, func(*DB, *SalvageReport) error { panic("of a caller") })
			return err
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: nothing has panicked", what)
				}
			}()
			_ = attempt()
		}()
		if leaks := fsys.Leaks(); len(leaks) > open {
			t.Errorf("%s: open behind it: %q", what, leaks)
		}
		if _, err := fsys.Stat("new"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the directory of the new database: %v", what, err)
		}
	}
	report, err := Salvage(context.Background(), "db", "new", &Options{FS: fsys})
	must(t, err)
	if report.Records != 1000 {
		t.Errorf("%d records", report.Records)
	}
}
