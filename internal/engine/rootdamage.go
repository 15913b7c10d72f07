package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/spill"
	"github.com/pandodb/pando/internal/wal"
)

// absent says that there is no database, unless there are remains of one.
func (e *Engine) absent() error {
	err := e.refuseForeign()
	if errors.Is(err, ErrUnfinished) {
		return err
	}
	if _, missing := e.o.FS.Stat(e.path(root.Name)); errors.Is(err, corrupt.Err) && missing != nil { // else it is just being made
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
	var bulk bool // the last record stands for a bulk load that is not known to have failed
	_, err := wal.Replay(e.logOptions(slot), wal.Position(slot.Log), func(_ uint64, payload []byte, _ bool) error {
		if bulk { // it was committed, as the log went on behind it: by the slot that does not verify
			return corrupt.New(root.Name, 0, 0, "one slot does not verify, and the other one is older than a bulk load")
		}
		var err error
		bulk, err = e.mayHoldBulk(payload)
		return err
	})
	if errors.Is(err, corrupt.Err) {
		return fmt.Errorf("%w; %w", corrupt.New(root.Name, 0, 0, "one slot does not verify, and the log does not go on where the other one ends"), err)
	}
	return err
}

// unlessUnread puts what the device says of the root slot that it does not give back in the place of damage: the other one is an older state then,
// and the slot may be there again later.
func (e *Engine) unlessUnread(err error) error {
	if unread := e.root.Unread(); unread != nil && errors.Is(err, corrupt.Err) {
		return unread
	}
	return err
}

// mayHoldBulk reports whether a record of the log stands for a bulk load that is not known to have failed.
func (e *Engine) mayHoldBulk(payload []byte) (bool, error) {
	d := command.NewDecoder(payload)
	for d.Next() {
		c := d.Command()
		if c.Op != command.Bulk {
			continue
		}
		number, _ := c.Spilled()
		failed, err := spill.Failed(e.o.FS, e.o.Dir, number)
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		return err == nil && !failed, err
	}
	return false, d.Err()
}
