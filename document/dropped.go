package document

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/codec"
)

// The log tells of collections that have been dropped since, and of others under names that they had. So a dropped collection
// leaves behind what its records need to be read, its UUID and its name, and a renamed one the names that it had, until the log
// does not reach back to them any more.

// droppedKey begins the keys of dropped collections in the catalogue's keyspace.
const droppedKey = 'd'

// formerName is a name that a collection had.
type formerName struct {
	Until    uint64 `bson:"until"` // the last change under this name
	Database string `bson:"db"`
	Name     string `bson:"name"`
}

// nameAt returns what a collection was called when the log had come to a change.
func (c *collection) nameAt(seq uint64) namespace {
	// In this order: a name is in the list before it is replaced.
	now := *c.name.Load()
	if list := c.former.Load(); list != nil {
		for _, f := range *list {
			if seq <= f.Until {
				return namespace{f.Database, f.Name}
			}
		}
	}
	return now
}

// putFormer notes that the collection gets another name. The caller holds the collection's schema, so nobody writes to it. What it
// returns takes that back.
func (c *collection) putFormer() (undo func()) {
	before := c.former.Load()
	var list []formerName
	if before != nil {
		oldest := c.store.db.OldestChange()
		list = slices.DeleteFunc(slices.Clone(*before), func(f formerName) bool { return f.Until < oldest })
	}
	ns := c.name.Load()
	list = append(list, formerName{c.store.db.LastSeq(), ns.database, ns.collection})
	c.former.Store(&list)
	return func() { c.former.Store(before) }
}

// formerNames returns the names that the collection had.
func (c *collection) formerNames() []formerName {
	if list := c.former.Load(); list != nil {
		return *list
	}
	return nil
}

// bury puts into a commit what is to be known of a collection that it drops. The caller holds the collection's schema.
func (w *writer) bury(c *collection) error {
	if w.store.options.History < 0 {
		return nil
	}
	e := c.entry(nil)
	ns := c.name.Load()
	e.Dropped, e.Database, e.Name = w.store.db.LastSeq(), ns.database, ns.collection
	value, err := marshal(e)
	if err != nil {
		return err
	}
	return w.tx.In(w.store.meta).Put(binary.BigEndian.AppendUint32([]byte{droppedKey}, c.number), value)
}

// collectionOf returns a collection by its number, also one that was dropped.
func (s *Store) collectionOf(number uint32) (*collection, error) {
	if c := s.current.Load().byNumber[number]; c != nil {
		return c, c.open()
	}
	s.buried.mu.Lock()
	defer s.buried.mu.Unlock()
	if c := s.buried.byNumber[number]; c != nil {
		return c, nil
	}
	value, err := s.meta.Get(binary.BigEndian.AppendUint32([]byte{droppedKey}, number))
	if errors.Is(err, pando.ErrNotFound) {
		return nil, fmt.Errorf("collection %d was dropped long ago: %w", number, pando.ErrChangesGone)
	}
	var e entry
	if err := errors.Join(err, bson.Unmarshal(value, &e)); err != nil {
		return nil, fmt.Errorf("dropped collection %d: %w", number, err)
	}
	c, err := s.exhume(&e)
	if err != nil {
		return nil, fmt.Errorf("dropped collection %d: %w", number, err)
	}
	if s.buried.byNumber == nil || len(s.buried.byNumber) >= keptDropped {
		s.buried.byNumber = map[uint32]*collection{}
	}
	s.buried.byNumber[number] = c
	return c, nil
}

// exhume makes the collection of the entry of a dropped one, to read records from the log.
func (s *Store) exhume(e *entry) (*collection, error) {
	settings, err := parseSettings(e.Options)
	if err != nil {
		return nil, err
	}
	c := &collection{store: s, number: e.Number, uuid: e.UUID, format: Format(e.Format)}
	c.name.Store(&namespace{e.Database, e.Name})
	c.former.Store(&e.Former)
	c.settings.Store(settings)
	c.dropped.Store(true)
	c.codec, err = codec.New(c.format, &templates{c})
	return c, err
}

// forgetDropped removes what was left of collections of which the log does not tell any more.
func (s *Store) forgetDropped() error {
	if s.meta == nil {
		return nil
	}
	oldest := s.db.OldestChange()
	var gone []uint32
	err := s.eachOfKind(droppedKey, func(key, value []byte) error {
		var e struct {
			Dropped uint64 `bson:"dropped"`
		}
		if err := bson.Unmarshal(value, &e); err != nil || len(key) != 5 {
			return fmt.Errorf("dropped collection %x: %w", key, errors.Join(err, pando.ErrCorrupt))
		}
		if e.Dropped < oldest {
			gone = append(gone, binary.BigEndian.Uint32(key[1:]))
		}
		return nil
	})
	for _, number := range gone {
		failed := s.forgetTemplates(number)
		if failed == nil { // without the entry nobody would look for the templates again
			failed = s.meta.Delete(binary.BigEndian.AppendUint32([]byte{droppedKey}, number))
		}
		err = errors.Join(err, failed)
	}
	return err
}

// eachOfKind is eachEntry for the entries of a kind.
func (s *Store) eachOfKind(kind byte, fn func(key, value []byte) error) error {
	return s.eachEntry([]byte{kind}, []byte{kind + 1}, fn)
}

// eachEntry walks over a part of the catalogue's keyspace, which nobody reads again soon. That the handle of the keyspace knows of the newest walk
// that failed would not do: it is everybody's, and it knows that for ever.
func (s *Store) eachEntry(lower, upper []byte, fn func(key, value []byte) error) error {
	it := s.meta.Iter(&pando.IterOptions{Lower: lower, Upper: upper, Once: true})
	defer it.Close()
	for it.Next() {
		value := it.Value()
		if it.Err() != nil {
			break
		}
		if err := fn(it.Key(), value); err != nil {
			return err
		}
	}
	if err := it.Err(); err != nil {
		return fmt.Errorf("read the catalogue of documents: %w", err)
	}
	return nil
}

// forgetTemplates removes the templates of a collection.
func (s *Store) forgetTemplates(number uint32) error {
	var list [][]byte
	lower, upper := templateBounds(number)
	err := s.eachEntry(lower, upper, func(key, _ []byte) error {
		list = append(list, slices.Clone(key))
		return nil
	})
	for _, key := range list {
		err = errors.Join(err, s.meta.Delete(key))
	}
	return err
}

// undropped is the names of keyspaces that are no collection's and no index's any more, and could not be dropped.
type undropped struct {
	mu    sync.Mutex
	names []string
}

// dropKeyspace drops the keyspace of what has gone. What cannot be dropped now, as on a full disk, is tried again later on, and when the store is
// opened next: it is gone all the same.
func (s *Store) dropKeyspace(name string) {
	err := s.db.DropKeyspace(name)
	if err == nil || errors.Is(err, pando.ErrNotFound) || errors.Is(err, pando.ErrClosed) {
		return
	}
	s.log.Warn("the space of what was dropped is not given back yet", "keyspace", name, "error", err)
	s.undropped.mu.Lock()
	defer s.undropped.mu.Unlock()
	s.undropped.names = append(s.undropped.names, name)
}

// dropAgain drops what could not be dropped before.
func (s *Store) dropAgain() {
	s.undropped.mu.Lock()
	names := s.undropped.names
	s.undropped.names = nil
	s.undropped.mu.Unlock()
	for _, name := range names {
		s.dropKeyspace(name)
	}
}

// forgetInterval is how often the store looks for what need not be kept any more.
const forgetInterval = time.Minute

// startForgetting removes from time to time what need not be kept any more, as long as the store is open.
func (s *Store) startForgetting() {
	if s.meta == nil || s.options.Storage.ReadOnly {
		return
	}
	opened := s.clock.Now()
	s.beside.start(func() {
		sessions := false // have been forgotten
		for s.clock.Sleep(s.work, forgetInterval) == nil {
			s.dropAgain()
			err := s.forgetDropped()
			if old := s.clock.Now().Sub(opened) > sessionAge; old && !sessions {
				failed := s.forgetSessions()
				sessions = failed == nil
				err = errors.Join(err, failed)
			}
			if err != nil && s.work.Err() == nil {
				s.log.Error("what need not be kept any more could not be removed", "error", err)
			}
		}
	})
}
