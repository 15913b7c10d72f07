package wal

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

var (
	seedFlag   = flag.Uint64("seed", 1, "first seed of the randomised tests")
	roundsFlag = flag.Int("rounds", 1, "how many seeds the randomised tests run")
)

// policies are the power cuts of which an image is taken at every call: all that there are, or some of them.
func policies(rng *rand.Rand) []memfs.Policy {
	all := []memfs.Policy{
		{Unsynced: memfs.None},
		{Unsynced: memfs.All},
		{Unsynced: memfs.Random, Seed: rng.Uint64(), Torn: 512},
		{Unsynced: memfs.Random, Seed: rng.Uint64(), Torn: 512, Reordered: true},
		{Unsynced: memfs.Random, Seed: rng.Uint64(), Torn: 4096, Reordered: true, Stale: true},
		{Unsynced: memfs.Random, Seed: rng.Uint64(), Torn: 512, Reordered: true, Stale: true},
	}
	if usualCuts < len(all) {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return all[:usualCuts]
}

// crasher runs a log on a simulated disk, and checks what power cuts and kills would leave.
type crasher struct {
	t     *testing.T
	rng   *rand.Rand
	disk  *memfs.FS
	o     Options
	l     *Log
	h     history
	from  Position // recovery starts here
	skip  int      // records below from
	least int      // records that were synced
	what  string   // is being done

	images int
}

func newCrasher(t *testing.T, seed uint64, plain bool) *crasher {
	c := &crasher{t: t, rng: rand.New(rand.NewPCG(seed, 99)), disk: newFS(t), from: Position{Segment: 1}}
	faults := faultfs.New(c.disk)
	c.o = options(faults, plain)
	l, err := Create(c.o, 1)
	must(t, err)
	c.l = l
	faults.OnCall(func(op faultfs.Op, name string) error {
		c.what = fmt.Sprintf("before %v of %s", op, name)
		c.crash()
		return nil
	})
	t.Cleanup(func() {
		if leaks := faults.Leaks(); len(leaks) > 0 && !t.Failed() {
			t.Errorf("leaks: %v", leaks)
		}
	})
	return c
}

// crash checks every image of this moment.
func (c *crasher) crash() {
	c.t.Helper()
	for _, p := range policies(c.rng) {
		c.check(c.disk.CrashImage(p), c.least, fmt.Sprintf("%s, %+v", c.what, p))
	}
	c.check(c.disk.KillImage(), len(c.h.seqs), c.what+", killed")
}

// check recovers an image, writes on, cuts the power again, and recovers that.
func (c *crasher) check(image *memfs.FS, least int, what string) {
	c.t.Helper()
	c.images++
	defer func() {
		if c.t.Failed() {
			c.t.Log(what)
		}
	}()
	copied := image.KillImage()
	n := c.recoverInto(c.options(image), least)
	if c.images%5 == 0 {
		c.writeOn(copied, n)
	}
	if c.images%11 == 0 {
		c.crashRecovery(copied, n)
	}
}

// options are those of a recovery, which leaves syncing for later as often as not.
func (c *crasher) options(fsys vfs.FS) Options {
	o := options(fsys, c.o.Plain)
	o.SettleLater = c.rng.IntN(2) == 0
	return o
}

// recoverInto recovers and returns how many records there are, those below the start included.
func (c *crasher) recoverInto(o Options, least int) int {
	c.t.Helper()
	l, rec := recoverAll(c.t, o, c.from, &c.h, c.skip, least)
	n := c.skip + int(rec.Records)
	must(c.t, l.Close())
	return n
}

// writeOn recovers an image, adds records, cuts the power, and recovers that, three times.
func (c *crasher) writeOn(disk *memfs.FS, n int) {
	c.t.Helper()
	h := history{seqs: c.h.seqs[:n:n], payloads: c.h.payloads[:n:n], ends: c.h.ends[:n:n]}
	disk = disk.KillImage()
	for range 3 {
		l, _ := recoverAll(c.t, c.options(disk), c.from, &h, c.skip, len(h.seqs))
		for range 1 + c.rng.IntN(3) {
			must(c.t, h.append(c.t, l, c.rng.IntN(3000)))
		}
		early := disk.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: c.rng.Uint64(), Torn: 512, Reordered: true})
		other, _ := recoverAll(c.t, c.options(early), c.from, &h, c.skip, h.through(l.Synced()))
		must(c.t, other.Close())
		must(c.t, l.Sync())
		disk = disk.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: c.rng.Uint64(), Torn: 512, Reordered: true})
		must(c.t, l.Close())
	}
	l, _ := recoverAll(c.t, c.options(disk), c.from, &h, c.skip, len(h.seqs))
	must(c.t, l.Close())
}

// crashRecovery cuts the power at every call of a recovery that finds n records. What is found afterwards is the same,
// unless it was lost by the cut: from the image of a kill, what had not been synced may be.
func (c *crasher) crashRecovery(image *memfs.FS, n int) {
	c.t.Helper()
	stop := errors.New("stop")
	h := history{seqs: c.h.seqs[:n:n], payloads: c.h.payloads[:n:n], ends: c.h.ends[:n:n]}
	for k := 0; ; k++ {
		disk := image.KillImage()
		faults := faultfs.New(disk)
		faults.FailMutation(k, stop)
		l, _, err := Recover(c.options(faults), c.from, func(uint64, []byte, bool) error { return nil })
		if leaks := faults.Leaks(); err != nil && len(leaks) > 0 {
			c.t.Fatalf("recovery that fails at call %d leaks %v", k, leaks)
		}
		least := min(c.least, n)
		if err == nil {
			least = max(least, h.through(l.Synced()))
		}
		for _, p := range policies(c.rng) {
			if got := c.recoverInto(c.options(disk.CrashImage(p)), least); got > n {
				c.t.Fatalf("recovery crashed at call %d, %+v: %d records, first %d", k, p, got, n)
			}
		}
		if got := c.recoverInto(c.options(disk.KillImage()), n); got != n {
			c.t.Fatalf("recovery killed at call %d: %d records, first %d", k, got, n)
		}
		done := faults.Triggered() == 0
		if err == nil {
			faults.Set() // what is left to be synced is synced
			must(c.t, l.Close())
		}
		if done {
			return
		}
	}
}

func (c *crasher) append(n int) {
	c.t.Helper()
	c.what = fmt.Sprintf("append %d bytes", n)
	must(c.t, c.h.append(c.t, c.l, n))
	c.what = "after " + c.what
	c.crash()
}

func (c *crasher) sync() {
	c.t.Helper()
	must(c.t, c.l.Sync())
	c.least = c.h.through(c.l.Synced())
	if c.least != len(c.h.seqs) {
		c.t.Fatalf("%d of %d records are synced", c.least, len(c.h.seqs))
	}
	c.what = "after sync"
	c.crash()
}

// recycle moves the start of recovery to the end of a random record that was synced.
func (c *crasher) recycle() {
	c.t.Helper()
	if c.least > c.skip {
		c.skip += 1 + c.rng.IntN(c.least-c.skip)
		c.from = c.h.ends[c.skip-1]
	}
	must(c.t, c.l.Recycle(c.from))
	c.what = "after recycle"
	c.crash()
}

// reopen closes the log, or leaves it as a killed process does, and recovers it.
func (c *crasher) reopen(kill bool) {
	c.t.Helper()
	must(c.t, c.l.Close())
	c.least = len(c.h.seqs)
	c.l, _ = recoverAll(c.t, c.o, c.from, &c.h, c.skip, len(c.h.seqs))
	c.what = "after reopening"
	c.crash()
}

func TestCrashAtEveryCall(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		for round := range *roundsFlag {
			seed := *seedFlag + uint64(round)
			t.Logf("-seed %d", seed)
			c := newCrasher(t, seed, plain)
			sizes := []int{0, 1, 100, 1000, 3000, 8000, 9000, 20000}
			for range 40 {
				switch c.rng.IntN(12) {
				case 0:
					c.recycle()
				case 1, 2:
					c.sync()
				case 3:
					must(t, c.l.Prepare())
				case 4:
					if c.rng.IntN(3) == 0 {
						must(t, c.l.Shrink())
						c.least = len(c.h.seqs)
					} else {
						c.reopen(false)
					}
				default:
					c.append(sizes[c.rng.IntN(len(sizes))] + c.rng.IntN(50))
				}
			}
			must(t, c.l.Close())
			t.Logf("%d images", c.images)
		}
	})
}
