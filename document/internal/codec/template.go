package codec

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// The first byte of a definition.
const (
	definitionTemplate   = 1
	definitionDictionary = 2
	definitionPatterns   = 3
)

// What a definition of a template has in the place of a BSON type, beside those.
const (
	endOfDocument = 0
	typeWhole     = 0xe3 // an embedded document that is stored as BSON
	typeRelative  = 0x40 // added to the type of an integer or a date: it is stored as the difference from an earlier one
)

// kind is how the values of a field are packed.
type kind uint8

const (
	kindNothing kind = iota // null, undefined, the least and the greatest key
	kindBool
	kindInt32
	kindInt64
	kindDate
	kindDouble
	kindString // also code and symbols
	kindFixed  // ObjectIDs, timestamps, decimals
	kindBinary
	kindWhole // as in BSON: regular expressions, pointers, code with scope, embedded documents too deep to flatten
	kindArray
	kindEnter // an embedded document begins
	kindLeave // and ends
)

// kindOf returns how values of a BSON type are packed, and the bytes of a value of fixed size.
func kindOf(t byte) (k kind, size int, ok bool) {
	switch bsoncore.Type(t) {
	case bsoncore.TypeNull, bsoncore.TypeUndefined, bsoncore.TypeMinKey, bsoncore.TypeMaxKey:
		return kindNothing, 0, true
	case bsoncore.TypeBoolean:
		return kindBool, 0, true
	case bsoncore.TypeInt32:
		return kindInt32, 0, true
	case bsoncore.TypeInt64:
		return kindInt64, 0, true
	case bsoncore.TypeDateTime:
		return kindDate, 0, true
	case bsoncore.TypeDouble:
		return kindDouble, 0, true
	case bsoncore.TypeString, bsoncore.TypeJavaScript, bsoncore.TypeSymbol:
		return kindString, 0, true
	case bsoncore.TypeObjectID:
		return kindFixed, 12, true
	case bsoncore.TypeTimestamp:
		return kindFixed, 8, true
	case bsoncore.TypeDecimal128:
		return kindFixed, 16, true
	case bsoncore.TypeBinary:
		return kindBinary, 0, true
	case bsoncore.TypeRegex, bsoncore.TypeDBPointer, bsoncore.TypeCodeWithScope:
		return kindWhole, 0, true
	case bsoncore.TypeArray:
		return kindArray, 0, true
	case bsoncore.TypeEmbeddedDocument:
		return kindEnter, 0, true
	}
	return 0, 0, false
}

// op packs or unpacks one field.
type op struct {
	kind    kind
	typ     byte         // of BSON
	subtype byte         // of binary data
	bit     uint8        // of a bool
	size    uint8        // of a fixed value
	place   int32        // in the record's front: of the head, the fixed value, or the byte of a bool
	headed  int32        // heads of other fields before: their tails lie before this one's
	save    uint8        // 1 + the register that keeps the number for those relative to it
	base    uint8        // 1 + the register of the number that this one is relative to
	prefix  string       // type, name and its end, as in BSON
	start   [atOnce]byte // the beginning of prefix
	column  *column
}

// field is a top-level field: the ops that make it.
type field struct{ first, end int32 }

// template is a shape of documents and how it is packed. It never changes.
type template struct {
	number     int
	sound      bool // no name stands twice in one document, and all are UTF-8
	arrays     bool // some field is an array
	front      int  // bytes of bools, heads and fixed values, in this order; tails follow
	bools      int  // bytes of bools
	definition string
	shape      string // the definition as it would be without relations
	classes    []byte // of the heads
	ops        []op
	bases      []int32 // the op of each register
	fields     []field
	byName     []int32 // the fields in the order of their names, and of one name in their own
}

// appendDefinition appends the elements of the definition of doc's shape. It is not ok when doc makes no sense, or when its
// definition would be too long.
func appendDefinition(dst, doc []byte, depth int) ([]byte, bool) {
	if !isWhole(doc) {
		return dst, false
	}
	pos := 4
	for pos < len(doc)-1 {
		e, ok := readElement(doc, pos)
		if !ok || len(dst) > MaxDefinition {
			return dst, false
		}
		t := e.kind
		k, _, _ := kindOf(t)
		if k == kindEnter && depth == maxFlattened {
			t = typeWhole
		}
		dst = append(dst, t)
		dst = binary.AppendUvarint(dst, uint64(e.value-pos-2))
		dst = append(dst, doc[pos+1:e.value-1]...)
		switch {
		case t == typeWhole:
		case k == kindBinary:
			dst = append(dst, doc[e.value+4])
		case k == kindEnter:
			if dst, ok = appendDefinition(dst, doc[e.value:e.next], depth+1); !ok {
				return dst, false
			}
		}
		pos = e.next
	}
	return append(dst, endOfDocument), pos == len(doc)-1 && len(dst) <= MaxDefinition
}

// place is where a definition has the type of an op, and where its name ends.
type place struct{ typ, end int }

// compiler makes templates of definitions, one after the other. The zero value is ready.
type compiler struct {
	t      *template
	c      *Codec
	rest   []byte
	shape  []byte
	places []place // of each op
	heads  []int32 // the op of each head
	bools  int
	headed int32
	fixed  int

	// What the template gets in the end, in memory that serves for the next one too.
	ops      []op
	prefixes []byte // of the ops
	widths   []int  // of the prefixes
	classes  []byte
	fields   []field
}

// compile makes a template of its definition, of which the first byte has been seen. The caller holds the codec's lock.
func (p *compiler) compile(c *Codec, number int, definition []byte) (*template, error) {
	t := &template{number: number, definition: string(definition), sound: true}
	*p = compiler{
		t: t, c: c, rest: definition[1:], shape: append(p.shape[:0], definitionTemplate), places: p.places[:0], heads: p.heads[:0],
		ops: p.ops[:0], prefixes: p.prefixes[:0], widths: p.widths[:0], classes: p.classes[:0], fields: p.fields[:0],
	}
	if len(definition) > MaxDefinition+maxRelations {
		return nil, fmt.Errorf("codec: template %d: a definition of %d bytes: %w", number, len(definition), ErrCorrupt)
	}
	if err := p.document("", 0); err != nil {
		return nil, fmt.Errorf("codec: template %d: %w", number, err)
	}
	if len(p.rest) != 0 {
		return nil, fmt.Errorf("codec: template %d: %d bytes behind the end: %w", number, len(p.rest), ErrCorrupt)
	}
	p.finish()
	return t, nil
}

// finish gives the template what has been gathered.
func (p *compiler) finish() {
	t := p.t
	t.ops, t.classes, t.fields = slices.Clone(p.ops), slices.Clone(p.classes), slices.Clone(p.fields)
	if t.shape = t.definition; string(p.shape) != t.definition {
		t.shape = string(p.shape)
	}
	t.bools = (p.bools + 7) / 8
	t.front = t.bools + len(t.classes) + p.fixed
	prefixes := string(p.prefixes)
	for i := range t.ops {
		o := &t.ops[i]
		o.prefix, prefixes = prefixes[:p.widths[i]], prefixes[p.widths[i]:]
		switch {
		case classOf(o.kind) != classNone:
			o.place += int32(t.bools)
		case o.kind == kindFixed:
			o.place += int32(t.bools + len(t.classes))
		}
	}
	t.byName = make([]int32, len(t.fields))
	for i := range t.byName {
		t.byName[i] = int32(i)
	}
	slices.SortStableFunc(t.byName, func(a, b int32) int { return strings.Compare(t.nameOf(a), t.nameOf(b)) })
}

// forget gives up what the compiler knows, apart from its memory.
func (p *compiler) forget() {
	clear(p.ops)
	p.t, p.c, p.rest = nil, nil, nil
}

// nameOf returns the name of a top-level field.
func (t *template) nameOf(i int32) string {
	prefix := t.ops[t.fields[i].first].prefix
	return prefix[1 : len(prefix)-1]
}

// fieldOf returns the first top-level field of a name, or -1.
func (t *template) fieldOf(name string) int32 {
	at, ok := slices.BinarySearchFunc(t.byName, name, func(i int32, name string) int { return strings.Compare(t.nameOf(i), name) })
	if !ok {
		return -1
	}
	return t.byName[at]
}

// document compiles the elements up to the end of a document whose path is given.
func (p *compiler) document(path string, depth int) error {
	if depth > maxFlattened {
		return fmt.Errorf("documents nested %d deep: %w", depth, ErrCorrupt)
	}
	var names nameSet
	for {
		if len(p.rest) == 0 {
			return fmt.Errorf("no end of a document: %w", ErrCorrupt)
		}
		typ, at := p.rest[0], len(p.t.definition)-len(p.rest)
		p.rest = p.rest[1:]
		if typ == endOfDocument {
			p.shape = append(p.shape, endOfDocument)
			return nil
		}
		name, err := p.text()
		if err != nil {
			return err
		}
		twice := names.add(name)
		p.t.sound = p.t.sound && !twice && utf8.ValidString(name)
		first := int32(len(p.ops))
		p.places = append(p.places, place{at, len(p.t.definition) - len(p.rest)})
		if err := p.element(typ, path, name, depth); err != nil {
			return err
		}
		if depth == 0 {
			p.fields = append(p.fields, field{first, int32(len(p.ops))})
		}
	}
}

// nameSet is the names of one document. Most have a few, for which a map would take longer.
type nameSet struct {
	few  [16]string
	n    int
	many map[string]struct{}
}

// add adds a name, and reports whether it was there.
func (s *nameSet) add(name string) (twice bool) {
	if twice = slices.Contains(s.few[:s.n], name); twice {
		return true
	}
	if s.n < len(s.few) {
		s.few[s.n] = name
		s.n++
		return false
	}
	if s.many == nil {
		s.many = map[string]struct{}{}
	}
	_, twice = s.many[name]
	s.many[name] = struct{}{}
	return twice
}

// text takes a name off the definition.
func (p *compiler) text() (string, error) {
	n, size := binary.Uvarint(p.rest)
	if size <= 0 || n > uint64(len(p.rest)-size) {
		return "", fmt.Errorf("a name reaches behind the end: %w", ErrCorrupt)
	}
	at := len(p.t.definition) - len(p.rest) + size
	s := p.t.definition[at : at+int(n)]
	p.rest = p.rest[size+int(n):]
	if strings.IndexByte(s, 0) >= 0 {
		return "", fmt.Errorf("the name %q has a zero byte: %w", s, ErrCorrupt)
	}
	return s, nil
}

// element compiles a field, and with an embedded document, those in it.
func (p *compiler) element(typ byte, path, name string, depth int) error {
	relative := isRelative(typ)
	if relative {
		typ &^= typeRelative
	}
	o, size, width := op{typ: typ, headed: p.headed}, 0, len(p.prefixes)
	p.shape = binary.AppendUvarint(append(p.shape, typ), uint64(len(name)))
	p.shape = append(p.shape, name...)
	if typ == typeWhole {
		o.kind, o.typ = kindWhole, byte(bsoncore.TypeEmbeddedDocument)
	} else {
		var ok bool
		if o.kind, size, ok = kindOf(typ); !ok {
			return fmt.Errorf("field %q has type %#x: %w", name, typ, ErrCorrupt)
		}
		o.size = uint8(size)
	}
	p.prefixes = append(append(append(p.prefixes, o.typ), name...), 0)
	copy(o.start[:], p.prefixes[width:])
	p.widths = append(p.widths, len(p.prefixes)-width)
	if relative {
		if err := p.relation(&o); err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
	}
	switch class := classOf(o.kind); {
	case o.kind == kindBool:
		o.place, o.bit = int32(p.bools/8), uint8(p.bools%8)
		p.bools++
	case o.kind == kindFixed:
		o.place = int32(p.fixed)
		p.fixed += size
	case class != classNone:
		o.place = p.headed
		p.headed++
		p.heads = append(p.heads, int32(len(p.ops)))
		p.classes = append(p.classes, class)
	}
	switch o.kind {
	case kindBinary:
		if len(p.rest) == 0 {
			return fmt.Errorf("field %q ends before its subtype: %w", name, ErrCorrupt)
		}
		o.subtype, p.rest = p.rest[0], p.rest[1:]
		p.shape = append(p.shape, o.subtype)
	case kindString, kindArray:
		o.column = p.c.column(path + name)
		p.t.arrays = p.t.arrays || o.kind == kindArray
	}
	p.ops = append(p.ops, o)
	if o.kind != kindEnter {
		return nil
	}
	if err := p.document(path+name+"\x00", depth+1); err != nil {
		return err
	}
	p.ops, p.widths = append(p.ops, op{kind: kindLeave, headed: p.headed}), append(p.widths, 0)
	p.places = append(p.places, place{})
	return nil
}
