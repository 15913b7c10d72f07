package wal

import (
	"errors"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A long record that finds no space for all of its segments leaves those that are ready. A shorter one that finds none when it is written
// into the first of them gives that up; those behind it once stayed, and what was appended to them could not be reached any more.
func TestSegmentsBehindOneThatIsGivenUp(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		disk := newFS(t)
		faults := faultfs.New(disk)
		l, err := Create(options(faults, plain), 1)
		must(t, err)
		var h history
		must(t, h.append(t, l, 6000)) // the rest of the segment is too small for what follows
		faults.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpAllocate), Skip: 2, Err: vfs.ErrNoSpace})
		if err := h.append(t, l, 30000); !errors.Is(err, vfs.ErrNoSpace) {
			t.Fatalf("the third segment finds no space: %v", err)
		}
		faults.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Err: vfs.ErrNoSpace, Name: baseName(2)})
		if err := h.append(t, l, 4000); !errors.Is(err, vfs.ErrNoSpace) || l.Err() != nil {
			t.Fatalf("the segment that was ready finds no space: %v, %v", err, l.Err())
		}
		faults.Set()
		for range 3 {
			must(t, h.append(t, l, 4000))
		}
		must(t, l.Sync())
		cut, killed := disk.CrashImage(memfs.Policy{}), disk.KillImage()
		must(t, l.Close())
		for _, disk := range []*memfs.FS{disk, cut, killed} {
			l, _ := recoverAll(t, options(disk, plain), Position{Segment: 1}, &h, 0, len(h.seqs))
			must(t, l.Close())
		}
	})
}

// A record that begins in a new segment, and finds no space in the one behind it, is given up. The file of the second is used again at once, and
// goes when that finds no space either: what stood in the first looked then like a record of which the rest is lost.
func TestRecordThatIsGivenUpInItsSecondSegment(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		disk := newFS(t)
		faults := faultfs.New(disk)
		l, err := Create(options(faults, plain), 1)
		must(t, err)
		var h history
		// All of the segment.
		must(t, h.append(t, l, int(roomOf(MinSegmentBytes))))
		// The header of the next but one is written, twice.
		full := faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Err: vfs.ErrNoSpace, Name: baseName(3), Skip: 2}
		faults.Set(full)
		if err := h.append(t, l, 12_000); !errors.Is(err, vfs.ErrNoSpace) || l.Err() != nil {
			t.Fatalf("the second segment of the record finds no space: %v, %v", err, l.Err())
		}
		full.Name, full.Skip = baseName(4), 0
		faults.Set(full)
		if err := l.Prepare(); !errors.Is(err, vfs.ErrNoSpace) || l.Err() != nil {
			t.Fatalf("nor does the segment that takes its file: %v, %v", err, l.Err())
		}
		killed := disk.KillImage()
		faults.Set()
		must(t, l.Close())
		for _, disk := range []*memfs.FS{disk, killed} {
			l, _ := recoverAll(t, options(disk, plain), Position{Segment: 1}, &h, 0, len(h.seqs))
			must(t, l.Close())
		}
	})
}
