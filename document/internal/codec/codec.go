// Package codec is the stored form of documents: plain BSON, JSON, and templates.
//
// It promises that a document comes back with the same bytes, as long as the lengths in it are right, and that single fields can be looked at
// without decoding the rest. In the template form, documents of one shape (names, order and types of all fields, through
// embedded documents) share a stored template, and strings that come again share a stored dictionary; a record holds packed
// values only. The bytes are described in docs/format/document.md.
//
// It must never make a template or a dictionary entry that the store does not hold yet appear in a record, and never let
// documents of many shapes grow memory or the store beyond the limits below: what has no template is stored as BSON.
//
// Errors of the store pass through Encode as they are, and no record has been made then. Records and definitions that make no
// sense give an error that wraps ErrCorrupt: what is decoded, and each field that a view shows, is BSON whose lengths are right as deep as it
// goes, and those who read it trust them.
package codec

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/internal/corrupt"
)

// Format is how a collection stores its documents.
type Format uint8

// The formats. Their numbers are on disk.
const (
	Template Format = iota // documents of one shape share a template
	BSON                   // as they came
	JSON                   // Extended JSON, for those who read the store with other tools
)

// What bounds a collection's templates and dictionaries, in memory and in the store.
const (
	MaxTemplates         = 4096    // templates of a collection
	MaxDefinition        = 1 << 14 // bytes of a template's definition: a larger shape has none
	MaxDefinitions       = 1 << 20 // bytes of all definitions of templates
	MaxColumns           = 1024    // dictionaries of a collection
	MaxEntries           = 8352    // strings of a dictionary, and patterns of one
	MaxEntry             = 64      // bytes of a string or a pattern in a dictionary
	MaxDictionaries      = 1 << 20 // bytes of all strings in dictionaries
	MaxNesting           = 128     // arrays within arrays of a record: what lies deeper is stored as BSON
	MaxDocument          = 1 << 26 // bytes of a decoded document: four times what a document may have
	dictionaryNumber     = 1 << 31 // numbers from here on belong to parts of dictionaries
	maxFlattened         = 16      // embedded documents within embedded documents that a template flattens
	provenDepth          = 4       // arrays within arrays of a document that is proven valid: with all that is flattened, a hundred levels are far
	rememberedShapes     = 64      // shapes without a template that are remembered at first
	rememberedShapesMax  = 4096    // and when there are many
	rememberedStrings    = 128     // strings without an entry that a column remembers at first
	rememberedStringsMax = 8192    // and when there are many
)

// ErrCorrupt is what errors.Is finds when a record or a definition makes no sense, and corrupt.Err with it.
var ErrCorrupt = fmt.Errorf("stored document: %w", corrupt.Err)

// Templates is where a collection keeps its templates: the codec calls it when it makes a new one, and once at opening.
type Templates interface {
	// Definitions reads every stored template, in the order of their numbers.
	Definitions() Definitions
	// Store writes a template, such that no crash takes it and leaves a record that is written after it. It is called under a
	// lock of the codec, and must not call it. After an error it may be called with the same number and another definition,
	// which then takes the place of what is there. After one that wraps ErrNoRoom documents are written without
	// what it was to store.
	Store(number uint32, definition []byte) error
}

// ErrNoRoom is the error of Templates where there is no space for one more.
var ErrNoRoom = errors.New("no room for a template")

// Definitions is stored templates, one after the other.
type Definitions interface {
	// Next returns the next one, which is valid until the next call. It is false behind the last one, or where one cannot be read.
	Next() (number uint32, definition []byte, ok bool)
	// Close ends the reading, at any time, and returns what it failed with.
	Close() error
}

// Codec encodes and decodes the documents of one collection. It is safe for concurrent use.
type Codec struct {
	format Format
	store  Templates
	seed   maphash.Seed
	lender *loading // where a passing codec has dictionaries from; nil: it is none

	table atomic.Pointer[table]    // all templates: replaced, never changed
	last  atomic.Pointer[template] // the one used last, tried first

	// defining is full while somebody stores a definition: one after the other. It is no mutex, since the store may have to wait for time to
	// pass, and the clock of a synctest stands still while anybody waits for a mutex.
	defining chan struct{}

	mu         sync.Mutex // guards what follows, and changes of table and dictionaries; for moments, since readers come here too
	shapes     []uint64   // hashes of shapes seen lately; its length is a power of two
	missed     int        // shapes without a template since it has that length
	columns    map[string]*column
	maxColumns int
	parts      uint32 // parts of dictionaries in the store
	defined    int    // bytes of the definitions of templates
	dictionary int    // bytes of the strings in dictionaries
}

// New returns the codec of a collection, with the templates that t holds. t may be nil for BSON and JSON.
func New(f Format, t Templates) (*Codec, error) {
	c, err := empty(f, t)
	if err != nil || t == nil {
		return c, err
	}
	l := loadings.Get().(*loading)
	defer l.done()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(l); err != nil {
		return c, err
	}
	l.publish(c)
	return c, nil
}

// empty returns a codec that knows no templates yet.
func empty(f Format, t Templates) (*Codec, error) {
	if f > JSON {
		return nil, fmt.Errorf("codec: unknown format %d: %w", f, ErrCorrupt)
	}
	if t == nil && f == Template {
		f = BSON
	}
	c := &Codec{format: f, store: t, seed: maphash.MakeSeed(), columns: map[string]*column{}, maxColumns: MaxColumns, defining: make(chan struct{}, 1)}
	c.table.Store(&table{})
	return c, nil
}

// Encode appends the stored form of doc to dst. It comes back with the same bytes if it is Sound.
func (c *Codec) Encode(dst []byte, doc bsoncore.Document) ([]byte, error) {
	switch c.format {
	case BSON:
		return appendPlain(dst, doc), nil
	case JSON:
		return appendJSON(dst, doc), nil
	}
	n, p := len(dst), packer{c: c}
	if t := c.last.Load(); t != nil {
		packed, ok, err := p.pack(appendTag(dst, t.number), t, doc, 0)
		if ok || err != nil {
			return packed, err
		}
		dst = packed[:n]
	}
	t, err := c.templateOf(doc)
	if err != nil {
		return dst, err
	}
	if t != nil {
		packed, ok, err := p.pack(appendTag(dst, t.number), t, doc, 0)
		if err != nil {
			return dst, err
		}
		if ok {
			c.last.Store(t)
			return packed, nil
		}
		dst = packed[:n]
	}
	return appendPlain(dst, doc), nil
}

// EncodeUnseen is Encode for a document that nobody has looked at yet: packing one by a template compares most of it with what is
// known, and so tells in the same pass whether it is BSON with different names, text in UTF-8 and no excessive depth. proven says that it is.
// Else the document has to be checked, and what was appended may be kept if it is valid. Nothing was appended when there is no template
// at hand.
func (c *Codec) EncodeUnseen(dst []byte, doc bsoncore.Document) (record []byte, proven bool, err error) {
	t := c.last.Load()
	if t == nil || c.format != Template {
		return dst, false, nil
	}
	p := packer{c: c, prove: true}
	packed, ok, err := p.pack(appendTag(dst, t.number), t, doc, 0)
	if !ok || err != nil {
		return packed[:len(dst)], false, err
	}
	return packed, !p.doubt, nil
}

// Decode appends the document to dst. It allocates nothing when it fits.
func (c *Codec) Decode(dst, stored []byte) ([]byte, error) {
	if t, body := c.common(stored); t != nil {
		return c.unpackRecord(dst, t, body)
	}
	r, err := c.open(stored)
	if err != nil {
		return dst, err
	}
	switch {
	case r.template != nil:
		return c.unpackRecord(dst, r.template, r.body)
	case r.json:
		return parseJSON(dst, r.body)
	}
	return r.appendPlain(dst)
}
