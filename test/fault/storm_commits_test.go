package fault

import (
	"errors"
	"maps"
	"slices"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// stormWrite is one write of a batch: a pair, or a range of keys that goes.
type stormWrite struct {
	space, key, high string
	value            []byte
}

func (s *storm) batch() {
	s.t.Helper()
	b := s.db.NewBatch()
	defer b.Reset()
	var writes []stormWrite
	count := 5
	if s.rng.IntN(6) == 0 {
		count = 3000 // a spill file, and a bulk load
	}
	for range count {
		name, ks := s.keyspace()
		w := stormWrite{space: name, key: s.key()}
		var err error
		switch n := s.rng.IntN(1000); {
		case n < 5 && ks.Layout() == pando.Tree:
			w.high = w.key[:len(w.key)-1] + "9"
			err = b.In(ks).DeleteRange([]byte(w.key), []byte(w.high))
		case n < 20:
			err = b.In(ks).Delete([]byte(w.key))
		default:
			w.value = s.value()
			if n > 25 {
				w.value = w.value[:min(len(w.value), 3000)]
			}
			err = b.In(ks).Put([]byte(w.key), w.value)
		}
		writes = append(writes, w)
		if s.judge("write into a batch", err) {
			return
		}
	}
	if s.judge("note in a batch", b.Note([]byte("a note"))) {
		return
	}
	err := s.noted("write", s.db.Write(b))
	if err != nil && s.rng.IntN(2) == 0 { // it may have lost its file, and is not written then either
		if again := s.db.Write(b); !errors.Is(again, pando.ErrBatchLost) {
			err = s.noted("write again", again)
		}
	}
	for _, w := range writes {
		if w.high == "" {
			s.model.wrote(w.space, w.key, cell{value: w.value}, err)
			continue
		}
		for key := range s.model.tables[w.space].possible {
			if key >= w.key && key < w.high {
				s.model.wrote(w.space, key, cell{}, err)
			}
		}
	}
}

// savepoints makes a transaction that goes back to where it was before, now and then.
func (s *storm) savepoints() {
	s.t.Helper()
	name, ks := s.keyspace()
	writes, complete := map[string][]byte{}, false
	err := s.db.Update(func(tx *pando.Tx) error {
		complete = false
		clear(writes)
		for range 1 + s.rng.IntN(4) {
			p, before := tx.Savepoint(), maps.Clone(writes)
			some := map[string][]byte{}
			for range 1 + s.rng.IntN(40) {
				some[s.key()] = s.value()
			}
			if err := change(tx.In(ks), some); err != nil {
				return err
			}
			maps.Copy(writes, some)
			if s.rng.IntN(2) == 0 {
				if err := tx.RollbackTo(p); err != nil {
					return err
				}
				writes = before
			}
		}
		complete = true
		return nil
	})
	s.judge("savepoints", err)
	if complete {
		s.wroteAll(name, writes, err)
	}
}

// writeBack has the device take some of what it was not asked for yet.
func (s *storm) writeBack() {
	s.base.WriteBack(memfs.Policy{Unsynced: memfs.Random, Seed: s.rng.Uint64(), Torn: 512, Reordered: s.rng.IntN(2) == 0})
}

func (s *storm) transaction() {
	s.t.Helper()
	name, ks := s.keyspace()
	writes, count := map[string][]byte{}, 3
	if s.rng.IntN(8) == 0 {
		count = 1500 // a spill file
	}
	for range count {
		v := s.value()
		writes[s.key()] = v[:min(len(v), 3000)]
	}
	complete := false
	err := s.db.Update(func(tx *pando.Tx) error {
		complete = false
		err := change(tx.In(ks), writes)
		complete = err == nil
		return err
	})
	s.judge("transaction", err)
	if complete {
		s.wroteAll(name, writes, err)
	}
}

// optimistic commits a transaction after somebody else's write.
func (s *storm) optimistic() {
	s.t.Helper()
	name, ks := s.keyspace()
	writes := map[string][]byte{s.key(): s.value(), s.key(): s.value()}
	tx, err := s.db.Begin(true)
	if s.judge("begin", err) {
		return
	}
	if s.judge("change", change(tx.In(ks), writes)) {
		s.judge("roll back", tx.Rollback())
		return
	}
	s.put()
	if err := tx.Commit(); !errors.Is(err, pando.ErrConflict) {
		s.wroteAll(name, writes, s.noted("commit", err))
	}
}

// change reads and writes in a transaction, in the order of keys.
func change(tx *pando.Tx, writes map[string][]byte) error {
	for _, k := range slices.Sorted(maps.Keys(writes)) {
		if _, err := tx.Get([]byte(k)); err != nil && !errors.Is(err, pando.ErrNotFound) {
			return err
		}
		if err := tx.Put([]byte(k), writes[k]); err != nil {
			return err
		}
	}
	return nil
}

func (s *storm) wroteAll(name string, writes map[string][]byte, err error) {
	for k, v := range writes {
		s.model.wrote(name, k, cell{value: v}, err)
	}
}
