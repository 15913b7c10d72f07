package wal

import (
	"errors"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
)

// A long record for which there is not enough space leaves segments ready. When the first of them is given up later, for want of space too,
// those behind it are not used either: their headers name it, and nothing leads to what would be written there.
func TestWhatFollowsASegmentThatWasGivenUp(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		disk := newFS(t)
		faults := faultfs.New(disk)
		l, err := Create(options(faults, plain), 1)
		must(t, err)
		var h history
		must(t, h.append(t, l, 100))
		faults.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpAllocate), Skip: 2, Err: vfs.ErrNoSpace})
		if err := h.append(t, l, 3*MinSegmentBytes); !errors.Is(err, vfs.ErrNoSpace) {
			t.Fatal(err)
		}
		faults.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Name: baseName(2), Err: vfs.ErrNoSpace})
		for err = h.append(t, l, 1000); err == nil; {
			err = h.append(t, l, 1000)
		}
		if !errors.Is(err, vfs.ErrNoSpace) || l.Err() != nil {
			t.Fatal(err, l.Err())
		}
		faults.Set()
		for range 3 {
			must(t, h.append(t, l, 1000))
			must(t, l.Sync())
		}
		killed := disk.KillImage()
		must(t, l.Close())
		for _, o := range []Options{options(disk, plain), options(killed, plain)} {
			again, _ := recoverAll(t, o, Position{Segment: 1}, &h, 0, len(h.seqs))
			must(t, again.Close())
		}
	})
}
