package update

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// parseReplacement checks a replacement.
func (u *Update) parseReplacement(doc bsoncore.Document) error {
	u.replacement = doc
	for s := elementsIn(doc); ; {
		e, ok := s.next()
		if !ok {
			return nil
		}
		if depthOf(e.value) >= maxDepth {
			return tooDeep()
		}
	}
}

// replace appends the replacement, with the _id that doc has. An empty timestamp at the top level becomes the present one.
func (u *Update) replace(dst []byte, doc bsoncore.Document, inserting bool) ([]byte, bool, error) {
	if !inserting {
		if err := u.checkStorable(); err != nil {
			return dst, false, err
		}
	}
	id, err := identity(doc, u.replacement, inserting)
	if err != nil {
		return dst, false, err
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if id.Type != 0 {
		dst = bsoncore.AppendValueElement(dst, "_id", id)
	}
	for s := elementsIn(u.replacement); ; {
		e, ok := s.next()
		if !ok {
			break
		}
		if string(e.name) == "_id" {
			continue
		}
		from := len(dst)
		dst = append(dst, u.replacement[e.start:e.end]...)
		if e.value.Type == bsoncore.TypeTimestamp && u.timestamp.Type == bsoncore.TypeTimestamp &&
			bytes.Equal(e.value.Data, make([]byte, 8)) {
			copy(dst[from+(e.end-e.start)-8:], u.timestamp.Data)
		}
	}
	return finish(dst, start), !bytes.Equal(doc, u.replacement), nil
}

// checkStorable refuses a replacement of which a top-level field's name begins with a dollar, or whose _id cannot be one.
func (u *Update) checkStorable() error {
	for s := elementsIn(u.replacement); ; {
		e, ok := s.next()
		if !ok {
			return nil
		}
		if bytes.HasPrefix(e.name, []byte("$")) {
			return dollarPrefixed(string(e.name))
		}
		if string(e.name) == "_id" {
			if err := validateID(e.value); err != nil {
				return err
			}
		}
	}
}
