package codec

import (
	"encoding/binary"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// The first byte of a packed array that has elements: one of these, or the BSON type of all elements. An empty array is no bytes.
const (
	arrayWhole     = 0x00                                // the array as in BSON
	arrayDocuments = byte(bsoncore.TypeEmbeddedDocument) // documents of one template
	arrayMixed     = 0xf1                                // each element has its type in front
	documentWhole  = 0                                   // in a mixed array: a document as in BSON; else 1 + the template's number
)

// packArray appends the packed form of an array. What cannot be packed is appended as in BSON.
func (p *packer) packArray(dst []byte, array []byte, col *column, depth int) ([]byte, error) {
	start := len(dst)
	p.doubt = p.doubt || depth > provenDepth
	form, count, ok := formOf(array)
	switch {
	case !ok || depth > MaxNesting:
		p.doubt = true
		return append(append(dst, arrayWhole), array...), nil
	case count == 0:
		return dst, nil
	case form == arrayDocuments:
		packed, ok, err := p.packDocuments(dst, array, count, depth)
		if ok || err != nil {
			return packed, err
		}
		dst, form = packed[:start], arrayMixed
	}
	dst = append(dst, form)
	for pos := 4; pos < len(array)-1; {
		e, _ := readElement(array, pos)
		if form == arrayMixed {
			dst = append(dst, e.kind)
		}
		var ok bool
		var err error
		if dst, ok, err = p.packElement(dst, e.kind, col, array[e.value:e.next], depth); err != nil {
			return dst, err
		}
		if !ok {
			p.doubt = true
			return append(append(dst[:start], arrayWhole), array...), nil
		}
		pos = e.next
	}
	return dst, nil
}

// formOf returns how an array can be packed, and its length. It is not ok when its names are not 0, 1, 2 and so on.
func formOf(array []byte) (form byte, count int, ok bool) {
	if !isWhole(array) {
		return 0, 0, false
	}
	pos := 4
	var room [20]byte
	for pos < len(array)-1 {
		e, whole := readElement(array, pos)
		name := array[pos+1 : max(pos+1, e.value-1)]
		switch {
		case !whole:
			return 0, 0, false
		case count < 10:
			if len(name) != 1 || int(name[0]-'0') != count {
				return 0, 0, false
			}
		case string(name) != string(strconv.AppendInt(room[:0], int64(count), 10)):
			return 0, 0, false
		}
		switch k, _, _ := kindOf(e.kind); {
		case k == kindNothing:
			form = arrayMixed // nothing else would tell how many there are
		case count == 0:
			form = e.kind
		case form != e.kind:
			form = arrayMixed
		}
		count++
		pos = e.next
	}
	return form, count, pos == len(array)-1
}

// packElement appends an element of an array: head and tail, or what its type has instead.
func (p *packer) packElement(dst []byte, typ byte, col *column, value []byte, depth int) ([]byte, bool, error) {
	k, _, _ := kindOf(typ)
	switch k {
	case kindNothing, kindFixed:
		return append(dst, value...), true, nil
	case kindBool:
		return append(dst, value...), value[0] <= 1, nil
	case kindEnter:
		return p.packEmbedded(dst, value, depth)
	case kindBinary:
		dst = append(dst, value[4])
	}
	at := len(dst)
	dst = append(dst, 0)
	head, dst, size, err := p.packValue(dst, k, typ, col, value, depth)
	dst[at] = head
	return dst, size == len(value), err
}

// packEmbedded appends a document in a mixed array.
func (p *packer) packEmbedded(dst []byte, doc []byte, depth int) ([]byte, bool, error) {
	start := len(dst)
	t, err := p.c.templateOf(doc)
	if err != nil {
		return dst, false, err
	}
	if t != nil {
		packed, ok, err := p.pack(binary.AppendUvarint(dst, uint64(t.number)+1), t, doc, depth)
		if ok || err != nil {
			return packed, ok, err
		}
		dst = packed[:start]
	}
	p.doubt = true
	return append(append(dst, documentWhole), doc...), true, nil
}

// packDocuments appends an array of documents that are all of one template. It is not ok when they are not.
func (p *packer) packDocuments(dst []byte, array []byte, count, depth int) ([]byte, bool, error) {
	var t *template
	start := len(dst)
	for pos := 4; pos < len(array)-1; {
		e, _ := readElement(array, pos)
		doc := array[e.value:e.next]
		if t == nil {
			var err error
			if t, err = p.c.templateOf(doc); t == nil {
				return dst, false, err
			}
			if t.arrays && !t.fitAll(array) {
				return dst, false, nil
			}
			dst = binary.AppendUvarint(append(dst, arrayDocuments), uint64(t.number))
			dst = binary.AppendUvarint(dst, uint64(count))
		}
		var ok bool
		var err error
		if dst, ok, err = p.pack(dst, t, doc, depth); !ok {
			if t.arrays && err == nil { // packed again, at each level, it would take twice as long at each
				p.doubt = true
				return append(append(dst[:start], arrayWhole), array...), true, nil
			}
			return dst, false, err
		}
		pos = e.next
	}
	return dst, true, nil
}

// fitAll reports whether all documents of an array have the shape of t. It does not look into arrays.
func (t *template) fitAll(array []byte) bool {
	for pos := 4; pos < len(array)-1; {
		e, _ := readElement(array, pos)
		if !t.fits(array[e.value:e.next]) {
			return false
		}
		pos = e.next
	}
	return true
}

// fits reports whether doc has the shape of t.
func (t *template) fits(doc []byte) bool {
	pos := 4
	for i := range t.ops {
		o := &t.ops[i]
		if o.kind == kindLeave {
			if pos >= len(doc) || doc[pos] != 0 {
				return false
			}
			pos++
			continue
		}
		value := pos + len(o.prefix)
		if value > len(doc) || string(doc[pos:value]) != o.prefix {
			return false
		}
		if o.kind == kindEnter {
			pos = value + 4
			continue
		}
		size := valueSize(o.typ, doc[value:])
		if size < 0 || o.kind == kindBinary && doc[value+4] != o.subtype {
			return false
		}
		pos = value + size
	}
	return pos == len(doc)-1
}
