package codec

import (
	"encoding/binary"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// View looks into a stored record without decoding it. It implements path.Fields. It is used by one goroutine at a time, and
// reused from record to record.
type View struct {
	c        *Codec
	record   record
	elements []byte // of a record that holds BSON, or has been made BSON: without the zero at their end
	source   source
	numbers  [maxRegisters]int64 // the registers of source
	known    int                 // the tails of that many heads
	sum      int                 // have this length
	scratch  []byte
	document []byte // a record in JSON as BSON
	err      error

	resolved [resolvedNames]resolution
	next     int
}

// resolvedNames is how many names a view keeps the places of.
const resolvedNames = 16

// resolution is where a template has a name; -1: nowhere.
type resolution struct {
	t     *template
	name  string
	field int32
}

// NewView returns a view on records of this codec.
func (c *Codec) NewView() *View {
	v := &View{c: c}
	v.source.registers = &v.numbers
	return v
}

// Reset makes the view show another record, which must stay unchanged while it is looked at. Values got before become
// invalid.
func (v *View) Reset(stored []byte) error {
	v.scratch, v.known, v.sum = v.scratch[:0], 0, 0
	// One record after the other is of the same template as a rule: then there is little to change.
	if t := v.record.template; t != nil && v.err == nil && len(stored) > t.front && int(stored[0]) == tagTemplate+t.number && t.number < shortNumbers {
		body := stored[1:]
		v.record.body, v.source.front, v.source.tails = body, body[:t.front], body[t.front:]
		return nil
	}
	v.elements = nil
	v.record, v.err = v.c.open(stored)
	switch r := &v.record; {
	case v.err != nil:
	case r.template != nil:
		v.source.front, v.source.tails = r.body[:r.template.front], r.body[r.template.front:]
	case r.json:
		if v.document, v.err = parseJSON(v.document[:0], stored); v.err == nil {
			v.elements = v.document[4 : len(v.document)-1]
		}
	case !isWhole(r.body):
		v.err = fmt.Errorf("codec: a record of %d bytes of BSON: %w", len(r.body), ErrCorrupt)
	default:
		v.elements = r.body[4 : len(r.body)-1]
	}
	return v.err
}

// Release lets go of the record, and of the memory that a large one has taken. The view shows nothing until the next Reset.
func (v *View) Release() {
	v.record, v.err, v.known, v.sum = record{}, nil, 0, 0
	v.elements, v.scratch, v.document = nil, nil, nil
	v.source.front, v.source.tails = nil, nil
}

// Err returns what Reset returned, or the damage that Lookup has met in the record since: it shows damaged fields as missing.
func (v *View) Err() error { return v.err }

// damaged notes that a field of the record made no sense.
func (v *View) damaged(name string) (bsoncore.Value, bool) {
	switch t := v.record.template; {
	case v.err != nil:
	case t == nil:
		v.err = fmt.Errorf("codec: field %q of a record of BSON: %w", name, ErrCorrupt)
	default:
		v.err = fmt.Errorf("codec: field %q of a record of template %d: %w", name, t.number, ErrCorrupt)
	}
	return bsoncore.Value{}, false
}

// Lookup implements path.Fields: the value of a top-level field, valid until the next Reset.
func (v *View) Lookup(name string) (bsoncore.Value, bool) {
	t := v.record.template
	if t == nil {
		return v.lookupPlain(name)
	}
	i := v.resolve(t, name)
	if i < 0 {
		return bsoncore.Value{}, false
	}
	f := t.fields[i]
	o := &t.ops[f.first]
	switch o.kind {
	case kindNothing:
		return bsoncore.Value{Type: bsoncore.Type(o.typ)}, true
	case kindFixed:
		return bsoncore.Value{Type: bsoncore.Type(o.typ), Data: v.source.front[o.place : int(o.place)+int(o.size)]}, true
	}
	if value, ok := v.headAlone(o); ok {
		return value, true
	}
	pos := v.tailOf(t, int(o.headed))
	if pos < 0 {
		return v.damaged(name)
	}
	start := len(v.scratch)
	if o.kind != kindString {
		pos = v.unpack(t, f, pos)
	} else if h := v.source.front[o.place]; h >= headPattern {
		v.scratch, pos = appendString(v.scratch, o.column, h, v.source.tails, pos)
	} else if entry, _, _ := readString(o.column, h, v.source.tails, pos); entry != nil {
		return bsoncore.Value{Type: bsoncore.Type(o.typ), Data: entry}, true
	} else {
		pos = -1
	}
	if pos < 0 {
		return v.damaged(name)
	}
	return bsoncore.Value{Type: bsoncore.Type(o.typ), Data: v.scratch[start:len(v.scratch):len(v.scratch)]}, true
}

// lookupPlain is Lookup in the elements of a record that holds BSON. It looks at no more of them than it has to.
func (v *View) lookupPlain(name string) (bsoncore.Value, bool) {
	for pos := 0; pos < len(v.elements); {
		e, ok := readElement(v.elements, pos)
		if !ok {
			return v.damaged(name)
		}
		if string(v.elements[pos+1:e.value-1]) == name {
			value := v.elements[e.value:e.next]
			if !isSoundValue(e.kind, value, 0) {
				return v.damaged(name)
			}
			return bsoncore.Value{Type: bsoncore.Type(e.kind), Data: value}, true
		}
		pos = e.next
	}
	return bsoncore.Value{}, false
}

// headAlone returns the value of a field that its head tells, if it does: then it takes no look at the tails before.
func (v *View) headAlone(o *op) (value bsoncore.Value, ok bool) {
	if o.kind != kindInt32 && o.kind != kindInt64 && o.kind != kindString {
		return bsoncore.Value{}, false
	}
	value, v.scratch, ok = o.alone(v.source.front[o.place], v.scratch)
	return value, ok
}

// alone returns the value of a bool, an integer or a string of which the byte at its place is given, if that tells it. It may lie in
// what is appended to scratch.
func (o *op) alone(h byte, scratch []byte) (value bsoncore.Value, _ []byte, ok bool) {
	start := len(scratch)
	switch o.kind {
	case kindBool:
		scratch = append(scratch, h>>o.bit&1)
		return bsoncore.Value{Type: bsoncore.Type(o.typ), Data: scratch[start : start+1 : start+1]}, scratch, true
	case kindInt32, kindInt64:
		if h >= headTwo || o.base > 0 {
			break
		}
		scratch = binary.LittleEndian.AppendUint64(scratch, uint64(unzigzag(uint64(h))))
		end := len(scratch)
		if o.kind == kindInt32 {
			end -= 4
		}
		return bsoncore.Value{Type: bsoncore.Type(o.typ), Data: scratch[start:end:end]}, scratch, true
	case kindString:
		if h >= headEntry2 || o.column == nil {
			break
		}
		if entry := o.column.entry(int(h)); entry != nil {
			return bsoncore.Value{Type: bsoncore.Type(o.typ), Data: entry}, scratch, true
		}
	}
	return bsoncore.Value{}, scratch, false
}

// unpack puts a field whose first tail is at pos into the scratch buffer. It returns where its last tail ends, or -1.
func (v *View) unpack(t *template, f field, pos int) int {
	o, start := &t.ops[f.first], len(v.scratch)
	for i := f.first; i < f.end; i++ {
		if r := t.ops[i].base; r > 0 && t.bases[r-1] < f.first && !v.fill(t, r) {
			return -1
		}
	}
	u := unpacker{c: v.c, limit: start + MaxDocument}
	if o.kind != kindEnter {
		v.scratch, pos = u.field(v.scratch, o, &v.source, pos)
		return pos
	}
	v.scratch, pos = u.document(v.scratch, t.ops[f.first+1:f.end-1], &v.source, pos)
	return pos
}

// fill puts the number that others are relative to into its register.
func (v *View) fill(t *template, register uint8) bool {
	o := &t.ops[t.bases[register-1]]
	pos := v.tailOf(t, int(o.headed))
	if pos < 0 {
		return false
	}
	v.source.registers[register-1], pos = readRelative(o.kind, v.source.front[o.place], v.source.tails, pos, alone(o.kind))
	return pos >= 0
}

// resolve returns the field that a template has under a name, or -1. The names of a filter come again with each record.
func (v *View) resolve(t *template, name string) int32 {
	for i := range v.resolved {
		if r := &v.resolved[i]; r.t == t && r.name == name {
			return r.field
		}
	}
	i := t.fieldOf(name)
	v.resolved[v.next%resolvedNames] = resolution{t, name, i}
	v.next++
	return i
}

// tailOf returns where the tail behind those of the first n heads begins, or -1.
func (v *View) tailOf(t *template, n int) int {
	if n < v.known {
		v.known, v.sum = 0, 0
	}
	sum := sumTails(v.sum, t.classes[v.known:n], v.source.front[t.bools+v.known:], v.source.tails)
	if sum < 0 || sum > len(v.source.tails) {
		return -1
	}
	v.known, v.sum = n, sum
	return sum
}

// Document appends the whole document to dst.
func (v *View) Document(dst []byte) ([]byte, error) {
	switch r := v.record; {
	case r.template != nil:
		return v.c.unpackRecord(dst, r.template, r.body)
	case r.json:
		return append(dst, v.document...), nil
	default:
		return r.appendPlain(dst)
	}
}
