package codec

import (
	"encoding/binary"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// The first byte of a record.
const (
	tagBSON       = 0   // a BSON document follows
	tagTemplate   = 3   // from here on: the number of a template, and what that says
	tagJSON       = '{' // the text of a document in Extended JSON, of which this is the first byte
	tagTemplate2  = 124 // from here on: the high bits of a template's number; another byte follows
	shortNumbers  = tagJSON - tagTemplate
	numbersPerTag = 256
)

// record is a record whose first bytes have been understood.
type record struct {
	template *template
	body     []byte // what follows the tag; with JSON, all
	json     bool
}

// common returns the template of a record and what follows its tag, if that is one of a single byte; nil for all that open sees to.
func (c *Codec) common(stored []byte) (t *template, body []byte) {
	if len(stored) == 0 || stored[0]-tagTemplate >= shortNumbers {
		return nil, nil
	}
	t = c.table.Load().at(int(stored[0] - tagTemplate))
	if t == nil || len(stored)-1 < t.front {
		return nil, nil
	}
	return t, stored[1:]
}

// open understands the first bytes of a record.
func (c *Codec) open(stored []byte) (record, error) {
	if len(stored) == 0 {
		return record{}, fmt.Errorf("codec: a record of no bytes: %w", ErrCorrupt)
	}
	number, n := 0, 1
	switch tag := stored[0]; {
	case tag == tagBSON:
		return record{body: stored[1:]}, nil
	case tag == tagJSON:
		return record{body: stored, json: true}, nil
	case tag >= tagTemplate2 && len(stored) > 1:
		number, n = shortNumbers+int(tag-tagTemplate2)*numbersPerTag+int(stored[1]), 2
	case tag >= tagTemplate && tag < tagJSON:
		number = int(tag - tagTemplate)
	default:
		return record{}, fmt.Errorf("codec: a record of %d bytes with tag %d: %w", len(stored), tag, ErrCorrupt)
	}
	t := c.table.Load().at(number)
	if t == nil {
		return record{}, fmt.Errorf("codec: a record of template %d, which is not known: %w", number, ErrCorrupt)
	}
	if len(stored)-n < t.front {
		return record{}, fmt.Errorf("codec: a record of template %d ends in its front: %w", number, ErrCorrupt)
	}
	return record{template: t, body: stored[n:]}, nil
}

// appendTag appends the beginning of a record of a template.
func appendTag(dst []byte, number int) []byte {
	if number < shortNumbers {
		return append(dst, byte(tagTemplate+number))
	}
	number -= shortNumbers
	return append(dst, byte(tagTemplate2+number/numbersPerTag), byte(number%numbersPerTag))
}

// appendPlain appends a record that holds doc as it is.
func appendPlain(dst []byte, doc bsoncore.Document) []byte {
	return append(append(dst, tagBSON), doc...)
}

// appendPlain appends the document of a record that holds it as it is, if it is one.
func (r *record) appendPlain(dst []byte) ([]byte, error) {
	if !Sound(r.body) {
		return dst, fmt.Errorf("codec: a record of %d bytes of what is no BSON: %w", len(r.body), ErrCorrupt)
	}
	return append(dst, r.body...), nil
}

// isWhole reports whether the length that doc begins with is its own, and its last byte that of a document.
func isWhole(doc []byte) bool {
	return len(doc) >= 5 && binary.LittleEndian.Uint32(doc) == uint32(len(doc)) && doc[len(doc)-1] == 0
}
