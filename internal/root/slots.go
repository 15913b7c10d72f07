package root

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
)

// Slots reads the root file in dir for a tool that has to make do with what is left of it: the slots that verify, the newer one
// first, and for each that does not, what is wrong with it. An undamaged slot of another version is a *VersionError, a missing
// file fs.ErrNotExist.
func Slots(fsys vfs.FS, dir string) (slots []Slot, damage []error, err error) {
	b, err := vfs.ReadFile(fsys, filepath.Join(dir, Name), mostRead)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", Name, err)
	}
	for i := range int64(fileSize / slotSize) {
		from := min(i*slotSize, int64(len(b)))
		slot, err := decodeSlot(b[from:min(from+slotSize, int64(len(b)))])
		if version := (*VersionError)(nil); errors.As(err, &version) {
			return nil, nil, version
		}
		if err != nil {
			damage = append(damage, corrupt.New(Name, i*slotSize, slotSize, "slot: %v", err))
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
