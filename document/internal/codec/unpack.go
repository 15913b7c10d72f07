package codec

import (
	"encoding/binary"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// source is the packed values of one document: its front, and the bytes that its tails begin.
type source struct {
	front, tails []byte
	registers    *[maxRegisters]int64 // numbers that others are relative to; nil: the template has none
}

// unpackRecord appends the document that body holds.
func (c *Codec) unpackRecord(dst []byte, t *template, body []byte) ([]byte, error) {
	u := unpacker{c: c, limit: len(dst) + MaxDocument}
	if cap(dst) == 0 { // else it would grow in many small steps
		dst = make([]byte, 0, roomFor(len(body)))
	}
	out, end := u.record(dst, t, body)
	if t.front+end != len(body) {
		if l := c.lender; l != nil && l.fault != nil { // so that an entry is missing
			return dst, l.fault
		}
		return dst, misfit(t)
	}
	return out, nil
}

// roomFor is about how many bytes a document has whose values are packed into n.
func roomFor(n int) int { return n + min(2*n, 512) + 64 }

func misfit(t *template) error {
	return fmt.Errorf("codec: a record of template %d does not fit it: %w", t.number, ErrCorrupt)
}

// unpacker makes BSON of packed values. Its methods append to dst and return where in the source they ended; -1 when the
// source makes no sense.
type unpacker struct {
	c     *Codec
	limit int // of dst: what is packed may unfold to much more than it takes
	depth int // of arrays in arrays
}

// record appends the document of a template that body begins with, and returns where its last tail ends behind the front.
func (u *unpacker) record(dst []byte, t *template, body []byte) ([]byte, int) {
	var s source // a literal would be made elsewhere and copied, which waits for the stores
	s.front, s.tails = body[:t.front], body[t.front:]
	if len(t.bases) > 0 {
		s.registers = new([maxRegisters]int64)
	}
	return u.document(dst, t.ops, &s, 0)
}

// document appends a document with the elements of ops, the first of whose tails is at pos.
func (u *unpacker) document(dst []byte, ops []op, s *source, pos int) ([]byte, int) {
	start := len(dst)
	open := start // where the document begins that is not at its end: there lies where the one around it begins, until its length is known
	dst = append(dst, 0, 0, 0, 0)
	for {
		var done int
		if dst, done, pos = quick(dst, ops, s, pos); len(dst) > u.limit {
			return dst, -1
		}
		if done == len(ops) {
			break
		}
		o := &ops[done]
		ops = ops[done+1:]
		dst = append(dst, o.prefix...)
		switch o.kind {
		case kindEnter:
			dst, open = binary.LittleEndian.AppendUint32(dst, uint32(open-start)), len(dst)
		case kindLeave:
			around := start + int(binary.LittleEndian.Uint32(dst[open:]))
			dst = endDocument(dst, open)
			open = around
		default:
			if dst, pos = u.field(dst, o, s, pos); pos < 0 {
				return dst, -1
			}
		}
	}
	return endDocument(dst, start), pos
}

// endDocument ends the document, or the array, that begins at start.
func endDocument(dst []byte, start int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// field appends the value of a field that is no embedded document; its tail is at pos.
func (u *unpacker) field(dst []byte, o *op, s *source, pos int) ([]byte, int) {
	switch o.kind {
	case kindNothing:
		return dst, pos
	case kindInt32, kindInt64, kindDate:
		return u.number(dst, o, s, pos)
	case kindBool:
		return append(dst, s.front[o.place]>>o.bit&1), pos
	case kindFixed:
		return append(dst, s.front[o.place:int(o.place)+int(o.size)]...), pos
	case kindBinary:
		return appendBinary(dst, o.subtype, s.front[o.place], s.tails, pos)
	case kindArray:
		return u.array(dst, o.column, s.front[o.place], s.tails, pos)
	}
	return u.value(dst, o.kind, o.typ, o.column, s.front[o.place], s.tails, pos)
}

// number appends an integer or a date, which may be relative to another, or another to it.
func (u *unpacker) number(dst []byte, o *op, s *source, pos int) ([]byte, int) {
	base := alone(o.kind)
	if o.base > 0 {
		base = s.registers[o.base-1]
	}
	var n int64
	if h := s.front[o.place]; h < headTwo && o.kind != kindDate {
		n = unzigzag(uint64(h)) + base
	} else {
		n, pos = readRelative(o.kind, h, s.tails, pos, base)
	}
	if o.save > 0 {
		s.registers[o.save-1] = n
	}
	if o.kind != kindInt32 {
		return binary.LittleEndian.AppendUint64(dst, uint64(n)), pos
	}
	if n != int64(int32(n)) {
		return dst, -1
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(n)), pos
}

// value appends a value with head h whose tail is at pos of src.
func (u *unpacker) value(dst []byte, k kind, typ byte, col *column, h byte, src []byte, pos int) ([]byte, int) {
	var n uint64
	switch k {
	case kindInt32:
		n, pos = readNumber(h, src, pos)
		v := unzigzag(n)
		if v != int64(int32(v)) {
			return dst, -1
		}
		return binary.LittleEndian.AppendUint32(dst, uint32(v)), pos
	case kindInt64:
		n, pos = readNumber(h, src, pos)
		n = uint64(unzigzag(n))
	case kindDate:
		var ms int64
		ms, pos = readDate(h, src, pos, dateEpoch)
		n = uint64(ms)
	case kindDouble:
		n, pos = readDouble(h, src, pos)
	case kindString:
		return appendString(dst, col, h, src, pos)
	case kindArray:
		return u.array(dst, col, h, src, pos)
	default:
		body, end := readLength(h, src, pos)
		if end < 0 || !SoundValue(bsoncore.Value{Type: bsoncore.Type(typ), Data: body}) {
			return dst, -1
		}
		return append(dst, body...), end
	}
	return binary.LittleEndian.AppendUint64(dst, n), pos
}

// appendBinary appends binary data.
func appendBinary(dst []byte, subtype, h byte, src []byte, pos int) ([]byte, int) {
	body, end := readLength(h, src, pos)
	if !isSoundBinary(subtype, body) {
		return dst, -1
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(body)))
	return append(append(dst, subtype), body...), end
}

// readString returns a string that is an entry of the dictionary as it is there, as BSON; else its text. It has no pattern.
func readString(col *column, h byte, src []byte, pos int) (entry, text []byte, end int) {
	switch {
	case h >= headLong:
		text, end = readLong(src, pos)
		return nil, text, end
	case h >= headText:
		text, end = readShort(src, pos, int(h-headText))
		return nil, text, end
	}
	i := int(h)
	if h >= headEntry2 {
		if pos >= len(src) {
			return nil, nil, -1
		}
		i, pos = headEntry2+int(h-headEntry2)<<8+int(src[pos]), pos+1
	}
	if col == nil {
		return nil, nil, -1
	}
	if entry = col.entry(i); entry == nil {
		return nil, nil, -1
	}
	return entry, nil, pos
}

// appendString appends a string.
func appendString(dst []byte, col *column, h byte, src []byte, pos int) ([]byte, int) {
	i := int(h)
	switch {
	case h < headEntry2:
	case h < headPattern && pos < len(src):
		i, pos = headEntry2+int(h-headEntry2)<<8+int(src[pos]), pos+1
	default:
		return appendText(dst, col, h, src, pos)
	}
	if col == nil {
		return dst, -1
	}
	entry := col.entry(i)
	if entry == nil {
		return dst, -1
	}
	return appendShort(dst, entry), pos
}

// appendText appends a string that is no entry of the dictionary.
func appendText(dst []byte, col *column, h byte, src []byte, pos int) ([]byte, int) {
	switch {
	case h < headPattern:
		return dst, -1 // the number of the entry is not there
	case h < headText:
		pattern, number, end := readPattern(col, h, src, pos)
		if end < 0 {
			return dst, -1
		}
		start := len(dst)
		dst = append(appendPattern(append(dst, 0, 0, 0, 0), pattern, number), 0)
		binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
		return dst, end
	}
	_, text, end := readString(col, h, src, pos)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(text)+1))
	return append(appendShort(dst, text), 0), end
}

// atOnce is how many bytes are copied at once where there is room: for a few bytes that costs a fraction of a call.
const atOnce = 16

// appendShort appends s, which is short as a rule, and lies in memory that goes on behind it as a rule.
func appendShort(dst, s []byte) []byte {
	n := len(dst)
	if len(s) > 2*atOnce || cap(s) < 2*atOnce || cap(dst)-n < 2*atOnce {
		return append(dst, s...)
	}
	to, from := dst[n:n+2*atOnce], s[:2*atOnce]
	*(*[atOnce]byte)(to) = [atOnce]byte(from)
	if len(s) > atOnce {
		*(*[atOnce]byte)(to[atOnce:]) = [atOnce]byte(from[atOnce:])
	}
	return dst[:n+len(s)]
}
