package root

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
)

// Slots reads the root file in dir for a tool that has to make do with what is left of it: the slots that verify, the newer one
// first, and for each that does not, or that the device does not give back, what is wrong with it. An undamaged slot of another version is a
// *VersionError, a missing file fs.ErrNotExist.
func Slots(fsys vfs.FS, dir string) (slots []Slot, damage []error, err error) {
	file, err := fsys.Open(filepath.Join(dir, Name))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", Name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if size, err := file.Size(); err != nil || size > mostRead {
		return nil, nil, fmt.Errorf("read %s of %d bytes: %w", Name, size, cmp.Or(err, vfs.ErrTooLarge))
	}
	for place := range int64(fileSize / slotSize) {
		slot, err := (&File{file: file}).slot(nil, place)
		if version := (*VersionError)(nil); errors.As(err, &version) {
			return nil, nil, version
		}
		if err != nil {
			damage = append(damage, corrupt.New(Name, place*slotSize, slotSize, "slot: %v", err))
			continue
		}
		slots = append(slots, slot)
	}
	if len(slots) == 2 && slots[0].Generation < slots[1].Generation {
		slots[0], slots[1] = slots[1], slots[0]
	}
	return slots, damage, nil
}

// mostRead is the length from which on a file is certainly no root file, whatever was appended to it.
const mostRead = 1 << 20
