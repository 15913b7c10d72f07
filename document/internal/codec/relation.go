package codec

import (
	"encoding/binary"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Numbers that are near to an earlier one of the same document, as the end of something is to its beginning, are stored as
// the difference. Which ones is decided when a template is made, by the document at hand: a wrong guess costs a few bits.
const (
	maxRegisters  = 16 // numbers that others are relative to
	maxCandidates = 16 // earlier numbers that are tried
	maxRelations  = 1 << 12
)

// isRelative reports whether a type of a definition is that of a relative number.
func isRelative(typ byte) bool {
	switch bsoncore.Type(typ &^ typeRelative) {
	case bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDateTime:
		return typ&typeRelative != 0
	}
	return false
}

// relation takes from the definition which number o is relative to: how many heads before.
func (p *compiler) relation(o *op) error {
	back, n := binary.Uvarint(p.rest)
	if n <= 0 || back == 0 || back > uint64(len(p.heads)) {
		return fmt.Errorf("it is relative to nothing: %w", ErrCorrupt)
	}
	p.rest = p.rest[n:]
	at := p.heads[len(p.heads)-int(back)]
	base := &p.ops[at]
	if base.typ != o.typ || base.base != 0 || (base.save == 0 && len(p.t.bases) == maxRegisters) {
		return fmt.Errorf("it is relative to what cannot be a base: %w", ErrCorrupt)
	}
	if base.save == 0 {
		p.t.bases = append(p.t.bases, at)
		base.save = uint8(len(p.t.bases))
	}
	o.base = base.save
	return nil
}

// relate returns the definition of p's template with the relations that make doc, which is of that shape, smaller.
func (p *compiler) relate(doc []byte) []byte {
	t, values := p.t, p.numbers(doc)
	var bases, relative []int32 // ops
	var out []byte
	done := 0
	for i := range t.ops {
		o := &t.ops[i]
		if !isRelative(o.typ|typeRelative) || o.kind == kindLeave || len(out)-done > maxRelations-2*binary.MaxVarintLen16 {
			continue
		}
		base := p.nearest(int32(i), values, relative)
		if base < 0 || (len(bases) == maxRegisters && !slices.Contains(bases, base)) {
			continue
		}
		if !slices.Contains(bases, base) {
			bases = append(bases, base)
		}
		relative = append(relative, int32(i))
		at := p.places[i]
		out = append(append(out, t.definition[done:at.typ]...), o.typ|typeRelative)
		out = append(out, t.definition[at.typ+1:at.end]...)
		out = binary.AppendUvarint(out, uint64(o.headed-t.ops[base].headed))
		done = at.end
	}
	return append(out, t.definition[done:]...)
}

// numbers returns the integers and dates of doc, which is of the shape of p's template, by op.
func (p *compiler) numbers(doc []byte) []int64 {
	values, pos := make([]int64, len(p.t.ops)), 4
	for i := range p.t.ops {
		o := &p.t.ops[i]
		pos += len(o.prefix)
		switch o.kind {
		case kindEnter:
			pos += 4
			continue
		case kindLeave:
			pos++
			continue
		case kindInt32, kindInt64, kindDate:
			values[i], _ = numberAt(o.kind, doc[pos:])
		}
		pos += valueSize(o.typ, doc[pos:])
	}
	return values
}

// nearest returns the earlier op of the same type that makes the number of an op shortest, or -1 when it is as short alone.
func (p *compiler) nearest(i int32, values []int64, relative []int32) int32 {
	o, best := &p.t.ops[i], int32(-1)
	var room [16]byte
	_, alone := appendRelative(room[:0], o.kind, values[i], alone(o.kind))
	least, tried := len(alone), 0
	for h := o.headed - 1; h >= 0 && tried < maxCandidates; h-- {
		at := p.heads[h]
		if p.t.ops[at].typ != o.typ || slices.Contains(relative, at) {
			continue
		}
		tried++
		if _, tail := appendRelative(room[:0], o.kind, values[i], values[at]); len(tail) < least {
			least, best = len(tail), at
		}
	}
	return best
}

// alone is what a number of a kind is relative to when it is not relative to another.
func alone(k kind) int64 {
	if k == kindDate {
		return dateEpoch
	}
	return 0
}

// appendRelative appends the tail of the difference between an integer or a date and another, and returns its head.
func appendRelative(dst []byte, k kind, n, base int64) (byte, []byte) {
	if k == kindDate {
		return appendDate(dst, n, base)
	}
	return appendNumber(dst, zigzag(n-base))
}

// readRelative returns the integer or date with head h whose tail is at pos, and where that ends, or -1.
func readRelative(k kind, h byte, src []byte, pos int, base int64) (int64, int) {
	if k == kindDate {
		return readDate(h, src, pos, base)
	}
	u, end := readNumber(h, src, pos)
	return unzigzag(u) + base, end
}

// baseOf puts the number n of o where those relative to it find it, and returns what it is relative to itself.
func baseOf(o *op, n int64, registers *[maxRegisters]int64) int64 {
	if o.save > 0 {
		registers[o.save-1] = n
	}
	if o.base > 0 {
		return registers[o.base-1]
	}
	return alone(o.kind)
}

// numberAt returns the integer or date that src begins with, and its size, or -1.
func numberAt(k kind, src []byte) (n int64, size int) {
	switch {
	case k == kindInt32 && len(src) >= 4:
		return int64(int32(binary.LittleEndian.Uint32(src))), 4
	case k != kindInt32 && len(src) >= 8:
		return int64(binary.LittleEndian.Uint64(src)), 8
	}
	return 0, -1
}
