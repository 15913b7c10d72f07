package bucket

import (
	"encoding/binary"
	"math"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// A compressed column is values, one for each measurement: a literal is an element without a name, and what follows it is differences,
// in words of which a control byte says how many there are. Dates, timestamps and ObjectIDs have differences of differences; texts and
// binary values of up to 16 bytes, and decimals, are numbers of 128 bits. Objects of the same fields are a reference object with a
// column for each of its values, their words one after the other as they are needed.

// Limits of what is made of one bucket: a few bytes of a column can stand for very many values. A bucket of MongoDB has 1000
// measurements.
const (
	maxRows  = 100_000
	maxCells = 2_000_000 // values of all columns
	maxBytes = 64 << 20  // of all measurements, and of objects that are made of parts
	maxDepth = 200
)

// budget is how much may still be made of a bucket.
type budget struct{ cells, bytes int }

func newBudget() *budget { return &budget{maxCells, maxBytes} }

// spend takes from the budget.
func (b *budget) spend(cells, bytes int) error {
	b.cells, b.bytes = b.cells-cells, b.bytes-bytes
	if b.cells < 0 || b.bytes < 0 {
		return malformed("it stands for more than %d values, or %d bytes", maxCells, maxBytes)
	}
	return nil
}

// Control bytes. Above them are literals: their byte is the type.
const (
	controlEnd          = 0x00
	controlObjects      = 0xF0 // objects interleaved, arrays are values
	controlNested       = 0xF1 // objects and arrays interleaved
	controlNestedArray  = 0xF2 // the same, and the values are arrays themselves
	firstWords          = 0x80 // to 0xDF: words
	lastWords           = 0xDF
	memoryScale         = 0 // of doubles: their bits are numbers
	longestText         = 16
	maxInterleavedParts = 10_000
)

// column reads a compressed column.
type column struct {
	rest   []byte
	rows   []bsoncore.Value // Type 0: missing
	budget *budget
}

// decodeColumn returns the values of a compressed column; those that are missing have Type 0.
func decodeColumn(data []byte, b *budget) ([]bsoncore.Value, error) {
	c := &column{rest: data, budget: b}
	var s stream
	for {
		v, state, err := s.next(c, true)
		if err != nil {
			return nil, err
		}
		switch state {
		case stateEnd:
			return c.rows, nil
		case stateObjects:
			if err := c.objects(v); err != nil {
				return nil, err
			}
			s = stream{}
			continue
		}
		if err := c.add(v); err != nil {
			return nil, err
		}
	}
}

func (c *column) add(v bsoncore.Value) error {
	if c.rows = append(c.rows, v); len(c.rows) > maxRows {
		return malformed("a column has more than %d values", maxRows)
	}
	return c.budget.spend(1, 0)
}

// What a stream comes upon.
const (
	stateValue = iota
	stateEnd
	stateObjects // a reference object follows
)

// stream is the state of the values of one column, or of one part of the objects of a column.
type stream struct {
	words   words
	last    bsoncore.Value // Type 0: none yet
	encoded wide           // of last
	delta   uint64         // the last difference, where differences of differences are kept
	scale   float64        // of doubles
	coded   bool           // last has a number
}

// next returns the next value.
func (s *stream) next(c *column, top bool) (bsoncore.Value, int, error) {
	for !s.words.left() {
		if len(c.rest) == 0 {
			return bsoncore.Value{}, 0, malformed("a column has no end")
		}
		control := c.rest[0]
		c.rest = c.rest[1:]
		switch {
		case control == controlEnd:
			return bsoncore.Value{}, stateEnd, nil
		case control >= controlObjects && control <= controlNestedArray:
			if !top {
				return bsoncore.Value{}, 0, malformed("a column has objects within the parts of objects")
			}
			return bsoncore.Value{Type: bsoncore.Type(control)}, stateObjects, nil
		case control >= firstWords && control <= lastWords:
			if err := s.load(c, control); err != nil {
				return bsoncore.Value{}, 0, err
			}
		default:
			v, err := c.literal(bsoncore.Type(control))
			if err != nil {
				return bsoncore.Value{}, 0, err
			}
			s.restart(v)
			return v, stateValue, nil
		}
	}
	n, present, err := s.words.next()
	if err != nil || !present {
		return bsoncore.Value{}, stateValue, err
	}
	v, err := s.apply(n)
	return v, stateValue, err
}

// load takes the words behind a control byte.
func (s *stream) load(c *column, control byte) error {
	size := (int(control&15) + 1) * 8
	if len(c.rest) < size {
		return malformed("a column ends within words")
	}
	s.words.rest, c.rest = c.rest[:size], c.rest[size:]
	s.words.at, s.words.layout = 0, layout{}
	if s.last.Type != bsoncore.TypeDouble {
		return nil
	}
	scales := [...]float64{memoryScale, 1, 10, 100, 10_000, 100_000_000}
	at := int(control>>4) - firstWords>>4
	if at >= len(scales) {
		return malformed("a column has an unknown scale")
	}
	if s.scale != scales[at] {
		s.scale = scales[at]
		s.encodeDouble()
	}
	return nil
}

// encodeDouble makes the number of a double, by the present scale.
func (s *stream) encodeDouble() {
	f := s.last.Double()
	if s.scale == memoryScale {
		s.encoded = wide{lo: math.Float64bits(f)}
		return
	}
	s.encoded = wide{lo: uint64(int64(math.Round(f * s.scale)))}
}

// literal reads a value.
func (c *column) literal(t bsoncore.Type) (bsoncore.Value, error) {
	if len(c.rest) == 0 || c.rest[0] != 0 {
		return bsoncore.Value{}, malformed("a column has a value with a name")
	}
	v, rest, ok := bsoncore.ReadValue(c.rest[1:], t)
	if !ok || !isWhole(v) {
		return bsoncore.Value{}, malformed("a column has a value of type %#x that is no BSON", byte(t))
	}
	c.rest = rest
	return v, nil
}

// isWhole reports whether a value has all the bytes that its type demands.
func isWhole(v bsoncore.Value) bool {
	if v.Validate() != nil {
		return false
	}
	text := v.Type == bsoncore.TypeString || v.Type == bsoncore.TypeJavaScript
	return !text || len(v.Data) >= 5 && v.Data[len(v.Data)-1] == 0 // Validate lets a text without its end pass
}

// restart begins with a new value, which is whole.
func (s *stream) restart(v bsoncore.Value) {
	*s = stream{last: v, scale: math.NaN()}
	s.encoded, s.coded = encode(v)
}

// encode returns the number of a value, if it has one.
func encode(v bsoncore.Value) (wide, bool) {
	switch v.Type {
	case bsoncore.TypeInt32:
		return wide{lo: uint64(int64(v.Int32()))}, true
	case bsoncore.TypeInt64, bsoncore.TypeDateTime, bsoncore.TypeTimestamp:
		return wide{lo: binary.LittleEndian.Uint64(v.Data)}, true
	case bsoncore.TypeBoolean:
		return wide{lo: uint64(v.Data[0])}, true
	case bsoncore.TypeDouble: // by its scale: encodeDouble
		return wide{}, true
	case bsoncore.TypeObjectID:
		return wide{lo: objectNumber(v.Data)}, true
	case bsoncore.TypeDecimal128:
		return wide{binary.LittleEndian.Uint64(v.Data[8:]), binary.LittleEndian.Uint64(v.Data)}, true
	case bsoncore.TypeString, bsoncore.TypeJavaScript:
		text := v.Data[4 : len(v.Data)-1]
		if len(text) > longestText || len(text) > 0 && text[0] == 0 {
			return wide{}, true // which has no number: the next one is the difference from 0
		}
		var b [longestText]byte
		copy(b[longestText-len(text):], text)
		return wide{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}, true
	case bsoncore.TypeBinary:
		data := v.Data[5:]
		if len(data) > longestText {
			return wide{}, false
		}
		var b [longestText]byte
		copy(b[:], data)
		return wide{binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[:8])}, true
	}
	return wide{}, false
}

// objectPlaces are the bytes of an ObjectID that differ from one to the next, those that differ most often first.
func objectPlaces() [7]int { return [7]int{11, 3, 10, 2, 9, 1, 0} }

// objectNumber makes a number of what differs between ObjectIDs of one process.
func objectNumber(id []byte) (n uint64) {
	for i, at := range objectPlaces() {
		n |= uint64(id[at]) << (8 * i)
	}
	return n
}

// apply returns the value that a difference leads to.
func (s *stream) apply(n wide) (bsoncore.Value, error) {
	switch s.last.Type {
	case 0:
		if n != (wide{}) {
			return bsoncore.Value{}, malformed("a column begins with a difference")
		}
		return bsoncore.Value{}, nil
	case bsoncore.TypeDateTime, bsoncore.TypeTimestamp, bsoncore.TypeObjectID:
		s.delta += n.unZigzag().lo
		s.encoded.lo += s.delta
		if s.delta == 0 {
			return s.last, nil
		}
	default:
		if n == (wide{}) {
			return s.last, nil
		}
		if !s.coded {
			return bsoncore.Value{}, malformed("a column has a difference from a value of type %#x", byte(s.last.Type))
		}
		s.encoded = s.encoded.add(n.unZigzag())
	}
	data, err := s.decode()
	if err != nil {
		return bsoncore.Value{}, err
	}
	s.last = bsoncore.Value{Type: s.last.Type, Data: data}
	return s.last, nil
}

// decode makes a value of the type of the last one of its number.
func (s *stream) decode() ([]byte, error) {
	n := s.encoded
	switch s.last.Type {
	case bsoncore.TypeInt32:
		return binary.LittleEndian.AppendUint32(nil, uint32(n.lo)), nil
	case bsoncore.TypeBoolean:
		return []byte{byte(n.lo & 1)}, nil
	case bsoncore.TypeDouble:
		if s.scale == memoryScale {
			return binary.LittleEndian.AppendUint64(nil, n.lo), nil
		}
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(int64(n.lo))/s.scale)), nil
	case bsoncore.TypeObjectID:
		id := append([]byte(nil), s.last.Data...)
		for i, at := range objectPlaces() {
			id[at] = byte(n.lo >> (8 * i))
		}
		return id, nil
	case bsoncore.TypeDecimal128:
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, n.lo), n.hi), nil
	case bsoncore.TypeString, bsoncore.TypeJavaScript:
		b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, n.hi), n.lo)
		for len(b) > 0 && b[0] == 0 {
			b = b[1:]
		}
		return bsoncore.AppendString(nil, string(b)), nil
	case bsoncore.TypeBinary:
		size := len(s.last.Data) - 5
		if size > longestText {
			return nil, malformed("a column has a difference from a long value")
		}
		b := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, n.lo), n.hi)
		return append(append([]byte(nil), s.last.Data[:5]...), b[:size]...), nil
	}
	return binary.LittleEndian.AppendUint64(nil, n.lo), nil
}
