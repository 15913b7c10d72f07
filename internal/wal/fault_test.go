package wal

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
	"github.com/pandodb/pando/vfs/osfs"
)

// A failed sync is final, whatever the kernel remembers of it, and recovery believes only what it has made durable itself.
func TestFailedSyncPoisons(t *testing.T) {
	for _, fault := range []faultfs.Fault{faultfs.Fail, faultfs.DropSync, faultfs.DropSyncOnce} {
		for _, later := range []bool{false, true} { // recovery makes it durable at once, or before the next sync
			inModes(t, func(t *testing.T, plain bool) { failSync(t, plain, fault, later) })
		}
	}
}

func failSync(t *testing.T, plain bool, fault faultfs.Fault, later bool) {
	disk := newFS(t)
	faults := faultfs.New(disk)
	l, err := Create(options(faults, plain), 1)
	must(t, err)
	var h history
	must(t, h.append(t, l, 100))
	must(t, l.Sync())
	must(t, h.append(t, l, 3000))
	must(t, h.append(t, l, 100))
	faults.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync), Fault: fault})
	if err := l.Sync(); !errors.Is(err, ErrFailed) || !errors.Is(err, faultfs.ErrInjected) {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Sync(); !errors.Is(err, ErrFailed) {
			t.Fatal(err)
		}
		if _, err := l.Append(1000, nil); !errors.Is(err, ErrFailed) {
			t.Fatal(err)
		}
	}
	if err := l.Prepare(); !errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
	must(t, l.Close())
	if leaks := faults.Leaks(); len(leaks) > 0 {
		t.Fatal(leaks)
	}
	// The process goes on, and the cache of the system has everything.
	o := options(disk, plain)
	o.SettleLater = later
	l, _ = recoverAll(t, o, Position{Segment: 1}, &h, 0, 3)
	must(t, h.append(t, l, 10))
	must(t, l.Sync())
	image := disk.CrashImage(memfs.Policy{Unsynced: memfs.None})
	must(t, l.Close())
	l, _ = recoverAll(t, options(image, plain), Position{Segment: 1}, &h, 0, 4)
	must(t, l.Close())
}

// Every call fails once, at every place; the log tells, and what was acknowledged is there afterwards.
func TestFailAtEveryCall(t *testing.T) {
	for _, cause := range []error{vfs.ErrNoSpace, errors.New("broken device")} {
		inModes(t, func(t *testing.T, plain bool) {
			for k := 0; ; k++ {
				if !failAt(t, plain, k, cause) {
					break
				}
			}
		})
	}
}

func failAt(t *testing.T, plain bool, k int, cause error) (triggered bool) {
	disk := newFS(t)
	faults := faultfs.New(disk)
	var h history
	l, err := Create(options(faults, plain), 1)
	must(t, err)
	faults.Set(faultfs.Rule{Ops: faultfs.All, Skip: k, Err: cause})
	synced, failures := 0, 0
	check := func(err error) {
		if err != nil {
			failures++
			if !errors.Is(err, cause) && !errors.Is(err, ErrFailed) {
				t.Fatalf("call %d: %v", k, err)
			}
		}
	}
	for i, n := range []int{10, 7000, 4000, 100, 30000, 10, 10, 8000, 8000, 10} {
		check(h.append(t, l, n))
		switch i {
		case 1, 4, 7:
			err := l.Sync()
			check(err)
			if err == nil {
				synced = len(h.seqs)
			}
		case 5:
			check(l.Recycle(Position{}))
		case 6:
			check(l.Prepare())
		}
	}
	if errors.Is(cause, vfs.ErrNoSpace) && l.Err() == nil && faults.Triggered() > 0 {
		must(t, h.append(t, l, 20000)) // works again
	}
	check(l.Close())
	if leaks := faults.Leaks(); len(leaks) > 0 {
		t.Fatalf("call %d: %v", k, leaks)
	}
	triggered = faults.Triggered() > 0
	if triggered && failures == 0 {
		t.Fatalf("call %d failed and nobody was told", k)
	}
	image := disk.CrashImage(memfs.Policy{Unsynced: memfs.None})
	again, _ := recoverAll(t, options(disk, plain), Position{Segment: 1}, &h, 0, len(h.seqs))
	must(t, again.Close())
	again, _ = recoverAll(t, options(image, plain), Position{Segment: 1}, &h, 0, synced)
	must(t, again.Close())
	return triggered
}

// A roll that finds no space has written nothing, and works when there is space again.
func TestDiskFullOnRoll(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		disk := newFS(t)
		l, err := Create(options(disk, plain), 1)
		must(t, err)
		disk.SetCapacity(MinSegmentBytes*2 + 4096)
		var h history
		for h.append(t, l, 1000) == nil {
		}
		n := len(h.seqs)
		if n < 14 || n > 16 {
			t.Fatalf("%d records fit", n)
		}
		must(t, l.Sync())
		end := l.Position()
		for range 3 {
			if _, err := l.Append(1000, make([]byte, 20000)); !errors.Is(err, vfs.ErrNoSpace) {
				t.Fatal(err)
			}
		}
		if l.Position() != end {
			t.Fatalf("position %v, was %v", l.Position(), end)
		}
		disk.SetCapacity(0)
		must(t, h.append(t, l, 50000))
		must(t, l.Close())
		l, _ = recoverAll(t, options(disk, plain), Position{Segment: 1}, &h, 0, n+1)
		must(t, l.Close())
	})
}

// Recovery of a full disk works, and so does recycling, which makes room for appending again.
func TestRecoverOnFullDisk(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		disk := newFS(t)
		l, err := Create(options(disk, plain), 1)
		must(t, err)
		var h history
		for range 30 {
			must(t, h.append(t, l, 1000))
		}
		killed := disk.KillImage()
		must(t, l.Close())
		killed.SetCapacity(1)
		l, _ = recoverAll(t, options(killed, plain), Position{Segment: 1}, &h, 0, 30)
		if _, err := l.Append(1000, nil); !errors.Is(err, vfs.ErrNoSpace) {
			t.Fatal(err)
		}
		must(t, l.Recycle(l.Position()))
		must(t, h.append(t, l, 1000))
		must(t, l.Close())
	})
}

// The device behind a mapping goes away: an error, not the end of the process.
func TestFaultInMapping(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("cutting a mapped file is not possible everywhere")
	}
	o := options(osfs.New(), false)
	o.Dir = t.TempDir()
	l, err := Create(o, 1)
	must(t, err)
	_, err = l.Append(1, nil)
	must(t, err)
	f, err := o.FS.OpenReadWrite(o.path(1))
	must(t, err)
	must(t, f.Truncate(firstFrame))
	must(t, f.Close())
	_, err = l.Append(2, make([]byte, 5000))
	if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "fault in the mapping") {
		t.Fatal(err)
	}
	if _, err := l.Append(3, nil); !errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
	if err := l.Sync(); !errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
	must(t, l.Close())
}

// A record that was cut by the callback stays cut; one that was durable is damage.
func TestCallbackCuts(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		o := options(newFS(t), plain)
		l, err := Create(o, 1)
		must(t, err)
		var h history
		for range 3 {
			must(t, h.append(t, l, 9000))
		}
		must(t, l.Sync())
		for range 3 {
			must(t, h.append(t, l, 9000))
		}
		disk := o.FS.(*memfs.FS).KillImage()
		must(t, l.Close())
		o = options(disk, plain)

		cutAt := func(i int) func(seq uint64, p []byte, _ bool) error {
			return func(seq uint64, p []byte, _ bool) error {
				if seq == h.seqs[i] {
					return ErrCut
				}
				return nil
			}
		}
		if _, _, err := Recover(o, Position{Segment: 1}, cutAt(2)); !errors.Is(err, corrupt.Err) {
			t.Fatalf("durable record: %v", err)
		}
		stop := errors.New("stop")
		if _, _, err := Recover(o, Position{Segment: 1}, func(uint64, []byte, bool) error { return stop }); !errors.Is(err, stop) {
			t.Fatal(err)
		}
		l, rec, err := Recover(o, Position{Segment: 1}, cutAt(4))
		must(t, err)
		if rec.Records != 4 || rec.Cut == nil || *rec.Cut != h.ends[3] || rec.End != h.ends[3] {
			t.Fatalf("%+v, want a cut at %v", rec, h.ends[3])
		}
		kept := history{h.seqs[:4:4], h.payloads[:4:4], h.ends[:4:4]}
		for range 2 {
			must(t, l.Close())
			l, _ = recoverAll(t, o, Position{Segment: 1}, &kept, 0, 4)
		}
		must(t, kept.append(t, l, 9000))
		must(t, l.Close())
		l, _ = recoverAll(t, o, Position{Segment: 1}, &kept, 0, 5)
		must(t, l.Close())
	})
}

// Every single damaged byte is either told of or does no harm; a wrong record is never delivered and none is lost silently.
func TestEveryByteDamaged(t *testing.T) {
	disk := newFS(t)
	o := options(disk, true)
	l, err := Create(o, 1)
	must(t, err)
	var h history
	for _, n := range []int{100, 0, 3000, 7000, 5, 3000, 20} {
		must(t, h.append(t, l, n))
		must(t, l.Sync())
	}
	must(t, l.Close())
	names, err := disk.List(dir)
	must(t, err)
	for _, name := range names {
		f, err := disk.OpenReadWrite(dir + "/" + name)
		must(t, err)
		size, err := f.Size()
		must(t, err)
		told := 0
		for offset := int64(0); offset < size; offset += usualByteStep {
			var b [1]byte
			if _, err := f.ReadAt(b[:], offset); err != nil && err != io.EOF {
				t.Fatal(err)
			}
			old := b[0]
			b[0] ^= 1 << (offset % 8)
			_, err := f.WriteAt(b[:], offset)
			must(t, err)
			var r replayed
			rec, err := Replay(o, Position{Segment: 1}, r.add)
			n, wrong := r.prefixOf(&h, 0)
			switch {
			case wrong != nil:
				t.Fatalf("%s, byte %d: %v", name, offset, wrong)
			case err == nil && n != len(h.seqs):
				t.Fatalf("%s, byte %d: %d records and no error: %+v", name, offset, n, rec)
			case err != nil && !errors.Is(err, corrupt.Err):
				t.Fatalf("%s, byte %d: %v", name, offset, err)
			case err != nil:
				told++
			}
			b[0] = old
			_, err = f.WriteAt(b[:], offset)
			must(t, err)
		}
		must(t, f.Close())
		t.Logf("%s: damage to %d of %d bytes is an error", name, told, size)
	}
}

// TestRecoverOpensSmallSegmentOnce recovers a log as a clean close leaves it: what was read to see what the file is has all of it.
func TestRecoverOpensSmallSegmentOnce(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		disk := newFS(t)
		l, err := Create(options(disk, plain), 1)
		must(t, err)
		var h history
		must(t, h.append(t, l, 100))
		must(t, h.append(t, l, 7))
		must(t, l.Shrink())
		must(t, l.Close())
		info, err := disk.Stat(l.o.path(1))
		must(t, err)
		if info.Size >= leastMapped {
			t.Fatalf("the segment has %d bytes: not a small one", info.Size)
		}
		faults := faultfs.New(disk)
		l, _ = recoverAll(t, options(faults, plain), Position{Segment: 1}, &h, 0, 2)
		if n := faults.Count(faultfs.OpOpen); n != 1 {
			t.Errorf("opened %d times for reading", n)
		}
		must(t, l.Close())
	})
}
