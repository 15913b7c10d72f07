package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

func togetherOptions(profile pando.Profile) *pando.Options {
	return &pando.Options{
		Profile: profile, MemoryBytes: 1 << 20, ValueThreshold: 200, SyncInterval: time.Millisecond, SyncBytes: 64 << 10, KeepChanges: 128 << 10,
	}
}

// moment is what a crash of a life would leave, and what may be in it.
type moment struct {
	image         *memfs.FS
	kill          bool
	policy        memfs.Policy
	what          string
	least, most   vector
	alreadyOnDisk vector
}

// album collects moments of a life, at most some of all that there are.
type album struct {
	base    *memfs.FS
	l       *ledger
	profile pando.Profile
	every   int64
	calls   atomic.Int64

	mu      sync.Mutex
	rng     *rand.Rand
	moments []moment
}

func (a *album) onCall(op faultfs.Op, name string) error {
	if a.calls.Add(1)%a.every != 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, acked, durable := a.l.now() // before the image: what is acknowledged meanwhile need not be in it
	m := moment{what: fmt.Sprintf("%v %s", op, name), least: durable, alreadyOnDisk: durable}
	if m.kill = a.rng.IntN(3) == 0; m.kill {
		m.image = a.base.KillImage()
		if a.profile != pando.Bench {
			m.least = acked
		}
	} else {
		all := images(a.rng.Uint64())
		m.policy = all[a.rng.IntN(len(all))]
		m.image = a.base.CrashImage(m.policy)
	}
	m.image.SetCapacity(0)
	m.most, _, _ = a.l.now()
	if a.rng.IntN(2) == 0 {
		writeBack(a.base, a.rng)
	}
	if len(a.moments) < 12 {
		a.moments = append(a.moments, m)
	} else {
		a.moments[a.rng.IntN(len(a.moments))] = m
	}
	return nil
}

// lifetime opens a database, which an earlier crash has left, lives with it until it is closed, and returns moments of that.
func (l *ledger) lifetime(t *testing.T, base *memfs.FS, profile pando.Profile, rng *rand.Rand, commits int) []moment {
	ffs := faultfs.New(base)
	a := &album{base: base, l: l, profile: profile, every: 1 + rng.Int64N(60), rng: rand.New(rand.NewPCG(rng.Uint64(), 6))}
	ffs.OnCall(a.onCall)
	o := togetherOptions(profile)
	o.FS = ffs
	w := &life{t: t, base: base, l: l, done: make(chan struct{}), profile: profile, spaces: map[string]*pando.Keyspace{}}
	if w.fragile = rng.IntN(2) == 0; w.fragile {
		ways := []faultfs.Fault{faultfs.Fail, faultfs.ShortWrite, faultfs.DropSync, faultfs.DropSyncOnce}
		ffs.Set(faultfs.Rule{Skip: rng.IntN(600), Fault: ways[rng.IntN(len(ways))]})
	}
	db, err := pando.Open("db", o)
	if w.broke(err) {
		return a.moments
	}
	if err != nil {
		t.Fatal(err)
	}
	w.db = db
	var writing, caring sync.WaitGroup
	for a := range authors {
		writing.Go(func() { w.author(a, commits) })
	}
	care := rand.New(rand.NewPCG(rng.Uint64(), 5))
	caring.Go(func() { w.caretaker(care) })
	writing.Wait()
	close(w.done)
	caring.Wait()
	base.SetCapacity(0)
	if err := db.Close(); err != nil && !w.broke(err) {
		t.Fatal(err)
	}
	if ffs.Triggered() > 0 {
		l.faults++
	}
	if leaks := ffs.Leaks(); len(leaks) > 0 {
		t.Errorf("left open: %v", leaks)
	}
	return a.moments
}

// goesOn judges what a crash has left, and is the ledger of who goes on with it.
func (l *ledger) goesOn(m moment, profile pando.Profile, readOnly bool) (*ledger, error) {
	o := togetherOptions(profile)
	o.FS, o.ReadOnly = m.image, readOnly
	db, err := pando.Open("db", o)
	if err != nil {
		return nil, err
	}
	got, err := l.look(db, m.least, m.most)
	if err == nil && !readOnly && profile != pando.Bench {
		var spaces map[string]*pando.Keyspace
		if spaces, err = handles(db); err == nil {
			err = agree(db, spaces)
		}
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	next := &ledger{begun: got, acked: got, durable: got}
	if m.kill {
		next.durable = m.alreadyOnDisk
	}
	for a := range authors {
		next.before[a] = map[int]vector{}
	}
	return next, nil
}

// TestCrashTogether has authors commit in every way beside each other, and beside checkpoints, Compact, Backup, dropped keyspaces,
// held snapshots, a disk that is full now and then, and calls that fail. It crashes, goes on with what is left, and so on: crashes of recoveries are
// among them.
func TestCrashTogether(t *testing.T) {
	generations, commits := usualGenerations, 40
	if *deep {
		generations = 300
	}
	for profile := pando.Durable; profile <= pando.Bench; profile++ {
		t.Run(profile.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(*seedFlag, uint64(profile)))
			base, l := memfs.New(), &ledger{}
			if profile == pando.Relaxed { // elsewhere it is full without a warning
				base.TellSpace()
			}
			for a := range authors {
				l.before[a] = map[int]vector{}
			}
			full, backups, pictures, faults := 0, 0, 0, 0
			for g := range generations {
				moments := l.lifetime(t, base, profile, rng, commits)
				full, backups, pictures, faults = full+l.full, backups+l.backups, pictures+l.pictures, faults+l.faults
				if len(moments) == 0 {
					continue
				}
				var next *ledger
				for i, m := range moments {
					copied := m.image.KillImage()
					n, err := l.goesOn(m, profile, i%3 == 0)
					if err != nil {
						t.Fatalf("generation %d, crash before %s, kill %v, policy %+v: %v", g, m.what, m.kill, m.policy, err)
					}
					if i == 0 || rng.IntN(len(moments)) == 0 {
						base, next = copied, n
					}
				}
				l = next
				if t.Failed() {
					return
				}
			}
			t.Logf("at the end %v; the disk was full %d times, a call failed %d times, %d backups, %d snapshots",
				l.acked, full, faults, backups, pictures)
		})
	}
}
