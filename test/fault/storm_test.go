package fault

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

var (
	stormSeed  = flag.Uint64("storm.seed", 1, "the first seed of the faults that come and go")
	stormSeeds = flag.Int("storm.seeds", 0, "how many seeds there are; 0 picks a number that takes seconds, or minutes with the tag slow")
)

// TestStorm does everything that there is to do, in each profile, while faults of every kind come and go, the power too, beside a model:
// each error says what it comes from, nothing is lost that was promised, everything works again when the fault has passed, and when all
// is deleted nothing is left.
func TestStorm(t *testing.T) {
	eachStorm(t, usualStorms, 2000, func(t *testing.T, seed uint64) { newStorm(t, seed).run() })
}

const (
	// brief is how long a fault lasts, unless what cannot be read may count as lost.
	brief = 15 * time.Second
	// forgotten is the time after which the database knows no more of the places that it could not read.
	forgotten = 6 * time.Minute
)

// storm is a database on a device with faults, and what it ought to hold.
type storm struct {
	stormDevice
	options pando.Options
	db      *pando.DB
	model   *stormModel
	drawn   int // numbers of values and files
}

func newStorm(t *testing.T, seed uint64) *storm {
	s := &storm{stormDevice: stormDevice{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 11))}}
	s.lossy = s.rng.IntN(4) == 0
	s.profile = []pando.Profile{pando.Durable, pando.Durable, pando.Relaxed, pando.Bench}[s.rng.IntN(4)]
	s.options = pando.Options{
		MemoryBytes: 1 << 20, ValueThreshold: 300, Profile: s.profile, KeepChanges: int64(s.rng.IntN(2)) << 19, Logger: slog.New(stormLog{&s.stormDevice}),
	}
	s.model = newStormModel(s.profile)
	s.start(s)
	return s
}

// plug puts the database on a device.
func (s *storm) plug(base *memfs.FS) {
	s.stormDevice.plug(base)
	s.options.FS = s.fs
}

func (s *storm) run() {
	s.t.Helper()
	if err := s.open(); err != nil {
		s.fatalf("open: %v", err)
	}
	defer s.leave(s)
	for range 1500 {
		s.put()
	}
	for range 6 {
		if s.rng.IntN(2) == 0 {
			s.reopen() // nothing is in memory
		}
		s.begin()
		for range 10 + s.rng.IntN(120) {
			if !s.lossy && time.Since(s.since) > brief {
				break
			}
			s.step()
		}
		if s.lossy && s.fault == "sectors" {
			s.outlast()
		}
		s.recover()
	}
	s.end()
}

// outlast lets time pass in which sectors cannot be read: whatever it is, all that is written settles in the end.
func (s *storm) outlast() {
	s.t.Helper()
	for i := range 50 {
		if i < 40 { // what the last ones meet with needs its time too
			s.put()
		}
		s.checkpoint()
		time.Sleep(5 * time.Second)
	}
	if err := s.db.Checkpoint(ctx); err != nil {
		s.fatalf("sectors fail for good, and nothing settles: %v", err)
	}
}

// recover ends the fault and looks whether everything works.
func (s *storm) recover() {
	s.t.Helper()
	again := s.rng.IntN(4)
	if again == 0 {
		s.cutPower(s)
	}
	s.calm()
	s.sync() // what failed in the background is told now
	if s.failed || again == 1 {
		s.reopen()
	}
	if err := s.db.Put([]byte("key"), []byte("after")); err != nil {
		s.fatalf("the fault has passed: %v", err)
	}
	s.model.wrote(inDefault, "key", cell{value: []byte("after")}, nil)
	for range 2 {
		if err := s.checkpoint(); err != nil && !(s.damages() && errors.Is(err, pando.ErrCorrupt)) {
			s.fatalf("the fault has passed: %v", err)
		}
	}
	s.lookAtAll()
	if !s.damages() {
		s.lookAtChanges()
	}
	if s.rng.IntN(4) == 0 && !s.damages() {
		report, err := s.db.Check(ctx)
		s.must("check", errors.Join(err, report.Err()))
	}
	time.Sleep(forgotten)
}

// end deletes everything, after which nothing may be left.
func (s *storm) end() {
	s.t.Helper()
	s.options.KeepChanges = 0
	s.reopen()
	s.lookAtAll()
	if s.damages() {
		s.judge("close", s.db.Close())
		return
	}
	s.must("compact", s.db.Compact(ctx, pando.CompactOptions{}))
	s.lookAtAll()
	s.must("backup", s.db.Backup(ctx, "fresh"))
	for _, name := range s.model.names() {
		if name != inDefault {
			s.must("drop", s.db.DropKeyspace(name))
		}
	}
	s.must("delete", s.db.DeleteRange(nil, nil))
	for range 3 {
		s.must("checkpoint", s.db.Checkpoint(ctx))
	}
	s.must("compact", s.db.Compact(ctx, pando.CompactOptions{}))
	s.must("checkpoint", s.db.Checkpoint(ctx))
	time.Sleep(10 * time.Second) // what could not be removed is tried again
	if m := s.db.Metrics(); m.LiveBytes > 80<<10 || m.SegmentBytes > 600<<10 || m.Readers > 1 || m.MemtableCount != 1 {
		s.fatalf("left behind: %+v", m)
	}
	s.must("close", s.db.Close())
	s.must("open", s.open())
	s.must("close", s.db.Close())
	s.noLitter()
}

func (s *storm) noLitter() {
	s.t.Helper()
	for _, dir := range []string{"db", filepath.Join("db", "segments")} {
		names, err := s.base.List(dir)
		s.must("list", err)
		segments := 0
		for _, name := range names {
			if filepath.Ext(name) == ".seg" {
				segments++
			} else if !slices.Contains([]string{"ROOT", "LOCK", "wal", "segments", "spill"}, name) {
				s.fatalf("left behind: %s in %s", name, dir)
			}
		}
		if segments > 4 {
			s.fatalf("left behind: %v", names)
		}
	}
	if names, err := s.base.List(filepath.Join("db", "spill")); !errors.Is(err, fs.ErrNotExist) && (err != nil || len(names) > 0) {
		s.fatalf("left behind: %v, %v", names, err)
	}
	s.noLeaks("")
}

// stormLog notes what the database tells.
type stormLog struct{ s *stormDevice }

func (l stormLog) Enabled(context.Context, slog.Level) bool { return true }
func (l stormLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l stormLog) WithGroup(string) slog.Handler            { return l }
func (l stormLog) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.s.note("log: %s", line)
	if strings.Contains(r.Message, "a value that the log refers to") && l.s.profile != pando.Durable {
		l.s.doubtful.Store(true)
	}
	if strings.Contains(r.Message, "lost to damage") && !l.s.beside.Load() {
		l.s.t.Errorf("seed %d: %s", l.s.seed, line)
	}
	return nil
}
