package fault

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestCrowdStorm has several writers at once while faults come and go, and the power goes while they write: commits that are carried out
// together fail each for itself or all, none takes what another one was promised, and a counter that all of them raise has been raised as
// often as was acknowledged. How they take turns is not the seed's alone.
func TestCrowdStorm(t *testing.T) {
	eachStorm(t, usualOtherStorms, 1000, func(t *testing.T, seed uint64) { newCrowdStorm(t, seed).run() })
}

// crowdStorm is a database on a device with faults, and those who write to it.
type crowdStorm struct {
	crowd
	options pando.Options
	db      *pando.DB
	writers []*crowdWriter
}

// counterKey is the key of the counter.
const counterKey = "counter"

func newCrowdStorm(t *testing.T, seed uint64) *crowdStorm {
	s := &crowdStorm{}
	s.t, s.seed, s.rng = t, seed, rand.New(rand.NewPCG(seed, 14))
	s.options = pando.Options{MemoryBytes: 1 << 20, ValueThreshold: 300, KeepChanges: int64(s.rng.IntN(2)) << 19, Logger: slog.New(stormLog{&s.stormDevice})}
	s.start(s)
	for i := range 2 + s.rng.IntN(4) {
		s.writers = append(s.writers, &crowdWriter{s: s, n: i, rng: rand.New(rand.NewPCG(seed, uint64(100+i))), possible: map[string][][]byte{}})
	}
	return s
}

func (s *crowdStorm) plug(base *memfs.FS) {
	s.stormDevice.plug(base)
	s.options.FS = s.fs
}

func (s *crowdStorm) open() error {
	var err error
	o := s.options
	s.db, err = pando.Open("db", &o)
	return s.opened(err)
}

func (s *crowdStorm) close() error { return s.db.Close() }

func (s *crowdStorm) run() {
	s.t.Helper()
	s.must("open", s.open())
	defer s.leave(s)
	s.write(200)
	for range 8 {
		if s.rng.IntN(2) == 0 {
			s.reopen(s) // nothing is in memory
		}
		s.begin()
		s.write(10 + s.rng.IntN(60))
		s.recover()
	}
	s.must("close", s.db.Close())
	s.noLeaks("")
}

// write lets all writers take so many steps.
func (s *crowdStorm) write(steps int) {
	s.t.Helper()
	s.crowd.write(s, len(s.writers), func(n int) { s.writers[n].run(steps) })
}

// recover ends the fault and looks whether everything works.
func (s *crowdStorm) recover() {
	s.t.Helper()
	s.calm()
	s.stormDevice.judge("sync", s.db.Sync()) // what failed in the background is told now
	if s.failed {
		s.reopen(s)
	}
	s.write(3)
	s.must("checkpoint", s.db.Checkpoint(ctx))
	s.lookAtAll()
	report, err := s.db.Check(ctx)
	s.must("check", errors.Join(err, report.Err()))
	time.Sleep(forgotten)
}

func (s *crowdStorm) lookAtAll() {
	s.t.Helper()
	found := map[string][]byte{}
	it := s.db.Iter(nil)
	for it.Next() {
		found[string(it.Key())] = append([]byte{}, it.Value()...)
	}
	s.must("walk", errors.Join(it.Err(), it.Close()))
	var count int64
	if v := found[counterKey]; v != nil {
		count = int64(binary.BigEndian.Uint64(v))
	}
	s.counted(count)
	delete(found, counterKey)
	for _, w := range s.writers {
		for key := range w.possible {
			if !w.allows(key, found[key]) {
				s.fatalf("%s has %d bytes (there: %v), and may have one of %d", key, len(found[key]), found[key] != nil, len(w.may(key)))
			}
			w.possible[key] = [][]byte{found[key]} // what was read from a database that had settled is durable
			delete(found, key)
		}
	}
	for key := range found {
		s.fatalf("nobody wrote %s", key)
	}
}

// crowdWriter writes to keys of its own, and to the counter.
type crowdWriter struct {
	s        *crowdStorm
	n        int
	rng      *rand.Rand
	possible map[string][][]byte // what each key may hold; nil: nothing
}

func (w *crowdWriter) run(steps int) {
	do := []stormStep[*crowdWriter]{
		{20, (*crowdWriter).put},
		{5, (*crowdWriter).remove},
		{8, (*crowdWriter).batch},
		{8, (*crowdWriter).get},
		{3, (*crowdWriter).walk},
		{8, (*crowdWriter).raise},
		{5, (*crowdWriter).raiseOptimistically},
		{2, func(w *crowdWriter) { w.judge("checkpoint", w.s.db.Checkpoint(ctx)) }},
		{1, func(w *crowdWriter) { w.judge("sync", w.s.db.Sync()) }},
	}
	for range steps {
		if w.rng.IntN(3) == 0 {
			time.Sleep(time.Duration(w.rng.IntN(30)) * time.Millisecond)
		}
		stepOf(w, w.rng, do)
		if w.s.t.Failed() {
			return
		}
	}
}

func (w *crowdWriter) judge(what string, err error) bool { return w.s.judge(w.n, what, err) }

func (w *crowdWriter) fail(format string, args ...any) { w.s.fail(w.n, format, args...) }

func (w *crowdWriter) key() string { return fmt.Sprintf("writer%d/%03d", w.n, w.rng.IntN(150)) }

func (w *crowdWriter) value() []byte {
	b := noise(fmt.Sprint(w.n, w.rng.Uint64()))
	switch n := w.rng.IntN(60); {
	case n == 0:
		return bytes.Repeat(b, 1+w.rng.IntN(200))
	case n < 6:
		return b
	}
	return b[:w.rng.IntN(90)]
}

func (w *crowdWriter) may(key string) [][]byte {
	if list := w.possible[key]; len(list) > 0 {
		return list
	}
	return [][]byte{nil}
}

func (w *crowdWriter) allows(key string, got []byte) bool {
	return slices.ContainsFunc(w.may(key), func(v []byte) bool { return (v == nil) == (got == nil) && bytes.Equal(v, got) })
}

// wrote notes a write.
func (w *crowdWriter) wrote(key string, value []byte, err error) {
	switch {
	case foundNoRoom(err):
	case w.s.unsure(err):
		w.possible[key] = append([][]byte{value}, w.may(key)...)
	default:
		w.possible[key] = [][]byte{value}
	}
}

func (w *crowdWriter) put() {
	key, v := w.key(), w.value()
	err := w.s.db.Put([]byte(key), v)
	w.judge("put", err)
	w.wrote(key, v, err)
}

func (w *crowdWriter) remove() {
	key := w.key()
	err := w.s.db.Delete([]byte(key))
	w.judge("delete", err)
	w.wrote(key, nil, err)
}

func (w *crowdWriter) batch() {
	b := w.s.db.NewBatch()
	defer b.Reset()
	writes := map[string][]byte{}
	for range 1 + w.rng.IntN(40) {
		writes[w.key()] = w.value()
	}
	for _, key := range slices.Sorted(maps.Keys(writes)) {
		if w.judge("write into a batch", b.Put([]byte(key), writes[key])) {
			return
		}
	}
	err := w.s.db.Write(b)
	w.judge("write", err)
	for key, v := range writes {
		w.wrote(key, v, err)
	}
}

func (w *crowdWriter) get() {
	key := w.key()
	got, err := w.s.db.Get([]byte(key))
	switch {
	case errors.Is(err, pando.ErrNotFound):
		got, err = nil, nil
	case err == nil && got == nil:
		got = []byte{}
	}
	if !w.judge("get", err) && !w.allows(key, got) {
		w.fail("%s has %d bytes (there: %v), and may have one of %d", key, len(got), got != nil, len(w.may(key)))
	}
}

// walk goes over its own keys.
func (w *crowdWriter) walk() {
	it := w.s.db.Iter(&pando.IterOptions{Lower: fmt.Appendf(nil, "writer%d/", w.n), Upper: fmt.Appendf(nil, "writer%d0", w.n)})
	found := map[string]bool{}
	for it.Next() {
		key, v := string(it.Key()), append([]byte{}, it.Value()...)
		if it.Err() != nil {
			break
		}
		if found[key] = true; !w.allows(key, v) {
			w.fail("a walk finds %s with %d bytes, and it may have one of %d", key, len(v), len(w.may(key)))
		}
	}
	if w.judge("walk", errors.Join(it.Err(), it.Close())) {
		return
	}
	for key := range w.possible {
		if !found[key] && !w.allows(key, nil) {
			w.fail("a walk does not find %s", key)
		}
	}
}

// raiseBy raises the counter in a transaction. begun: the write of it has been tried.
func raiseBy(tx *pando.Tx) (begun bool, err error) {
	var count uint64
	v, err := tx.Get([]byte(counterKey))
	switch {
	case err == nil:
		count = binary.BigEndian.Uint64(v)
	case !errors.Is(err, pando.ErrNotFound):
		return false, err
	}
	return true, tx.Put([]byte(counterKey), binary.BigEndian.AppendUint64(nil, count+1))
}

func (w *crowdWriter) raise() {
	begun := false
	key, v := w.key(), w.value()
	err := w.s.db.Update(func(tx *pando.Tx) (err error) {
		if begun, err = raiseBy(tx); err != nil {
			return err
		}
		return tx.Put([]byte(key), v)
	})
	if w.judge("raise the counter", err); begun {
		w.s.raise(err)
		w.wrote(key, v, err)
	}
}

func (w *crowdWriter) raiseOptimistically() {
	for range 5 {
		tx, err := w.s.db.Begin(true)
		if w.judge("begin", err) {
			return
		}
		if _, err := raiseBy(tx); w.judge("raise the counter", err) {
			w.judge("roll back", tx.Rollback())
			return
		}
		if err := tx.Commit(); !errors.Is(err, pando.ErrConflict) {
			w.judge("commit", err)
			w.s.raise(err)
			return
		}
	}
}
