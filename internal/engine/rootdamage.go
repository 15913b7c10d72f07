package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/wal"
	"github.com/pandodb/pando/vfs"
)

// refuseRootless keeps Open from making a new database where an old one has lost its root file. What a crash leaves of a
// database that was being made has neither a segment file nor a record in the log: it may be started afresh.
func refuseRootless(fsys vfs.FS, dir string) error {
	names, err := fsys.List(filepath.Join(dir, segment.DirName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(names) > 0 {
		return corrupt.New(root.Name, 0, 0, "the file is missing, but there is %s/%s", segment.DirName, names[0])
	}
	logs := filepath.Join(dir, logDir)
	databases, err := wal.Databases(fsys, logs)
	if err != nil {
		return err
	}
	for id := range databases {
		if err := wal.Salvage(context.Background(), wal.Options{FS: fsys, Dir: logs, Database: id}, anyRecord{}); err != nil {
			return err
		}
	}
	return nil
}

// absent says that there is no database, unless there are remains of one.
func (e *Engine) absent() error {
	err := refuseRootless(e.o.FS, e.o.Dir)
	if _, missing := e.o.FS.Stat(e.path(root.Name)); err != nil && missing != nil { // else it is just being made
		return err
	}
	return fmt.Errorf("no database there: %w", ErrNotFound)
}

// distrustOlder is asked when one of the two root slots does not verify. Either it was being stored when the power went, and
// then everything that the other one needs is there. Or it was damaged later, and may be the newer one: then the log in between
// may have been recycled, and segments removed, and what is left must not pass for the database. It is asked before anything
// is changed, so that Salvage can still find what belongs to the newer slot.
func (e *Engine) distrustOlder(slot root.Slot, table []segment.Info) error {
	for _, i := range table {
		if _, err := e.o.FS.Stat(e.path(filepath.Join(segment.DirName, segment.FileName(i.ID)))); errors.Is(err, fs.ErrNotExist) {
			return corrupt.New(root.Name, 0, 0, "one slot does not verify, and segment %d of the other one is missing: it is an older state", i.ID)
		} else if err != nil {
			return err
		}
	}
	_, err := wal.Replay(e.logOptions(slot), wal.Position(slot.Log), func(uint64, []byte, bool) error { return nil })
	if errors.Is(err, corrupt.Err) {
		return fmt.Errorf("%w; %w", corrupt.New(root.Name, 0, 0, "one slot does not verify, and the log does not go on where the other one ends"), err)
	}
	return err
}

// anyRecord fails when there is anything in a log.
type anyRecord struct{}

func (anyRecord) Record(seq, _ uint64, _ []byte) error {
	return corrupt.New(root.Name, 0, 0, "the file is missing, but the log holds record %d", seq)
}

func (anyRecord) Lost(_, _ uint64, err error) error { return err }
