package fault

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/pandodb/pando"
)

// stormSteps are what a step of a storm may be, each as often as its weight says.
var stormSteps = []stormStep[*storm]{
	{40, func(s *storm) { s.put() }},
	{4, (*storm).remove},
	{6, (*storm).get},
	{3, (*storm).deleteRange},
	{3, (*storm).putExpiring},
	{5, (*storm).batch},
	{4, (*storm).transaction},
	{3, (*storm).optimistic},
	{2, (*storm).putReader},
	{2, (*storm).putUnsynced},
	{6, func(s *storm) { _ = s.checkpoint() }},
	{2, (*storm).compact},
	{2, (*storm).backup},
	{2, (*storm).savepoints},
	{1, (*storm).writeBack},
	{3, (*storm).snapshot},
	{2, (*storm).makeKeyspace},
	{2, (*storm).dropKeyspace},
	{2, (*storm).count},
	{2, (*storm).walk},
	{2, (*storm).changes},
	{1, func(s *storm) { _, err := s.db.Check(ctx); s.judge("check", err) }},
	{2, (*storm).sync},
	{4, (*storm).pause},
	{1, (*storm).salvage},
	{2, func(s *storm) {
		if s.failed || s.rng.IntN(3) == 0 {
			s.reopen()
		}
	}},
}

func (s *storm) step() {
	s.t.Helper()
	stepOf(s, s.rng, stormSteps)
}

func (s *storm) noted(what string, err error) error {
	s.t.Helper()
	s.judge(what, err)
	return err
}

func (s *storm) key() string { return fmt.Sprintf("key%05d", s.rng.IntN(2500)) }

func (s *storm) value() []byte {
	s.drawn++
	bytesOf := noise(fmt.Sprint(s.drawn))
	switch n := s.rng.IntN(40); {
	case n == 0:
		return bytes.Repeat(bytesOf, 1+s.rng.IntN(3000)) // up to several chunks
	case n < 6:
		return bytes.Repeat(bytesOf, 1+s.rng.IntN(9))
	case n < 10:
		return []byte{}
	}
	return bytesOf[:s.rng.IntN(90)]
}

// keyspace draws one that is there for certain.
func (s *storm) keyspace() (string, *pando.Keyspace) {
	s.t.Helper()
	names := s.model.names()
	name := names[s.rng.IntN(len(names))]
	if ks := s.named(name); ks != nil {
		return name, ks
	}
	return inDefault, s.db.Default()
}

// named returns a keyspace, or nil when nobody knows whether it is there, or when it does not open.
func (s *storm) named(name string) *pando.Keyspace {
	s.t.Helper()
	if name == inDefault {
		return s.db.Default()
	}
	if s.model.tables[name].vague {
		return nil
	}
	ks, err := s.db.Keyspace(name, nil)
	if s.judge("keyspace", err) {
		return nil
	}
	return ks
}

// look reads a key.
func (s *storm) look(name string, from interface{ Get([]byte) ([]byte, error) }, key string) {
	s.t.Helper()
	before := time.Now()
	got, err := from.Get([]byte(key))
	switch {
	case errors.Is(err, pando.ErrNotFound):
		got, err = nil, nil
	case err == nil && got == nil:
		got = []byte{}
	}
	if s.judge("get", err) {
		return
	}
	if !s.model.allows(name, key, got, before, s.soon()) {
		s.fatalf("%q/%s has %d bytes (there: %v), which it never had: it may be one of %d, the newest one of %d bytes", name, key, len(got), got != nil,
			len(s.model.tables[name].cells(key)), len(s.model.tables[name].cells(key)[0].value))
	}
}

// soon is until when something may have expired: the clock of the database runs ahead a little, after a crash.
func (s *storm) soon() time.Time { return time.Now().Add(2 * time.Second) }

func (s *storm) lookAtAll() {
	s.t.Helper()
	for _, name := range s.model.names() {
		if ks := s.named(name); ks != nil {
			for key := range s.model.tables[name].possible {
				s.look(name, ks, key)
			}
		}
	}
}

func (s *storm) get() {
	s.t.Helper()
	name, ks := s.keyspace()
	s.look(name, ks, s.key())
}

func (s *storm) put() bool {
	s.t.Helper()
	name, ks := s.keyspace()
	key, v := s.key(), s.value()
	err := s.noted("put", ks.Put([]byte(key), v))
	s.model.wrote(name, key, cell{value: v}, err)
	return err == nil
}

func (s *storm) putReader() {
	s.t.Helper()
	name, ks := s.keyspace()
	key, v := s.key(), s.value()
	s.model.wrote(name, key, cell{value: v}, s.noted("put reader", ks.PutReader([]byte(key), bytes.NewReader(v))))
}

func (s *storm) putExpiring() {
	s.t.Helper()
	name, ks := s.keyspace()
	key, c := s.key(), cell{s.value(), time.Now().Add(time.Duration(1+s.rng.IntN(60)) * time.Second)}
	s.model.wrote(name, key, c, s.noted("put expiring", ks.PutExpiring([]byte(key), c.value, c.expiry)))
}

func (s *storm) putUnsynced() {
	s.t.Helper()
	name, ks := s.keyspace()
	key, v := s.key(), s.value()
	s.model.wroteUnsynced(name, key, cell{value: v}, s.noted("put unsynced", ks.PutUnsynced([]byte(key), v)))
}

func (s *storm) remove() {
	s.t.Helper()
	name, ks := s.keyspace()
	key := s.key()
	s.model.wrote(name, key, cell{}, s.noted("delete", ks.Delete([]byte(key))))
}

func (s *storm) deleteRange() {
	s.t.Helper()
	name, ks := s.keyspace()
	low := s.key()
	high := low[:len(low)-1] + "9"
	hash := ks.Layout() == pando.Hash
	var err error
	if hash { // it has no part between two keys
		err = s.noted("delete everything", ks.DeleteRange(nil, nil))
	} else {
		err = s.noted("delete range", ks.DeleteRange([]byte(low), []byte(high)))
	}
	for key := range s.model.tables[name].possible {
		if hash || key >= low && key < high {
			s.model.wrote(name, key, cell{}, err)
		}
	}
}

func (s *storm) count() {
	s.t.Helper()
	_, ks := s.keyspace()
	_, err := ks.Count(nil, nil)
	s.judge("count", err)
}

func (s *storm) walk() {
	s.t.Helper()
	name, ks := s.keyspace()
	it := ks.Iter(nil)
	defer func() { _ = it.Close() }()
	found := map[string]bool{}
	start := time.Now()
	for ok := it.First(); ok; ok = it.Next() {
		found[string(it.Key())] = true
	}
	if s.judge("walk", it.Err()) {
		return
	}
	for key := range s.model.tables[name].possible {
		may, must := s.model.presence(name, key, start, s.soon())
		if found[key] && !may || !found[key] && must {
			s.fatalf("a walk over %q finds %s: %v; may: %v, must: %v", name, key, found[key], may, must)
		}
		delete(found, key)
	}
	for key := range found {
		s.fatalf("a walk over %q finds %s, which nobody wrote", name, key)
	}
}

// snapshot holds the database as it is while things go on, and what it shows may be dropped.
func (s *storm) snapshot() {
	s.t.Helper()
	name, ks := s.keyspace()
	snap := s.db.Snapshot()
	defer func() { s.judge("close a snapshot", snap.Close()) }()
	frozen := newTable()
	for range 40 {
		key := s.key()
		if c := s.model.tables[name].cells(key); len(c) == 1 && c[0].expiry.IsZero() {
			frozen.possible[key] = c
		}
	}
	for i := range 2 {
		for range 60 {
			if !s.put() {
				break
			}
		}
		_ = s.checkpoint()
		if i == 0 && s.rng.IntN(4) == 0 {
			s.drop(name)
		}
	}
	now := s.model.tables[name]
	s.model.tables[name] = frozen
	defer func() {
		if s.model.tables[name] = now; now == nil {
			delete(s.model.tables, name)
		}
	}()
	for key := range frozen.possible {
		s.look(name, snap.In(ks), key)
	}
}

func (s *storm) checkpoint() error {
	s.t.Helper()
	err := s.noted("checkpoint", s.db.Checkpoint(ctx))
	if err == nil {
		s.model.settled()
	}
	return err
}

func (s *storm) sync() {
	s.t.Helper()
	if !s.judge("sync", s.db.Sync()) {
		s.model.settled()
	}
}

func (s *storm) compact() {
	s.t.Helper()
	if !s.judge("compact", s.db.Compact(ctx, pando.CompactOptions{Compression: pando.Compression(s.rng.IntN(4))})) {
		s.model.settled()
	}
}

// pause lets the worker work, and time pass, in which sectors that fail are taken for lost.
func (s *storm) pause() {
	if s.fault != "sectors" || s.lossy || s.rng.IntN(4) == 0 {
		time.Sleep(time.Duration(s.rng.IntN(1500)) * time.Millisecond)
	}
}

func (s *storm) makeKeyspace() {
	s.t.Helper()
	name := fmt.Sprint("space", s.rng.IntN(4))
	if s.model.tables[name] != nil || s.model.moved[name] {
		return
	}
	o := &pando.KeyspaceOptions{}
	if name == "space1" || name == "space2" {
		o.Layout = pando.Hash
	}
	_, err := s.db.Keyspace(name, o)
	s.model.made(name, s.noted("make a keyspace", err))
}

func (s *storm) dropKeyspace() {
	s.t.Helper()
	names := s.model.names()
	s.drop(names[s.rng.IntN(len(names))])
}

func (s *storm) drop(name string) {
	s.t.Helper()
	if name == inDefault || s.model.tables[name].vague {
		return
	}
	if s.judge("drop", s.db.DropKeyspace(name)) {
		s.model.tables[name].vague = true
		s.model.move(name)
		return
	}
	s.model.dropped(name)
}

func (s *storm) changes() {
	s.t.Helper()
	last := uint64(0)
	for c, err := range s.db.Changes(ctx, pando.ChangesOptions{From: s.db.OldestChange()}) {
		if errors.Is(err, pando.ErrChangesGone) || s.judge("changes", err) {
			return
		}
		if c.Seq < last {
			s.fatalf("change %d follows on %d", c.Seq, last)
		}
		last = c.Seq
	}
}

// salvage saves a backup, which may be none yet, while the fault is in force.
func (s *storm) salvage() {
	s.t.Helper()
	s.drawn++
	o := s.options
	_, err := pando.Salvage(ctx, "backup0", fmt.Sprint("saved", s.drawn), &pando.Options{FS: o.FS, MemoryBytes: o.MemoryBytes})
	if errors.Is(err, pando.ErrNotFound) || errors.Is(err, pando.ErrNotDatabase) || errors.Is(err, pando.ErrUnfinished) {
		return
	}
	if s.judge("salvage", err) {
		s.noLeaks("saved")
	}
}
