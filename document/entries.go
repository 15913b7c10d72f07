package document

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/path"
)

// enter brings all indexes up to date with a document that is new (old is nil), changed, or gone (doc is nil). First everything
// is read that may refuse the change, then it is written: a read behind a write has to look through what was written.
func (w *writer) enter(c *collection, key []byte, old, doc document) error {
	list := w.indexesOf(c)
	for len(w.moves) < len(list) {
		w.moves = append(w.moves, new(move))
	}
	for i, x := range list {
		m := w.moves[i]
		if err := m.entries(c, x, old, doc); err != nil {
			return err
		}
		if x.def.Unique && !x.ready {
			if err := w.leaveOthers(x, m, key); err != nil {
				return err
			}
		}
		if x.def.Distinct() {
			if err := w.checkUnique(c, x, m, key, doc); err != nil {
				return err
			}
		}
	}
	for i, x := range list {
		if err := w.raiseMultikey(c, x, w.moves[i].new.Multikey); err != nil {
			return err
		}
		if err := w.exchange(x, w.moves[i], key); err != nil {
			return err
		}
	}
	return nil
}

// move is what one change does to one index.
type move struct{ old, new index.Entries }

// entries computes the entries of a document before and after.
func (m *move) entries(c *collection, x *secondary, old, doc document) error {
	m.old.Keys, m.new.Keys, m.new.Multikey = m.old.Keys[:0], m.new.Keys[:0], 0
	if old != nil {
		if err := x.def.Append(&m.old, path.Document(old)); err != nil {
			return indexError(c, x, err)
		}
	}
	if doc != nil {
		if err := x.def.Append(&m.new, path.Document(doc)); err != nil {
			return indexError(c, x, err)
		}
	}
	return nil
}

// each calls remove and add for the entries that differ. Both lists are sorted.
func (m *move) each(remove func(i int) error, add func(j int, replaces bool) error) error {
	i, j := 0, 0
	for i < len(m.old.Keys) || j < len(m.new.Keys) {
		order := 1
		if j == len(m.new.Keys) {
			order = -1
		} else if i < len(m.old.Keys) {
			order = bytes.Compare(m.old.Keys[i], m.new.Keys[j])
		}
		var err error
		switch {
		case order < 0:
			err = remove(i)
		case order > 0 || m.old.Exact[i] != m.new.Exact[j]:
			err = add(j, order == 0)
		}
		if err != nil {
			return err
		}
		if order <= 0 {
			i++
		}
		if order >= 0 {
			j++
		}
	}
	return nil
}

// leaveOthers makes a change leave the entries of other records alone: while a unique index is being built, a document may not have its
// entries yet, and another one may have the same. If that is still so when the build comes to the document, it fails.
func (w *writer) leaveOthers(x *secondary, m *move, record []byte) error {
	kept := 0
	for i, key := range m.old.Keys {
		free, err := w.isFree(x, key, record)
		if err != nil {
			return err
		}
		j, stays := slices.BinarySearchFunc(m.new.Keys, key, bytes.Compare)
		if !free && !stays {
			continue
		}
		m.old.Keys[kept], m.old.Exact[kept] = key, m.old.Exact[i]
		if !free {
			m.old.Exact[kept] = m.new.Exact[j]
		}
		kept++
	}
	m.old.Keys, m.old.Exact = m.old.Keys[:kept], m.old.Exact[:kept]
	return nil
}

// exchange removes the entries that are not needed any more, and adds those that are new.
func (w *writer) exchange(x *secondary, m *move, key []byte) error {
	ks := w.tx.In(x.ks)
	return m.each(func(i int) error {
		return ks.Delete(x.entryKey(m.old.Keys[i], key))
	}, func(j int, _ bool) error {
		return ks.Put(x.entryKey(m.new.Keys[j], key), x.entryValue(m.new.Exact[j], key))
	})
}

// entryKey returns the key of an entry in the index's keyspace: made unique by the record's key, unless it is so by itself.
func (x *secondary) entryKey(entry, record []byte) []byte {
	if x.def.Unique {
		return entry
	}
	return slices.Concat(entry, record)
}

// What the value of an entry begins with: whether the entry decodes to the very values of the document.
const (
	entryExact   = 0
	entryInexact = 1
)

// entryValue returns the value of an entry: see docs/format/collections.md.
func (x *secondary) entryValue(exact bool, record []byte) []byte {
	return x.appendEntryValue(nil, exact, record)
}

func (x *secondary) appendEntryValue(dst []byte, exact bool, record []byte) []byte {
	flag := byte(entryExact)
	if !exact {
		flag = entryInexact
	}
	switch {
	case x.def.Unique:
		return append(append(dst, flag), record...)
	case exact:
		return dst
	}
	return append(dst, flag)
}

// checkUnique fails when another record has one of the entries that a change adds; doc is the document behind it.
func (w *writer) checkUnique(c *collection, x *secondary, m *move, record []byte, doc document) error {
	return m.each(func(int) error { return nil }, func(j int, replaces bool) error {
		if replaces {
			return nil
		}
		free, err := w.isFree(x, m.new.Keys[j], record)
		if err != nil || free {
			return err
		}
		return duplicateKey(c, x, m.new.Keys[j], doc)
	})
}

// isFree reports whether no other record has an entry of an index that takes no duplicates.
func (w *writer) isFree(x *secondary, entry, record []byte) (bool, error) {
	if !x.def.Unique {
		return w.isAlone(x, entry, record)
	}
	value, err := w.tx.In(x.ks).GetTo(w.buf[:0], entry)
	if errors.Is(err, pando.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	w.buf = value
	return len(value) > 0 && bytes.Equal(value[1:], record), nil
}

// isAlone is isFree for an index whose keys end in those of the records.
func (w *writer) isAlone(x *secondary, entry, record []byte) (bool, error) {
	it := w.tx.In(x.ks).Iter(&pando.IterOptions{Lower: entry, Upper: keyenc.End(nil, entry)})
	alone := true
	for alone && it.Next() {
		alone = bytes.Equal(it.Key()[len(entry):], record)
	}
	return alone, it.Close()
}

// raiseMultikey notes that components of an index met arrays: at once in memory, where planners look, and with this commit in the catalogue,
// unless an earlier one has put it there.
func (w *writer) raiseMultikey(c *collection, x *secondary, bits uint64) error {
	if bits&^x.stored.Load() == 0 {
		return nil
	}
	x.multikey.Or(bits)
	return w.raise(raised{c: c, index: x, bits: bits})
}

// raised is something that is known of a collection from a commit on: that components of an index met arrays or, where index is nil, that a
// time series is loose.
type raised struct {
	c      *collection
	index  *secondary
	bits   uint64
	undone uint64 // what undone was of the collection, in front of its entry
}

// raise writes what is raised with this commit. Others rely on it only when the commit has succeeded: until then each writes it again.
func (w *writer) raise(r raised) error {
	for _, before := range w.raised {
		if before.c == r.c && before.index == r.index && r.bits&^before.bits == 0 {
			return nil
		}
	}
	r.undone = r.c.undone.Load()
	w.raised = append(w.raised, r)
	return w.putEntry(r.c)
}

// keepRaised notes that the commit has succeeded.
func (w *writer) keepRaised() {
	for _, r := range w.raised {
		if r.index == nil {
			r.c.looseStored.Store(true)
		} else {
			r.index.stored.Or(r.bits)
		}
	}
	w.raised = nil
}

// putEntry writes a collection's entry in the catalogue.
func (w *writer) putEntry(c *collection) error {
	value, err := marshal(c.entry(*c.indexes.Load()))
	if err != nil {
		return err
	}
	ns := c.name.Load()
	return w.tx.In(w.store.meta).Put(nameKey(ns.database, ns.collection), value)
}

// duplicateID is the error of a document whose _id is there already.
func duplicateID(c *collection, id bsoncore.Value) error {
	value := bsoncore.NewDocumentBuilder().AppendValue("_id", id).Build()
	pattern := bsoncore.NewDocumentBuilder().AppendInt32("_id", 1).Build()
	return duplicate(c, "_id_", c.settings.Load().collation, pattern, value)
}

// duplicateKey is the error of a document whose entry in a unique index is there already. Of a collation's keys it shows the strings
// that the document has.
func duplicateKey(c *collection, x *secondary, entry []byte, doc document) error {
	values, ok := x.def.Values(doc, entry)
	if !ok {
		return fmt.Errorf("%s, index %s: a document does not have its own entry", c.name.Load(), x.def.Name)
	}
	value := bsoncore.NewDocumentBuilder()
	for i, part := range x.def.Components {
		value.AppendValue(part.Path, values[i])
	}
	return duplicate(c, x.def.Name, x.def.Collation, x.def.Keys, value.Build())
}

// duplicate is the error of a key that an index, of a collation or nil, has already.
func duplicate(c *collection, name string, by *collation.Collation, pattern, value document) error {
	var rules document
	if by != nil {
		rules = by.Document()
		name += " collation: " + notation.Document(rules)
	}
	return &Error{
		Code: mongoerror.DuplicateKey, KeyPattern: pattern, KeyValue: value, Collation: rules,
		Message: fmt.Sprintf("E11000 duplicate key error collection: %s index: %s dup key: %s", c.name.Load(), name, notation.Document(value)),
	}
}

// indexError says in which index a document could not be entered.
func indexError(c *collection, x *secondary, err error) error {
	return fmt.Errorf("%s, index %s: %w", c.name.Load(), x.def.Name, err)
}
