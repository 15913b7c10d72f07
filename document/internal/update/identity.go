package update

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
)

// checkID refuses a change of _id, and values that _id cannot have. It is called only when n has changed something.
func (r *run) checkID(n *node, old, now bsoncore.Value) error {
	if !r.keepID {
		return ValidateID(now)
	}
	changed := "_id"
	value := old
	for n.op == nil {
		if len(n.names.List) == 0 {
			break
		}
		name := n.names.List[0]
		n = n.children[0]
		next, _ := member(value, name)
		if next.Type == 0 {
			return mongoerror.New(mongoerror.ImmutableField, "Updating the path '%s' to %s would modify the immutable field '_id'",
				changed, notation.Element("_id", now))
		}
		value = next
		changed += "." + name
	}
	return mongoerror.New(mongoerror.ImmutableField, "Performing an update on the path '%s' would modify the immutable field '_id'",
		changed)
}

// ValidateID refuses what cannot be an _id. A Value with Type 0 is none.
func ValidateID(v bsoncore.Value) error {
	switch v.Type {
	case bsoncore.TypeArray, bsoncore.TypeRegex, bsoncore.TypeUndefined:
		return mongoerror.New(mongoerror.InvalidIdField, "The '_id' value cannot be of type %s", mongoerror.TypeName(v.Type))
	case bsoncore.TypeEmbeddedDocument:
		if name := dollarName(v.Data); name != nil {
			return mongoerror.New(mongoerror.DollarPrefixedFieldName,
				"_id fields may not contain '$'-prefixed fields: %s is not valid for storage.", name)
		}
	}
	return nil
}

// dollarName returns the first name with a dollar in a document or array, or in what is in it, and nil when there is none. Those with which
// a reference begins do not count: $ref, $id and $db.
func dollarName(doc []byte) []byte {
	it := path.ElementsOf(doc)
	name, v, ok := it.Next()
	if string(name) == "$ref" && v.Type == bsoncore.TypeString {
		if id, _, _ := it.Next(); string(id) != "$id" {
			return name
		}
		if name, v, ok = it.Next(); string(name) == "$db" && v.Type == bsoncore.TypeString {
			name, v, ok = it.Next()
		}
	}
	for ; ok; name, v, ok = it.Next() {
		if bytes.HasPrefix(name, []byte("$")) {
			return name
		}
		var inner []byte
		switch v.Type {
		case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray:
			inner = v.Data
		case bsoncore.TypeCodeWithScope:
			_, inner, _ = v.CodeWithScopeOK()
		}
		if found := dollarName(inner); found != nil {
			return found
		}
	}
	return nil
}

// identity returns the _id of a document that shall replace another: its own, which must be equal to that of the other; or else
// that of the other. It has Type 0 when there is none.
func identity(old, now bsoncore.Document, inserting bool) (bsoncore.Value, error) {
	was, _ := old.LookupErr("_id")
	is, err := now.LookupErr("_id")
	own := err == nil
	if !own {
		is = was
	}
	switch {
	case is.Type == bsoncore.TypeArray && inserting && (!own || was.Type == 0):
		return is, arrayID()
	case own && (is.Type != bsoncore.TypeArray || !inserting):
		if err := ValidateID(is); err != nil {
			return is, err
		}
		if was.Type != 0 && !order.Equal(was, is, nil) {
			return is, mongoerror.New(mongoerror.ImmutableField,
				"After applying the update, the (immutable) field '_id' was found to have been altered to %s", notation.Element("_id", is))
		}
	}
	return is, nil
}

// idFirst appends doc with its _id at the beginning, which is what validated documents have.
func idFirst(dst []byte, doc bsoncore.Document, id bsoncore.Value) []byte {
	if e, ok := first(doc); ok && string(e.Name) == "_id" {
		return append(dst, doc...)
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if id.Type != 0 {
		dst = bsoncore.AppendValueElement(dst, "_id", id)
	}
	for s := path.PlacesOf(doc); ; {
		e, ok := s.Next()
		if !ok {
			return finish(dst, start)
		}
		if string(e.Name) != "_id" {
			dst = append(dst, doc[e.Start:e.End]...)
		}
	}
}

// arrayID is the error of an upsert whose update leaves an array as _id.
func arrayID() error {
	return mongoerror.New(mongoerror.NotSingleValueField,
		"After applying the update to the document, the (immutable) field '_id' was found to be an array or array descendant.")
}
