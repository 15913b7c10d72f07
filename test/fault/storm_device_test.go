package fault

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// stormDevice is what a storm's database lies on, with its faults, and what is known of both.
type stormDevice struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	profile pando.Profile
	base    *memfs.FS
	sectors *sectors
	fs      *faultfs.FS

	fault    string // in force; empty: none
	since    time.Time
	lossy    bool        // faults last so long that what cannot be read may be taken for lost
	beside   atomic.Bool // leaves could not be read: what was written to them has settled beside them
	doubtful atomic.Bool // a value that a power cut may have taken could not be read when the log was: it may turn out to be damaged
	failed   bool        // the database takes no more writes
	troubled bool        // there was a fault since the database was opened

	mu    sync.Mutex
	trace []string
}

// plug puts the database on a device.
func (s *stormDevice) plug(base *memfs.FS) {
	s.base, s.sectors = base, &sectors{FS: base}
	s.fs = faultfs.New(s.sectors)
	if s.lossy {
		s.fs = faultfs.New(wholly{s.sectors})
	}
}

// damages reports whether the faults may have damaged something for good.
func (s *stormDevice) damages() bool { return s.lossy || s.doubtful.Load() }

// noLeaks looks for what is still open of files whose names have a part.
func (s *stormDevice) noLeaks(part string) {
	s.t.Helper()
	leaks := slices.DeleteFunc(s.fs.Leaks(), func(l string) bool { return !strings.Contains(l, part) })
	if len(leaks) > 0 {
		s.fatalf("left open: %v", leaks)
	}
}

func (s *stormDevice) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = append(s.trace, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	if len(s.trace) > 300 {
		s.trace = s.trace[100:]
	}
}

func (s *stormDevice) fatalf(format string, args ...any) {
	s.t.Helper()
	s.mu.Lock()
	trace := strings.Join(s.trace, "\n")
	s.mu.Unlock()
	s.t.Fatalf("%s\nseed %d, %v, fault %q for %v (again: -storm.seed %d -storm.seeds 1): %s", trace, s.seed, s.profile, s.fault,
		time.Since(s.since), s.seed, fmt.Sprintf(format, args...))
}

func (s *stormDevice) must(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.fatalf("%s: %v", what, err)
	}
}

// powerCut returns what a power cut, or a kill, leaves.
func (s *stormDevice) powerCut() (image *memfs.FS, kill bool) {
	policy := memfs.Policy{
		Unsynced: []memfs.Unsynced{memfs.None, memfs.Random, memfs.Random}[s.rng.IntN(3)], Seed: s.rng.Uint64(), Torn: 512 << (3 * s.rng.IntN(2)),
		Reordered: s.rng.IntN(2) == 0, Stale: s.rng.IntN(2) == 0,
	}
	image, kill = s.base.CrashImage(policy), s.rng.IntN(3) == 0
	if kill {
		image = s.base.KillImage()
	}
	s.note("power cut: %+v, or a kill: %t", policy, kill)
	return image, kill
}

// stormed is what runs on the device of a storm.
type stormed interface {
	plug(base *memfs.FS) // puts it on another one
	open() error
	close() error
	cut(kill bool) // notes what a power cut, or a kill, may have taken
	meet()         // finds out what there is, after it was opened
}

// start puts what is to run on it on a new device.
func (s *stormDevice) start(d stormed) {
	d.plug(memfs.New())
	if s.seed%2 == 0 { // else it is full without a warning
		s.base.TellSpace()
	}
}

// opened notes that it was opened.
func (s *stormDevice) opened(err error) error {
	s.note("open: %v", err)
	s.failed, s.troubled = false, s.fault != ""
	return err
}

// leave closes it where the test has failed, so that no goroutine is left.
func (s *stormDevice) leave(d stormed) {
	if s.t.Failed() {
		s.calm()
		_ = d.close()
	}
}

// shut closes what runs on the device.
func (s *stormDevice) shut(d stormed) error {
	s.t.Helper()
	err := d.close()
	s.judge("close", err)
	s.noLeaks("")
	return err
}

// comeUp opens it, without the fault at the latest.
func (s *stormDevice) comeUp(d stormed) {
	s.t.Helper()
	if err := d.open(); err != nil {
		s.judge("open", err)
		s.noLeaks("")
		s.calm()
		s.must("open", d.open())
	}
	d.meet()
}

// cutPower opens what a power cut, or a kill, leaves, which ends the fault. Another one may begin.
func (s *stormDevice) cutPower(d stormed) {
	s.t.Helper()
	image, kill := s.powerCut()
	s.moveTo(d, image, kill)
}

// moveTo goes on with what a power cut, or a kill, has left.
func (s *stormDevice) moveTo(d stormed, image *memfs.FS, kill bool) {
	s.t.Helper()
	_ = s.shut(d)
	d.plug(image)
	s.calm()
	d.cut(kill)
	if s.rng.IntN(2) == 0 {
		s.begin()
	}
	s.comeUp(d)
}

// stormStep is what a step of a storm may be, as often as its weight says.
type stormStep[S any] struct {
	weight int
	do     func(s S)
}

// stepOf takes one of the steps.
func stepOf[S any](s S, rng *rand.Rand, steps []stormStep[S]) {
	sum := 0
	for _, step := range steps {
		sum += step.weight
	}
	n := rng.IntN(sum)
	for _, step := range steps {
		if n -= step.weight; n < 0 {
			step.do(s)
			return
		}
	}
}

// eachStorm runs storms from a seed on: as many as the flags say, or the usual number. Their clock is that of a synctest, where pauses
// cost nothing.
func eachStorm(t *testing.T, usual, deepest int, run func(t *testing.T, seed uint64)) {
	n := *stormSeeds
	switch {
	case n > 0:
	case *deep:
		n = deepest
	case testing.Short():
		n = (usual + 1) / 2 // the race detector makes them ten times as long
	default:
		n = usual
	}
	for i := range uint64(n) {
		seed := *stormSeed + i
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, seed) })
		})
	}
}
