package update

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/order"
)

// parseReplacement checks a replacement: no top-level field's name begins with a dollar.
func (u *Update) parseReplacement(doc bsoncore.Document) error {
	u.replacement = doc
	for s := elementsIn(doc); ; {
		e, ok := s.next()
		if !ok {
			return nil
		}
		if bytes.HasPrefix(e.name, []byte("$")) {
			return dollarPrefixed(string(e.name))
		}
		if depthOf(e.value) >= maxDepth {
			return tooDeep()
		}
	}
}

// replace appends the replacement, with the _id that doc has. An empty timestamp at the top level becomes the present one.
func (u *Update) replace(dst []byte, doc bsoncore.Document) ([]byte, bool, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst, err := withID(dst, doc, u.replacement)
	if err != nil {
		return dst, false, err
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

// withID appends the _id of a document that shall replace another: its own, which must be equal to that of the other; or else
// that of the other.
func withID(dst []byte, old, now bsoncore.Document) ([]byte, error) {
	was, _ := old.LookupErr("_id")
	is, _ := now.LookupErr("_id")
	if is.Type == 0 {
		is = was
	} else {
		if is.Type == bsoncore.TypeArray {
			return dst, mongoerror.New(mongoerror.NotSingleValueField,
				"After applying the update to the document, the (immutable) field '_id' was found to be an array or array descendant.")
		}
		if was.Type != 0 && !order.Equal(was, is, nil) {
			return dst, mongoerror.New(mongoerror.ImmutableField,
				"After applying the update, the (immutable) field '_id' was found to have been altered to %s", showElement("_id", is))
		}
		if err := validateID(is); err != nil {
			return dst, err
		}
	}
	if is.Type == 0 {
		return dst, nil
	}
	return bsoncore.AppendValueElement(dst, "_id", is), nil
}

// idFirst appends doc with its _id at the beginning, which is what validated documents have.
func idFirst(dst []byte, doc bsoncore.Document, id bsoncore.Value) []byte {
	if e, ok := first(doc); ok && string(e.name) == "_id" {
		return append(dst, doc...)
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if id.Type != 0 {
		dst = bsoncore.AppendValueElement(dst, "_id", id)
	}
	for s := elementsIn(doc); ; {
		e, ok := s.next()
		if !ok {
			return finish(dst, start)
		}
		if string(e.name) != "_id" {
			dst = append(dst, doc[e.start:e.end]...)
		}
	}
}
