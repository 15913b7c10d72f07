package update

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/path"
)

// parseReplacement checks a replacement.
func (u *Update) parseReplacement(doc bsoncore.Document) error {
	u.replacement = doc
	for s := path.PlacesOf(doc); ; {
		e, ok := s.Next()
		if !ok {
			return nil
		}
		if depthOf(e.Value) >= maxDepth {
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
	for s := path.PlacesOf(u.replacement); ; {
		e, ok := s.Next()
		if !ok {
			break
		}
		if string(e.Name) == "_id" {
			continue
		}
		from := len(dst)
		dst = append(dst, u.replacement[e.Start:e.End]...)
		if e.Value.Type == bsoncore.TypeTimestamp && u.timestamp != nil &&
			bytes.Equal(e.Value.Data, make([]byte, 8)) {
			binary.LittleEndian.PutUint64(dst[from+(e.End-e.Start)-8:], u.timestamp())
		}
	}
	return finish(dst, start), !bytes.Equal(doc, u.replacement), nil
}

// checkStorable refuses a replacement of which a top-level field's name begins with a dollar, or whose _id cannot be one.
func (u *Update) checkStorable() error {
	for s := path.PlacesOf(u.replacement); ; {
		e, ok := s.Next()
		if !ok {
			return nil
		}
		if bytes.HasPrefix(e.Name, []byte("$")) {
			return dollarPrefixed(string(e.Name))
		}
		if string(e.Name) == "_id" {
			if err := ValidateID(e.Value); err != nil {
				return err
			}
		}
	}
}
