package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// fullRun is a log on a disk that is full now and then, and what crashes would leave.
type fullRun struct {
	t      *testing.T
	rng    *rand.Rand
	disk   *memfs.FS
	faults *faultfs.FS
	l      *Log
	plain  bool
	h      history
	from   Position // recovery starts here
	skip   int      // records below from
	synced int      // records that a power cut must not take
	what   string
}

// TestDiskFullNowAndThen appends, syncs, recycles and shrinks while calls find no space, one or several in a row: what was appended is
// there after a kill, and what was synced after a power cut.
func TestDiskFullNowAndThen(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		for i := range uint64(usualFull * *roundsFlag) {
			seed := *seedFlag + i
			r := &fullRun{t: t, rng: rand.New(rand.NewPCG(seed, 17)), disk: newFS(t), plain: plain, from: Position{Segment: 1}}
			r.faults = faultfs.New(r.disk)
			var err error
			r.l, err = Create(options(r.faults, plain), 1)
			must(t, err)
			for step := range 50 {
				r.what = fmt.Sprintf("seed %d, step %d", seed, step)
				r.step()
			}
			r.faults.Set()
			must(t, r.l.Close())
		}
	})
}

// step does something, with a full disk or without, and crashes copies.
func (r *fullRun) step() {
	r.t.Helper()
	defer func() {
		if r.t.Failed() {
			r.t.Log(r.what)
		}
	}()
	r.faults.Set()
	if r.rng.IntN(3) == 0 {
		ops := []faultfs.Op{faultfs.OpWriteAt, faultfs.OpWriteAt, faultfs.OpAllocate, faultfs.OpCreate, faultfs.OpRename, faultfs.OpTruncate}
		op := faultfs.Ops(ops[r.rng.IntN(len(ops))])
		r.faults.Set(faultfs.Rule{Ops: op, Skip: r.rng.IntN(5), Times: 1 + r.rng.IntN(3), Err: vfs.ErrNoSpace})
	}
	var err error
	switch n := r.rng.IntN(16); {
	case n < 10:
		lengths := []int{10, 500, 3000, 6000, 9000, 20_000, 40_000}
		length := lengths[r.rng.IntN(len(lengths))]
		r.what += fmt.Sprint(", append ", length)
		err = r.h.append(r.t, r.l, length)
	case n < 12:
		r.what += ", sync"
		if err = r.l.Sync(); err == nil {
			r.synced = len(r.h.seqs)
		}
	case n == 12:
		r.what += ", prepare"
		err = r.l.Prepare()
	case n == 13:
		r.what += ", shrink"
		if err = r.l.Shrink(); err == nil {
			r.synced = len(r.h.seqs)
		}
	case r.synced > r.skip:
		r.what += ", recycle"
		r.skip += 1 + r.rng.IntN(r.synced-r.skip)
		r.from = r.h.ends[r.skip-1]
		err = r.l.Recycle(r.from)
	}
	if err != nil && !errors.Is(err, vfs.ErrNoSpace) {
		r.t.Fatal(err)
	}
	r.what += fmt.Sprintf(": %v", err)
	r.crash()
	if r.l.Err() != nil || r.rng.IntN(20) == 0 {
		r.restart()
	}
}

// crash recovers what a kill, and what a power cut would leave.
func (r *fullRun) crash() {
	r.t.Helper()
	r.recover(r.disk.KillImage(), len(r.h.seqs), "a kill")
	for _, p := range policies(r.rng) {
		r.recover(r.disk.CrashImage(p), r.synced, fmt.Sprintf("%+v", p))
	}
	r.disk.WriteBack(memfs.Policy{Unsynced: memfs.Random, Seed: r.rng.Uint64(), Torn: 512, Reordered: r.rng.IntN(2) == 0})
}

func (r *fullRun) recover(image *memfs.FS, least int, how string) {
	r.t.Helper()
	o := options(image, r.plain)
	if r.skip > 0 {
		o.Seq = r.h.seqs[r.skip-1]
	}
	var got replayed
	l, _, err := Recover(o, r.from, got.add)
	if err != nil {
		r.t.Fatalf("%s: %v", how, err)
	}
	n, err := got.prefixOf(&r.h, r.skip)
	if err != nil || r.skip+n < least {
		r.t.Fatalf("%s: %d records, want %d: %v", how, r.skip+n, least, err)
	}
	must(r.t, l.Close())
}

// restart goes on as after a kill.
func (r *fullRun) restart() {
	r.t.Helper()
	r.disk = r.disk.KillImage()
	r.faults.Set()
	_ = r.l.Close() // which may have failed
	r.faults = faultfs.New(r.disk)
	o := options(r.faults, r.plain)
	if r.skip > 0 {
		o.Seq = r.h.seqs[r.skip-1]
	}
	r.l, _ = recoverAll(r.t, o, r.from, &r.h, r.skip, len(r.h.seqs))
	r.synced = len(r.h.seqs)
}

// TestShrinkCutsWhatItCouldNotCut shrinks a log whose active file cannot be cut the first time, or one of whose spare files cannot be removed:
// the next Shrink cuts it, which once took it for cut.
func TestShrinkCutsWhatItCouldNotCut(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		for _, op := range []faultfs.Op{faultfs.OpTruncate, faultfs.OpRemove} {
			disk := newFS(t)
			faults := faultfs.New(disk)
			l, err := Create(options(faults, plain), 1)
			must(t, err)
			var h history
			must(t, h.append(t, l, 100))
			must(t, l.Prepare())
			active := l.o.path(l.Position().Segment)
			faults.Set(faultfs.Rule{Ops: faultfs.Ops(op)})
			if err := l.Shrink(); !errors.Is(err, faultfs.ErrInjected) {
				t.Fatal(err)
			}
			reserved := l.Reserved()
			must(t, l.Shrink())
			info, err := disk.Stat(active)
			must(t, err)
			if used := l.Position().Offset; info.Size != used {
				t.Errorf("%v fails: the file has %d bytes, of which %d are in use", op, info.Size, used)
			}
			if op == faultfs.OpTruncate && reserved == 0 || l.Reserved() != 0 {
				t.Errorf("%v fails: %d bytes are in reserve, %d when it has been cut", op, reserved, l.Reserved())
			}
			must(t, h.append(t, l, 100))
			must(t, l.Shrink())
			must(t, l.Close())
			again, _ := recoverAll(t, options(disk, plain), Position{Segment: 1}, &h, 0, 2)
			must(t, again.Close())
		}
	})
}
