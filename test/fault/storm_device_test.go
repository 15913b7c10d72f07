package fault

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
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
