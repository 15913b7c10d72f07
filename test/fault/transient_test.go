package fault

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestReadsThatFailNowAndThen writes, settles, cleans and opens again while some reads of the device fail, or bring a wrong bit: what was
// acknowledged is there when they work again. What one read calls damage must not be given up for good.
func TestReadsThatFailNowAndThen(t *testing.T) {
	for seed := range uint64(usualSectors) {
		newFlaky(t, seed, hiccups).run()
		newFlaky(t, seed, flips).run()
	}
}

// TestSectorsThatFailForAWhile is the same where sectors cannot be read for many calls on end. Without a pause no time passes, so that
// none of them is given up.
func TestSectorsThatFailForAWhile(t *testing.T) {
	for i := range uint64(*flakySeeds) {
		synctest.Test(t, func(t *testing.T) { newFlaky(t, *flakySeed+i, whole).run() })
	}
}

// trouble is what reads meet.
type trouble int

const (
	hiccups trouble = iota // an error now and then
	flips                  // a wrong bit instead
	whole                  // sectors that fail until they are mended
)

var (
	flakySeed  = flag.Uint64("flaky.seed", 0, "the first seed of the sectors that fail")
	flakySeeds = flag.Int("flaky.seeds", usualSectors, "how many seeds there are")
)

// flaky is a database on a device that fails to read at times.
type flaky struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	fs      *faultfs.FS
	device  *sectors
	kind    trouble
	failing bool
	fail    func(on bool)
	db      *pando.DB
	want    map[string][]byte
	unsure  map[string]bool // their last write failed
	hiccups int             // so many there were
}

const flakyKeys = 3000

func newFlaky(t *testing.T, seed uint64, kind trouble) *flaky {
	device := &sectors{FS: memfs.New()}
	f := &flaky{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 5)), fs: faultfs.New(device), device: device, kind: kind,
		want: map[string][]byte{}, unsure: map[string]bool{},
	}
	var mu sync.Mutex // calls come from the worker too
	draw, oneIn := rand.New(rand.NewPCG(seed, 6)), 5+f.rng.IntN(60)
	hiccup := func(string, int64, int64) bool {
		mu.Lock()
		defer mu.Unlock()
		if draw.IntN(oneIn) > 0 {
			return false
		}
		f.hiccups++
		return true
	}
	f.open()
	f.fail = func(on bool) {
		f.failing = on
		if on && kind == hiccups {
			f.device.fails(hiccup)
		}
		if !on {
			f.fs.Set()
			f.device.fails(nil)
		}
	}
	return f
}

func (f *flaky) open() {
	f.t.Helper()
	var err error
	f.db, err = pando.Open("db", &pando.Options{FS: f.fs, MemoryBytes: 1 << 20, ValueThreshold: 300})
	if err != nil {
		f.t.Fatalf("seed %d: %v", f.seed, err)
	}
}

// check reads all keys.
func (f *flaky) check() {
	f.t.Helper()
	for i := range flakyKeys {
		k := fmt.Sprintf("key%05d", i)
		got, err := f.db.Get([]byte(k))
		v, there := f.want[k]
		switch {
		case f.unsure[k] || f.failing && err != nil && !errors.Is(err, pando.ErrNotFound):
		case there != (err == nil) || !bytes.Equal(got, v):
			f.t.Fatalf("seed %d: %s has %d bytes, %v; want %d bytes (%v)", f.seed, k, len(got), err, len(v), there)
		}
	}
}

// reopen looks at everything while reads work.
func (f *flaky) reopen() {
	f.t.Helper()
	f.fail(false)
	_ = f.db.Close() // it may have been unable to settle
	f.open()
	f.check()
}

func (f *flaky) write(k string, v []byte, err error) {
	f.unsure[k] = err != nil
	if delete(f.want, k); v != nil && err == nil {
		f.want[k] = v
	}
}

func (f *flaky) step() {
	k := fmt.Sprintf("key%05d", f.rng.IntN(flakyKeys))
	switch n := f.rng.IntN(100); {
	case n < 55:
		v := bytes.Repeat([]byte(k), f.rng.IntN(6))
		if f.rng.IntN(15) == 0 {
			v = bytes.Repeat([]byte{byte(n)}, 400+f.rng.IntN(3000))
		}
		f.write(k, append([]byte{}, v...), f.db.Put([]byte(k), v))
	case n < 80:
		f.write(k, nil, f.db.Delete([]byte(k)))
	case n < 89:
		hi := k[:7] + "9"
		err := f.db.DeleteRange([]byte(k), []byte(hi))
		for i := range flakyKeys {
			if x := fmt.Sprintf("key%05d", i); x >= k && x < hi {
				f.write(x, nil, err)
			}
		}
	case n < 96:
		_ = f.db.Checkpoint(ctx)
	case n < 97:
		_ = f.db.Compact(ctx, pando.CompactOptions{})
	case n < 98:
		f.check()
	default:
		f.reopen()
		_ = f.db.Close()
		f.open() // now nothing is in memory
		f.fail(true)
		if f.kind == whole {
			f.spoil()
		}
	}
}

// spoil chooses sectors that fail from now on, in some files.
func (f *flaky) spoil() {
	spread, salt := uint64(2+f.rng.IntN(60)), f.rng.Uint64()
	f.device.fails(func(name string, from, to int64) bool {
		return inSegment(name) && badSector(name, from, to, spread, salt)
	})
}

func (f *flaky) run() {
	f.t.Helper()
	f.fail(true)
	for range 1200 {
		switch {
		case f.kind == flips && f.rng.IntN(2) == 0:
			f.fs.Set(faultfs.Rule{Fault: faultfs.FlipBit, Skip: f.rng.IntN(60), Bit: f.rng.Int64N(1 << 20)})
		case f.kind == whole && f.failing && f.rng.IntN(15) == 0:
			f.spoil()
		}
		f.step()
	}
	f.reopen()
	err := f.db.Checkpoint(ctx)
	report, failed := f.db.Check(ctx)
	if err := errors.Join(err, failed, report.Err()); err != nil {
		f.t.Errorf("seed %d: %v", f.seed, err)
	}
	f.check()
	if err := f.db.Close(); err != nil {
		f.t.Errorf("seed %d: %v", f.seed, err)
	}
	if f.kind == hiccups && f.hiccups == 0 {
		f.t.Errorf("seed %d: no read has failed", f.seed)
	}
}
