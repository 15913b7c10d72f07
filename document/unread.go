package document

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/codec"
)

// A collection is opened when it is used first: its options and indexes are parsed, its templates are read, its keyspaces are
// looked up. A store of a thousand collections would have most of them opened for nothing. Opening the store reads of an entry
// only which collection and which keyspaces there are. To get a document by its _id takes the records alone: indexes follow when something
// else is asked. The first of them is decoded with templates and dictionaries that are read for it and not kept: they take many times
// as much memory as all else that there is of a collection, and a store may have a document read from each of its thousand.

// unread is what a collection is opened from.
type unread struct {
	mu      sync.Mutex             // held while it is opened
	stored  atomic.Pointer[stored] // nil once it is open, and in a collection that was made in this run
	records atomic.Bool            // the records are open, and so is the codec; the indexes may not be
	found   bool                   // records can be found; the codec may not be there. Guarded by mu
}

// stored is an entry of the catalogue as it was read, and what is needed of it before the collection is used.
type stored struct {
	value   document
	number  uint32
	uuid    bson.Binary
	view    bool
	options document
	indexes []storedIndex

	// What the records are found with, besides.
	format   uint8
	collated bool
	loose    bool
	former   bool // it has had other names

	temporary bool
	taken     uint32 // the highest number of an index that is none, and of which something is still to be dropped
}

// storedIndex is what is needed of an index before its collection is used.
type storedIndex struct {
	number  uint32
	ready   bool
	expires bool // it is a TTL index
}

// readStored looks through an entry of the catalogue.
func readStored(value []byte) (*stored, error) {
	s := &stored{value: bytes.Clone(value)}
	if err := s.value.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", pando.ErrCorrupt, err)
	}
	for e := range inOrder(s.value) {
		switch v := e.Value(); e.Key() {
		case "number":
			n, _ := v.AsInt64OK()
			s.number = uint32(n)
		case "uuid":
			s.uuid.Subtype, s.uuid.Data, _ = v.BinaryOK()
		case "view":
			s.view = truthy(v)
		case "options":
			s.options, _ = v.DocumentOK()
		case "format":
			n, _ := v.AsInt64OK()
			s.format = uint8(min(uint64(n), math.MaxUint8)) // which is none
		case "collated":
			s.collated = truthy(v)
		case "loose":
			s.loose = truthy(v)
		case "temporary":
			s.temporary = truthy(v)
		case "former":
			s.former = true
		case "indexes":
			list, _ := v.ArrayOK()
			for x := range inOrder(document(list)) {
				s.indexes = append(s.indexes, readStoredIndex(x.Value()))
			}
		}
	}
	return s, nil
}

// inOrder goes over the elements of a document that is known to be valid, without making a list of them: a store has many entries.
func inOrder(doc document) iter.Seq[bsoncore.Element] {
	return func(yield func(bsoncore.Element) bool) {
		if len(doc) <= len(emptyDocument()) {
			return
		}
		for rest := []byte(doc[4 : len(doc)-1]); len(rest) > 0; {
			e, next, ok := bsoncore.ReadElement(rest)
			if !ok || !yield(e) {
				return
			}
			rest = next
		}
	}
}

func readStoredIndex(v bsoncore.Value) (x storedIndex) {
	doc, _ := v.DocumentOK()
	for e := range inOrder(doc) {
		switch v := e.Value(); e.Key() {
		case "number":
			n, _ := v.AsInt64OK()
			x.number = uint32(n)
		case "ready":
			x.ready = truthy(v)
		case "spec":
			spec, _ := v.DocumentOK()
			_, err := spec.LookupErr("expireAfterSeconds")
			x.expires = err == nil
		}
	}
	return x
}

// expires reports whether documents of the collection may expire.
func (s *stored) expires() bool {
	if _, err := s.options.LookupErr("expireAfterSeconds"); err == nil {
		return true
	}
	for _, x := range s.indexes {
		if x.expires {
			return true
		}
	}
	return false
}

// named returns the collection of a name, open, and nil when there is none.
func (c *catalogue) named(ns namespace) (*collection, error) {
	x := c.byName[ns.String()]
	if x == nil {
		return nil, nil
	}
	return x, x.open()
}

// open makes a collection of the catalogue ready for use.
func (c *collection) open() error {
	if c.unread.stored.Load() == nil {
		return nil
	}
	c.unread.mu.Lock()
	defer c.unread.mu.Unlock()
	s := c.unread.stored.Load()
	if s == nil { // somebody was faster
		return nil
	}
	var e entry
	err := s.sound()
	if err == nil {
		err = bson.Unmarshal(s.value, &e)
	}
	if err == nil {
		err = c.openCodec(&e)
	}
	if err == nil {
		err = c.fillIndexes(&e, s.taken)
	}
	if err != nil {
		return c.unopened(err)
	}
	c.unread.stored.Store(nil)
	return nil
}

// sound tells what makes no sense in the depth of an entry, of which readStored has seen the surface only: a collection whose validator cannot be
// read keeps no other from being used.
func (s *stored) sound() error {
	if codec.Sound(s.value) {
		return nil
	}
	return fmt.Errorf("its entry in the catalogue: %w", pando.ErrCorrupt)
}

// openRecords makes the records of a collection ready to be read by their keys; its indexes may not be open. The first time the codec is
// not there: the record is to be decoded with a passing one.
func (c *collection) openRecords() (passing bool, err error) {
	if c.unread.records.Load() || c.unread.stored.Load() == nil {
		return false, nil
	}
	c.unread.mu.Lock()
	defer c.unread.mu.Unlock()
	s := c.unread.stored.Load()
	if s == nil || c.unread.records.Load() {
		return false, nil
	}
	first := !c.unread.found
	err = s.sound()
	var e entry
	if err == nil {
		e, err = s.heading()
	}
	if err == nil && first {
		err = c.findRecords(&e)
	} else if err == nil {
		err = c.openCodec(&e)
	}
	if err != nil {
		return false, c.unopened(err)
	}
	return first, nil
}

// findRecords makes records ready to be found, if they are not. The caller holds the lock.
func (c *collection) findRecords(e *entry) error {
	if c.unread.found {
		return nil
	}
	err := c.fillRecords(e)
	c.unread.found = err == nil
	return err
}

// openCodec makes records ready to be found, read and written. The caller holds the lock.
func (c *collection) openCodec(e *entry) error {
	if c.unread.records.Load() {
		return nil
	}
	if err := c.findRecords(e); err != nil {
		return err
	}
	err := c.fillCodec()
	c.unread.records.Store(err == nil)
	return err
}

func (c *collection) unopened(err error) error {
	return fmt.Errorf("open collection %s: %w", c.name.Load(), err)
}

// heading is what fillRecords needs of an entry.
func (s *stored) heading() (entry, error) {
	if s.former { // few collections have been renamed
		whole := new(entry)
		err := bson.Unmarshal(s.value, whole)
		return *whole, err
	}
	return entry{Number: s.number, Options: bson.Raw(s.options), Format: s.format, Collated: s.collated, Loose: s.loose, Temporary: s.temporary}, nil
}

// spec returns the collection's options as MongoDB's create command has them.
func (c *collection) spec() document {
	if s := c.unread.stored.Load(); s != nil {
		return s.options
	}
	return c.settings.Load().spec
}
