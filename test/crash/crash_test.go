// Package crash stops the database at every call that changes what is stored, and looks at what the next open finds.
//
// What was acknowledged has to be there as the profile promises, and what was not is there as a whole or not at all. The
// database then goes on, and is stopped again.
package crash

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/test/entropy"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

var (
	seedFlag = flag.Uint64("seed", 1, "seed of the random workloads and images")
	every    = flag.Int("every", 0, "look at each n-th call; 0 picks a step that takes seconds, or minutes with the tag slow")
	deep     = flag.Bool("deep", false, "more workloads, every call, and every call of each recovery")
)

type state = map[string]string

// commit is one atomic change of a workload.
type commit struct {
	name string
	do   func(db *pando.DB) error
	to   func(state) // the same to the model
}

// recorder runs a workload and knows which states a crash may leave now.
type recorder struct {
	mu      sync.Mutex
	states  []state // after each commit; states[0] is empty
	acked   int     // commits that returned
	started int     // commits that were begun
	durable int     // commits that a power cut must not take
}

func (r *recorder) bounds() (acked, started, durable int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.acked, r.started, r.durable
}

func (r *recorder) begin(c commit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := maps.Clone(r.states[len(r.states)-1])
	c.to(next)
	r.states = append(r.states, next)
	r.started++
}

func (r *recorder) acknowledge(durable bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acked = r.started
	if durable {
		r.durable = r.started
	}
}

func (r *recorder) synced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.durable = r.acked
}

func value(rng *rand.Rand, n int) string { return string(entropy.Bytes(rng, n)) }

func key(rng *rand.Rand) string { return fmt.Sprintf("key%03d", rng.IntN(120)) }

// length picks lengths on both sides of the thresholds.
func length(rng *rand.Rand) int {
	switch rng.IntN(20) {
	case 0:
		return 0
	case 1:
		return 20000
	case 2, 3, 4:
		return 200 + rng.IntN(2000)
	}
	return rng.IntN(60)
}

// workload makes a random list of commits and maintenance; nil to means maintenance.
func workload(seed uint64, n int) []commit {
	rng := rand.New(rand.NewPCG(seed, 2))
	var list []commit
	add := func(name string, do func(*pando.DB) error, to func(state)) { list = append(list, commit{name, do, to}) }
	for range n {
		switch p := rng.IntN(40); {
		case p < 20:
			k, v := key(rng), value(rng, length(rng))
			add("put", func(db *pando.DB) error {
				return on(db, k, func(ks *pando.Keyspace) error { return ks.Put([]byte(k), []byte(v)) })
			},
				func(s state) { s[k] = v })
		case p < 24:
			k := key(rng)
			add("delete", func(db *pando.DB) error {
				return on(db, k, func(ks *pando.Keyspace) error { return ks.Delete([]byte(k)) })
			},
				func(s state) { delete(s, k) })
		case p < 26:
			lo := rng.IntN(120)
			from, to := fmt.Sprintf("key%03d", lo), fmt.Sprintf("key%03d", lo+10)
			if lo%8 == 0 {
				add("deleteAll", deleteHashed, func(s state) { maps.DeleteFunc(s, func(k, _ string) bool { return hashed(k) }) })
				continue
			}
			add("deleteRange", func(db *pando.DB) error { return db.DeleteRange([]byte(from), []byte(to)) }, func(s state) {
				maps.DeleteFunc(s, func(k, _ string) bool { return k >= from && k < to && !hashed(k) })
			})
		case p < 31:
			do, to := batchOf(rng, 2+rng.IntN(12))
			add("batch", do, to)
		case p < 32:
			do, to := batchOf(rng, 250)
			add("bulk", do, to)
		case p < 35:
			add("checkpoint", func(db *pando.DB) error { return db.Checkpoint(context.Background()) }, nil)
		case p < 37:
			add("sync", func(db *pando.DB) error { return db.Sync() }, nil)
		case p < 38:
			o := pando.CompactOptions{Compression: pando.Compression(rng.IntN(4))}
			add("compact", func(db *pando.DB) error { return db.Compact(context.Background(), o) }, nil)
		case p < 39:
			add("backup", func(db *pando.DB) error { return db.Backup(context.Background(), "backup") }, nil)
		default:
			name := fmt.Sprintf("space%d", rng.IntN(10))
			add("keyspace", func(db *pando.DB) error {
				ks, err := db.Keyspace(name, nil)
				if err != nil {
					return err
				}
				if err := ks.Put([]byte("a"), []byte(name)); err != nil {
					return err
				}
				return db.DropKeyspace(name)
			}, nil)
		}
	}
	return list
}

// batchOf makes a batch over several keys.
func batchOf(rng *rand.Rand, n int) (func(*pando.DB) error, func(state)) {
	type pair struct{ k, v string }
	var pairs []pair
	for range n {
		pairs = append(pairs, pair{key(rng), value(rng, length(rng))})
	}
	do := func(db *pando.DB) error {
		b := db.NewBatch()
		defer b.Reset()
		for _, p := range pairs {
			if err := on(db, p.k, func(ks *pando.Keyspace) error { return b.In(ks).Put([]byte(p.k), []byte(p.v)) }); err != nil {
				return err
			}
		}
		return db.Write(b)
	}
	return do, func(s state) {
		for _, p := range pairs {
			s[p.k] = p.v
		}
	}
}

func options(fs *memfs.FS, profile pando.Profile) *pando.Options {
	return &pando.Options{FS: fs, Profile: profile, MemoryBytes: 1 << 20, ValueThreshold: 100}
}

// images are the policies of one power cut.
func images(seed uint64) []memfs.Policy {
	return []memfs.Policy{
		{Unsynced: memfs.None},
		{Unsynced: memfs.All},
		{Unsynced: memfs.Random, Seed: seed, Torn: 512},
		{Unsynced: memfs.Random, Seed: seed, Torn: 512, Reordered: true},
		{Unsynced: memfs.Random, Seed: seed, Torn: 4096, Reordered: true, Stale: true},
		{Unsynced: memfs.Random, Seed: seed, Torn: 512, Stale: true},
	}
}

// inspect opens an image and checks that it holds one of the states from least to most. It returns the database, and which.
func inspect(fs *memfs.FS, profile pando.Profile, states []state, least, most int) (*pando.DB, int, error) {
	db, err := pando.Open("db", options(fs, profile))
	if err != nil {
		return nil, 0, err
	}
	got, err := read(db)
	if err != nil {
		return nil, 0, errors.Join(err, db.Close())
	}
	for i := most; i >= least; i-- {
		if maps.Equal(states[i], got) {
			return db, i, nil
		}
	}
	err = fmt.Errorf("it holds none of the states %d to %d (%d pairs)", least, most, len(got))
	for i := range states {
		if maps.Equal(states[i], got) {
			err = fmt.Errorf("it holds state %d, want one of %d to %d", i, least, most)
		}
	}
	if least == most || least+1 == most {
		err = fmt.Errorf("%w; %s", err, difference(got, states[most]))
	}
	return nil, 0, errors.Join(err, db.Close())
}

func difference(got, want state) string {
	var b bytes.Buffer
	for k, v := range want {
		if g, ok := got[k]; !ok {
			fmt.Fprintf(&b, "%s is missing; ", k)
		} else if g != v {
			fmt.Fprintf(&b, "%s differs (%d bytes, want %d); ", k, len(g), len(v))
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			fmt.Fprintf(&b, "%s is extra; ", k)
		}
	}
	return b.String()[:min(b.Len(), 300)]
}

// goOn writes to a recovered database, checks it, closes it, and finds everything again.
func goOn(db *pando.DB, fs *memfs.FS, profile pando.Profile, s state) error {
	s = maps.Clone(s)
	for i := range 5 {
		k, v := fmt.Sprintf("more%d", i), value(rand.New(rand.NewPCG(uint64(i), 3)), 50*i)
		if err := db.Put([]byte(k), []byte(v)); err != nil {
			return errors.Join(fmt.Errorf("put after recovery: %w", err), db.Close())
		}
		s[k] = v
	}
	r, err := db.Check(context.Background())
	if err == nil {
		for _, d := range r.Damage {
			var where *pando.CorruptError
			if errors.As(d.Err, &where) && where.File == "ROOT" {
				continue // the slot that was being written; the next checkpoint repairs it
			}
			err = errors.Join(err, d.Err)
		}
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("after recovery: %w", err)
	}
	db, _, err = inspect(fs, profile, []state{s}, 0, 0)
	if err != nil {
		return fmt.Errorf("second open: %w", err)
	}
	return db.Close()
}

// second stops the recovery of an image, and what follows it, at some calls as well.
func second(image *memfs.FS, profile pando.Profile, states []state, least, most int, rng *rand.Rand, tries int) error {
	for range tries {
		base := image.CrashImage(memfs.Policy{Unsynced: memfs.All}) // a copy: everything in an image is durable
		ffs := faultfs.New(base)
		stop := rng.IntN(40)
		var again *memfs.FS
		var calls atomic.Int64 // of the background too
		policy := images(rng.Uint64())[rng.IntN(6)]
		ffs.OnCall(func(faultfs.Op, string) error {
			if calls.Add(1) == int64(stop+1) {
				again = base.CrashImage(policy)
			}
			return nil
		})
		o := options(nil, profile)
		o.FS = ffs
		db, err := pando.Open("db", o)
		if err != nil {
			return fmt.Errorf("recovery: %w", err)
		}
		if err := db.Close(); err != nil {
			return err
		}
		if again == nil {
			continue
		}
		db, _, err = inspect(again, profile, states, least, most)
		if err != nil {
			return fmt.Errorf("second crash before call %d of the recovery (%+v): %w", stop, policy, err)
		}
		if err := db.Close(); err != nil {
			return err
		}
	}
	return nil
}

func TestCrashDurable(t *testing.T) { crashAll(t, pando.Durable) }
func TestCrashRelaxed(t *testing.T) { crashAll(t, pando.Relaxed) }
func TestCrashBench(t *testing.T)   { crashAll(t, pando.Bench) }

func crashAll(t *testing.T, profile pando.Profile) {
	n := usualSeeds
	if *deep {
		n = 50
	}
	for i := range n {
		seed := *seedFlag + uint64(i)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			crashEverywhere(t, profile, seed, workload(seed, 140), memfs.New())
		})
	}
}

// shot is what one crash would leave, and what of the workload may be in it.
type shot struct {
	image                   *memfs.FS
	kill                    bool
	call                    int
	op                      string
	policy                  memfs.Policy
	acked, started, durable int
}

// camera takes images of a file system at some of the calls that change it.
type camera struct {
	base        *memfs.FS
	r           *recorder
	step, phase int
	calls       atomic.Int64
	renames     atomic.Int64

	mu      sync.Mutex
	rng     *rand.Rand
	current string // what the workload does
	shots   []shot
}

func newCamera(base *memfs.FS, r *recorder, rng *rand.Rand) *camera {
	step := *every
	if step == 0 {
		step = usualStep
		if *deep {
			step = 1
		}
	}
	return &camera{base: base, r: r, rng: rng, step: step, phase: rng.IntN(step), current: "open"}
}

func (c *camera) nowDuring(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = what
}

// onCall comes before each call, from any goroutine.
func (c *camera) onCall(op faultfs.Op, name string) error {
	n := int(c.calls.Add(1))
	if op == faultfs.OpRename && filepath.Dir(name) == filepath.Join("db", segment.DirName) {
		c.renames.Add(1)
	}
	if n%c.step != c.phase {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The bounds come before the image: what is acknowledged meanwhile need not be in it; what is begun is one more at most.
	acked, _, durable := c.r.bounds()
	all := images(c.rng.Uint64())
	policies := []memfs.Policy{all[c.rng.IntN(len(all))], all[c.rng.IntN(len(all))]}
	if *deep {
		policies = all
	}
	what := fmt.Sprintf("%v %s during %s", op, name, c.current)
	for _, p := range policies {
		image := c.base.CrashImage(p)
		_, started, _ := c.r.bounds()
		c.shots = append(c.shots, shot{image, false, n, what, p, acked, started, durable})
	}
	image := c.base.KillImage()
	_, started, _ := c.r.bounds()
	c.shots = append(c.shots, shot{image, true, n, what, memfs.Policy{}, acked, started, durable})
	if c.rng.IntN(2) == 0 {
		writeBack(c.base, c.rng)
	}
	return nil
}

// writeBack has the device take some of what it was not asked for yet, so that later images have versions of that.
func writeBack(base *memfs.FS, rng *rand.Rand) {
	base.WriteBack(memfs.Policy{Unsynced: memfs.Random, Seed: rng.Uint64(), Torn: 512, Reordered: rng.IntN(2) == 0})
}

// perform runs a workload to its end and tells the recorder and the camera.
func perform(t *testing.T, ffs *faultfs.FS, profile pando.Profile, seed uint64, list []commit, r *recorder, cam *camera) {
	o := options(nil, profile)
	o.FS = ffs
	db, err := pando.Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range list {
		cam.nowDuring(fmt.Sprintf("%d %s", i, c.name))
		if c.to != nil {
			r.begin(c)
		}
		if err := c.do(db); err != nil {
			t.Fatalf("seed %d: %d %s: %v", seed, i, c.name, err)
		}
		if c.to != nil {
			r.acknowledge(profile == pando.Durable)
		} else if c.name == "sync" || c.name == "checkpoint" || c.name == "compact" || c.name == "backup" {
			r.synced()
		}
	}
	cam.nowDuring("close")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// recoverShot opens an image, checks what it holds, and goes on: with a crash of the recovery when again is set, else with
// more writes.
func recoverShot(s shot, profile pando.Profile, states []state, rng *rand.Rand, again bool) error {
	least := s.durable
	if s.kill && profile != pando.Bench {
		least = s.acked
	}
	copied := s.image.CrashImage(memfs.Policy{Unsynced: memfs.All})
	db, at, err := inspect(s.image, profile, states, least, s.started)
	switch {
	case err != nil:
		return err
	case again:
		return errors.Join(db.Close(), second(copied, profile, states, at, at, rng, 2))
	default:
		return goOn(db, s.image, profile, states[at])
	}
}

// crashEverywhere runs one workload and looks at images of its calls.
func crashEverywhere(t *testing.T, profile pando.Profile, seed uint64, list []commit, base *memfs.FS) *camera {
	ffs := faultfs.New(base)
	rng := rand.New(rand.NewPCG(seed, 4))
	r := &recorder{states: []state{{}}}
	cam := newCamera(base, r, rng)
	ffs.OnCall(cam.onCall)
	perform(t, ffs, profile, seed, list, r, cam)
	if leaks := ffs.Leaks(); len(leaks) > 0 {
		t.Errorf("left open: %v", leaks)
	}
	t.Logf("%d calls, %d images, %d commits", cam.calls.Load(), len(cam.shots), r.started)
	bad := 0
	for i, s := range cam.shots {
		if err := recoverShot(s, profile, r.states, rng, i%7 == 0); err != nil {
			t.Errorf("seed %d, crash before call %d (%s), kill %v, policy %+v, acknowledged %d, durable %d, begun %d: %v",
				seed, s.call, s.op, s.kill, s.policy, s.acked, s.durable, s.started, err)
			if bad++; bad > 4 {
				break
			}
		}
	}
	return cam
}
