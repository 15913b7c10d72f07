package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestCrashMixture has one author, so that what each commit leaves is known to the byte. He waits for a sync or does not, writes what is
// larger than memory or than a segment, and makes and drops keyspaces of the same names, with another profile and other options after each
// crash, on a disk that is full at times. Maintenance runs beside him. What a crash leaves is read, opened in several ways, checked and backed
// up, and the changes that are kept have to lead from one of his versions to the last one.
func TestCrashMixture(t *testing.T) {
	n := usualMixtures
	switch {
	case *deep:
		n = 2000
	case testing.Short():
		n = 1 // the race detector makes it ten times as long
	}
	for i := range n {
		seed := *seedFlag + uint64(i)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &mixture{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 21)), base: memfs.New(), history: []version{{}}}
				if seed%2 == 0 { // else it is full without a warning
					m.base.TellSpace()
				}
				m.run()
			})
		})
	}
}

// spot is a key of a keyspace, and with an empty key the keyspace itself. The default keyspace is "".
type spot struct{ space, key string }

// version is what the database holds behind a commit.
type version struct {
	pairs map[spot]string
	seq   uint64 // of its last command
}

// instant is what a crash at some call would leave.
type instant struct {
	image                *memfs.FS
	kill                 bool
	what                 string
	least, most, durable int // of the versions
}

type mixture struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	base *memfs.FS
	o    pando.Options
	db   *pando.DB
	care sync.WaitGroup // maintenance

	mu       sync.Mutex
	history  []version
	first    int // the version that this life began with: the numbers of commands are those of one life
	now      string
	acked    int
	kept     int // what a killed process must not lose
	durable  int // what a power cut must not take
	calls    int
	every    int
	cameras  *rand.Rand
	instants []instant
}

func (m *mixture) fatalf(format string, args ...any) {
	m.t.Helper()
	_ = m.db.Close() // so that no goroutine is left
	m.t.Fatalf("seed %d, %v, commit %d, %s: %s", m.seed, m.o.Profile, m.acked, m.now, fmt.Sprintf(format, args...))
}

func (m *mixture) options() pando.Options {
	return pando.Options{
		Profile: pando.Profile(m.rng.IntN(3)), MemoryBytes: 1 << 20, ValueThreshold: []int{40, 200, 1000}[m.rng.IntN(3)],
		KeepChanges: []int64{0, 64 << 10, 4 << 20}[m.rng.IntN(3)], Compression: pando.Compression(m.rng.IntN(4)),
		SyncInterval: 10 * time.Millisecond, SyncBytes: 64 << 10,
	}
}

// run lives several times, each time with what a crash has left.
func (m *mixture) run() {
	for range 5 {
		m.live()
		if len(m.instants) == 0 || m.t.Failed() {
			return
		}
		chosen, at := m.rng.IntN(len(m.instants)), 0
		next := m.instants[chosen].image.KillImage()
		for i, in := range m.instants {
			found, err := m.judge(in)
			if err != nil {
				m.t.Fatalf("seed %d, %v, KeepChanges %d, crash before %s, kill %v, versions %d to %d: %v",
					m.seed, m.o.Profile, m.o.KeepChanges, in.what, in.kill, in.least, in.most, err)
			}
			if i == chosen {
				at = found
			}
		}
		m.base, m.history, m.acked, m.kept, m.durable = next, m.history[:at+1], at, at, at
		if m.instants[chosen].kill {
			m.durable = min(at, m.instants[chosen].durable)
		}
		m.instants = nil
	}
}

func (m *mixture) onCall(op faultfs.Op, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls++; m.calls%m.every != 0 {
		return nil
	}
	all := images(m.cameras.Uint64())
	policy := all[m.cameras.IntN(len(all))]
	in := instant{nil, m.cameras.IntN(3) == 0, "", m.durable, len(m.history) - 1, m.durable}
	if in.kill {
		in.image, in.least = m.base.KillImage(), m.kept
	} else {
		in.image = m.base.CrashImage(policy)
	}
	in.what = fmt.Sprintf("%v %s during %s (%+v)", op, name, m.now, policy)
	in.image.SetCapacity(0)
	if m.cameras.IntN(2) == 0 {
		writeBack(m.base, m.cameras)
	}
	if len(m.instants) < usualInstants {
		m.instants = append(m.instants, in)
	} else {
		m.instants[m.cameras.IntN(usualInstants)] = in
	}
	return nil
}

func (m *mixture) live() {
	ffs := faultfs.New(m.base)
	m.every, m.cameras = 1+m.rng.IntN(40), rand.New(rand.NewPCG(m.rng.Uint64(), 22))
	ffs.OnCall(m.onCall)
	m.o = m.options()
	m.o.FS, m.now = ffs, "open"
	var err error
	if m.db, err = pando.Open("db", &m.o); err != nil {
		m.t.Fatalf("seed %d: %v", m.seed, err)
	}
	m.first, m.history[m.acked].seq = m.acked, m.db.LastSeq()
	for range 50 {
		m.step()
	}
	m.care.Wait()
	m.base.SetCapacity(0)
	if err := m.db.Close(); err != nil {
		m.fatalf("close: %v", err)
	}
	if leaks := ffs.Leaks(); len(leaks) > 0 {
		m.fatalf("left open: %v", leaks)
	}
}

func (m *mixture) step() {
	space, ks := m.space()
	k, v := m.pair()
	put := func(to map[spot]string) { to[spot{space, k}] = v }
	switch n := m.rng.IntN(100); {
	case n < 14:
		m.commit("put", true, func() error { return ks.Put([]byte(k), []byte(v)) }, put)
	case n < 26:
		m.commit("put unsynced", false, func() error { return ks.PutUnsynced([]byte(k), []byte(v)) }, put)
	case n < 31:
		m.commit("delete", true, func() error { return ks.Delete([]byte(k)) }, func(to map[spot]string) { delete(to, spot{space, k}) })
	case n < 35:
		v = value(m.rng, 1000+m.rng.IntN(1<<(15+m.rng.IntN(6))))
		m.commit("stream", true, func() error { return ks.PutReader([]byte(k), strings.NewReader(v)) }, put)
	case n < 38:
		m.commit("delete all", true, func() error { return ks.DeleteRange(nil, nil) }, func(to map[spot]string) {
			maps.DeleteFunc(to, func(at spot, _ string) bool { return at.space == space && at.key != "" })
		})
	case n < 60:
		m.many()
	case n < 67:
		m.comeAndGo()
	case n < 72:
		m.maintain("checkpoint", func() error { return m.db.Checkpoint(context.Background()) })
	case n < 75:
		o := pando.CompactOptions{Compression: pando.Compression(m.rng.IntN(4))}
		m.maintain("compact", func() error { return m.db.Compact(context.Background(), o) })
	case n < 77:
		m.maintain("backup", func() error { return m.db.Backup(context.Background(), "backup") })
	case n < 80:
		m.maintain("sync", func() error { return m.db.Sync() })
	case n < 84 && m.o.Profile != pando.Bench: // where it syncs nothing
		m.maintain("sync commits", func() error { return m.db.SyncCommits() })
	case n < 88:
		time.Sleep([]time.Duration{5 * time.Millisecond, 700 * time.Millisecond, 40 * time.Second}[m.rng.IntN(3)])
	case n < 92:
		m.base.SetCapacity(m.base.Used() + m.rng.Int64N(400<<10))
	case m.o.Profile != pando.Bench:
		if err := m.agree(m.db, m.acked); err != nil {
			m.fatalf("%v", err)
		}
	}
}

// commit carries out one commit, which waits for a sync where the profile has it so.
func (m *mixture) commit(what string, waits bool, do func() error, change func(map[spot]string)) {
	m.mu.Lock()
	next := version{pairs: map[spot]string{}}
	maps.Copy(next.pairs, m.history[m.acked].pairs)
	change(next.pairs)
	m.now, m.history = what, append(m.history, next)
	m.mu.Unlock()
	err := do()
	for errors.Is(err, pando.ErrDiskFull) {
		m.base.SetCapacity(0)
		err = do()
	}
	if err != nil {
		m.fatalf("%v", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acked++
	m.history[m.acked].seq = m.db.LastSeq()
	if m.o.Profile != pando.Bench {
		m.kept = m.acked
	}
	if m.o.Profile == pando.Durable && waits {
		m.durable = m.acked
	}
}

// maintain does what makes everything durable that was committed, beside the next commits or alone.
func (m *mixture) maintain(what string, do func() error) {
	m.care.Wait()
	upTo := m.acked
	work := func() {
		switch err := do(); {
		case err == nil:
			m.mu.Lock()
			defer m.mu.Unlock()
			m.durable, m.kept = max(m.durable, upTo), max(m.kept, upTo)
		case errors.Is(err, pando.ErrDiskFull):
			m.base.SetCapacity(0)
		default:
			m.t.Errorf("seed %d: %s: %v", m.seed, what, err)
		}
	}
	if m.rng.IntN(2) == 0 {
		m.care.Go(work)
		return
	}
	work()
}

func (m *mixture) pair() (k, v string) { return key(m.rng), value(m.rng, length(m.rng)) }

// space draws a keyspace that there is.
func (m *mixture) space() (string, *pando.Keyspace) {
	name := []string{"", "a", "b", "c"}[m.rng.IntN(4)]
	if _, there := m.history[m.acked].pairs[spot{name, ""}]; !there {
		return "", m.db.Default()
	}
	ks, err := m.db.Keyspace(name, nil)
	if err != nil {
		m.fatalf("keyspace %q: %v", name, err)
	}
	return name, ks
}

// comeAndGo drops a keyspace and, at times, makes another one of its name.
func (m *mixture) comeAndGo() {
	name := []string{"a", "b", "c"}[m.rng.IntN(3)]
	if _, there := m.history[m.acked].pairs[spot{name, ""}]; there {
		m.commit("drop "+name, true, func() error { return m.db.DropKeyspace(name) }, func(to map[spot]string) {
			maps.DeleteFunc(to, func(at spot, _ string) bool { return at.space == name })
		})
		if m.rng.IntN(2) == 0 {
			return
		}
	}
	o := &pando.KeyspaceOptions{Layout: []pando.Layout{pando.Tree, pando.Hash}[m.rng.IntN(2)]}
	m.commit("create "+name, true, func() error {
		_, err := m.db.Keyspace(name, o)
		return err
	}, func(to map[spot]string) { to[spot{name, ""}] = o.Layout.String() })
}

// many commits many writes to all keyspaces as one, at times more than memory takes.
func (m *mixture) many() {
	type write struct {
		at spot
		ks *pando.Keyspace
		v  string
	}
	n, least := 1+m.rng.IntN(20), 0
	if m.rng.IntN(4) == 0 {
		n, least = 100+m.rng.IntN(500), 190
	}
	var list []write
	for range n {
		space, ks := m.space()
		k, v := m.pair()
		list = append(list, write{spot{space, k}, ks, v + strings.Repeat("x", max(0, least-len(v)))})
	}
	change := func(to map[spot]string) {
		for _, w := range list {
			to[w.at] = w.v
		}
	}
	inTx := func(tx *pando.Tx) error {
		var err error
		for _, w := range list {
			err = errors.Join(err, tx.In(w.ks).Put([]byte(w.at.key), []byte(w.v)))
		}
		return errors.Join(err, tx.Note([]byte("a note")))
	}
	optimistic := func(end func(*pando.Tx) error) func() error {
		m.care.Wait() // no checkpoint comes between
		return func() error {
			tx, err := m.db.Begin(true)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if err := inTx(tx); err != nil {
				return err
			}
			return end(tx)
		}
	}
	what := fmt.Sprint(" of ", n)
	switch m.rng.IntN(4) {
	case 0:
		m.commit("batch"+what, true, func() error {
			b := m.db.NewBatch()
			defer b.Reset()
			var err error
			for _, w := range list {
				err = errors.Join(err, b.In(w.ks).Put([]byte(w.at.key), []byte(w.v)))
			}
			if err != nil {
				return err
			}
			return m.db.Write(b)
		}, change)
	case 1:
		m.commit("update"+what, true, func() error { return m.db.Update(inTx) }, change)
	case 2:
		m.commit("commit"+what, true, optimistic((*pando.Tx).Commit), change)
	case 3:
		m.commit("commit unsynced"+what, false, optimistic((*pando.Tx).CommitUnsynced), change)
	}
}
