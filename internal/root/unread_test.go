package root

import (
	"errors"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
)

// spoilt is a file system on a device that does not give some slots of the root file back.
type spoilt struct {
	vfs.FS
	slots [2]bool
}

type spoiltFile struct {
	vfs.File
	fs *spoilt
}

var errDevice = errors.New("the device fails")

func (s *spoilt) Open(name string) (vfs.File, error) {
	f, err := s.FS.Open(name)
	return &spoiltFile{f, s}, err
}

func (s *spoilt) OpenReadWrite(name string) (vfs.File, error) {
	f, err := s.FS.OpenReadWrite(name)
	return &spoiltFile{f, s}, err
}

func (f *spoiltFile) ReadAt(b []byte, offset int64) (int, error) {
	for i, spoilt := range f.fs.slots {
		if from := int64(i) * slotSize; spoilt && offset < from+slotSize && from < offset+int64(len(b)) {
			n, _ := f.File.ReadAt(b[:max(from-offset, 0)], offset)
			return n, errDevice
		}
	}
	return f.File.ReadAt(b, offset)
}

// WriteAt gives a place another sector, as devices do.
func (f *spoiltFile) WriteAt(b []byte, offset int64) (int, error) {
	f.fs.slots[offset/slotSize] = false
	return f.File.WriteAt(b, offset)
}

// A slot that the device does not give back is like one that does not verify: the other one counts, and the next Store repairs it.
func TestSlotThatCannotBeRead(t *testing.T) {
	for bad := range 2 {
		fsys := &spoilt{FS: newFS(t)}
		f, err := Create(fsys, testDir, exampleSlot())
		must(t, err)
		left := f.Current()
		left.Generation = uint64(2 - bad) // of the slot that can be read
		must(t, f.Close())
		fsys.slots[bad] = true

		slots, damage, err := Slots(fsys, testDir)
		if err != nil || len(slots) != 1 || slots[0] != left || len(damage) != 1 || !errors.Is(damage[0], corrupt.Err) {
			t.Errorf("slot %d: Slots: %+v, %v, %v", bad, slots, damage, err)
		}
		f, err = Open(fsys, testDir)
		must(t, err)
		if f.Current() != left || !f.Damaged() || !f.Alone() || !errors.Is(f.Unread(), errDevice) {
			t.Errorf("slot %d: %+v, damaged %v, alone %v, unread: %v", bad, f.Current(), f.Damaged(), f.Alone(), f.Unread())
		}
		left.Seq++
		must(t, f.Store(left))
		must(t, f.Close())
		f, err = Open(fsys, testDir)
		must(t, err)
		if f.Current().Seq != left.Seq || f.Damaged() || f.Unread() != nil {
			t.Errorf("slot %d, stored again: %+v, damaged %v, unread: %v", bad, f.Current(), f.Damaged(), f.Unread())
		}
		must(t, f.Close())
	}
}

// Where neither slot can be believed and one cannot be read, it is the device that fails: that may pass.
func TestNoSlotThatCanBeRead(t *testing.T) {
	for _, slots := range [][2]bool{{true, true}, {false, true}, {true, false}} {
		fsys := &spoilt{FS: newFS(t)}
		f, err := Create(fsys, testDir, exampleSlot())
		must(t, err)
		for i, spoilt := range slots {
			if !spoilt {
				_, err := f.file.WriteAt([]byte("damage"), int64(i)*slotSize+200)
				must(t, err)
			}
		}
		must(t, f.Close())
		fsys.slots = slots
		if _, err := Open(fsys, testDir); !errors.Is(err, errDevice) || errors.Is(err, corrupt.Err) {
			t.Errorf("unreadable slots %v: %v", slots, err)
		}
	}
}
