package document

import (
	"encoding/binary"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Limits.
const (
	MaxDocumentBytes  = 16 << 20 // of one document as BSON
	MaxDepth          = 100      // of documents and arrays in each other
	MaxNamespaceBytes = 255      // of a collection's name with its database's in front
)

// checkDocument is checkBSON with the limit on the size.
func checkDocument(doc []byte) error {
	if err := checkBSON(doc); err != nil {
		return err
	}
	if len(doc) > MaxDocumentBytes {
		return tooLarge(len(doc))
	}
	return nil
}

// checkBSON refuses what cannot be stored: bytes that are no BSON, text that is no UTF-8, names twice in one document, and what is
// too deep. Everything behind this door trusts the lengths inside a document.
func checkBSON(doc []byte) error { return checkWhole(doc, true) }

// checkSpec is checkBSON for filters, commands and the like, in which a name may stand twice.
func checkSpec(doc []byte) error { return checkWhole(doc, false) }

func checkWhole(doc []byte, unique bool) error {
	rest, err := checkElements(doc, 1, false, unique)
	if err == nil && len(rest) != 0 {
		err = malformed("%d bytes behind the document", len(rest))
	}
	return err
}

func malformed(format string, args ...any) error {
	return mongoerror.New(mongoerror.InvalidBSON, "invalid BSON: "+format, args...)
}

// checkElements checks the document or array that begins src and returns what follows it. unique says whether names must differ.
func checkElements(src []byte, depth int, array, unique bool) ([]byte, error) {
	if depth > MaxDepth {
		return nil, mongoerror.New(mongoerror.Overflow, "the document nests documents and arrays deeper than %d levels", MaxDepth)
	}
	if len(src) < 5 {
		return nil, malformed("a document of %d bytes", len(src))
	}
	n := int(int32(binary.LittleEndian.Uint32(src)))
	if n < 5 || n > len(src) || src[n-1] != 0 {
		return nil, malformed("a document that says it has %d bytes, of %d", n, len(src))
	}
	body, rest := src[4:n-1], src[n:]
	if array {
		return rest, checkArray(body, depth, unique)
	}
	return rest, checkFields(body, depth, unique)
}

// checkArray checks the elements of an array, whose names say nothing.
func checkArray(body []byte, depth int, unique bool) error {
	for len(body) > 0 {
		t := bson.Type(body[0])
		_, after, ok := cutString(body[1:])
		if !ok {
			return malformed("a field name that does not end")
		}
		var err error
		if body, err = checkValue(t, after, depth, unique); err != nil {
			return err
		}
	}
	return nil
}

// checkFields checks the elements of a document.
func checkFields(fields []byte, depth int, unique bool) error {
	var seen names
	for body := fields; len(body) > 0; {
		t := bson.Type(body[0])
		name, after, hash, ok := cutName(body[1:])
		if !ok {
			return malformed("a field name that does not end")
		}
		if !isASCII(hash) && !utf8.Valid(name) {
			return malformed("the field name %q is not UTF-8", name)
		}
		at := len(fields) - len(body) + 1
		if unique && seen.add(fields, at, at+len(name), hash) {
			return mongoerror.New(mongoerror.BadValue, "the field name %q occurs twice in one document", name)
		}
		var err error
		if body, err = checkValue(t, after, depth, unique); err != nil {
			return err
		}
	}
	return nil
}

// checkValue checks the value of type t that begins src and returns what follows it.
func checkValue(t bson.Type, src []byte, depth int, unique bool) ([]byte, error) {
	switch t {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		return checkElements(src, depth+1, t == bson.TypeArray, unique)
	case bson.TypeString, bson.TypeJavaScript, bson.TypeSymbol:
		return checkText(src)
	case bson.TypeDBPointer:
		rest, err := checkText(src)
		if err != nil {
			return nil, err
		}
		return skip(rest, 12)
	case bson.TypeCodeWithScope:
		return checkCodeWithScope(src, depth, unique)
	case bson.TypeRegex:
		for range 2 {
			text, rest, ok := cutString(src)
			if !ok || !utf8.Valid(text) {
				return nil, malformed("a regular expression that does not end or is not UTF-8")
			}
			src = rest
		}
		return src, nil
	case bson.TypeBinary:
		return checkBinary(src)
	case bson.TypeBoolean:
		if len(src) < 1 || src[0] > 1 {
			return nil, malformed("a boolean that is neither true nor false")
		}
		return src[1:], nil
	}
	n, ok := fixedSize(t)
	if !ok {
		return nil, malformed("an element of unknown type %#02x", byte(t))
	}
	return skip(src, n)
}

// fixedSize returns the length of a value of a type whose values all have the same.
func fixedSize(t bson.Type) (int, bool) {
	switch t {
	case bson.TypeDouble, bson.TypeDateTime, bson.TypeTimestamp, bson.TypeInt64:
		return 8, true
	case bson.TypeInt32:
		return 4, true
	case bson.TypeObjectID:
		return 12, true
	case bson.TypeDecimal128:
		return 16, true
	case bson.TypeNull, bson.TypeUndefined, bson.TypeMinKey, bson.TypeMaxKey:
		return 0, true
	}
	return 0, false
}

func skip(src []byte, n int) ([]byte, error) {
	if n < 0 || n > len(src) {
		return nil, malformed("a value that is cut short")
	}
	return src[n:], nil
}

// checkText checks a string with its length in front.
func checkText(src []byte) ([]byte, error) {
	if len(src) < 5 {
		return nil, malformed("a string that is cut short")
	}
	n := int(int32(binary.LittleEndian.Uint32(src)))
	if n < 1 || n > len(src)-4 || src[4+n-1] != 0 {
		return nil, malformed("a string that says it has %d bytes, of %d", n, len(src)-4)
	}
	if !utf8.Valid(src[4 : 4+n-1]) {
		return nil, malformed("a string that is not UTF-8")
	}
	return src[4+n:], nil
}

func checkBinary(src []byte) ([]byte, error) {
	if len(src) < 5 {
		return nil, malformed("binary data that is cut short")
	}
	n := int(int32(binary.LittleEndian.Uint32(src)))
	subtype := src[4]
	if n < 0 || n > len(src)-5 {
		return nil, malformed("binary data that says it has %d bytes, of %d", n, len(src)-5)
	}
	if subtype == bson.TypeBinaryBinaryOld && (n < 4 || int(int32(binary.LittleEndian.Uint32(src[5:]))) != n-4) {
		return nil, malformed("old binary data with a wrong length inside")
	}
	return src[5+n:], nil
}

func checkCodeWithScope(src []byte, depth int, unique bool) ([]byte, error) {
	if len(src) < 4 {
		return nil, malformed("code that is cut short")
	}
	n := int(int32(binary.LittleEndian.Uint32(src)))
	if n < 4 || n > len(src) {
		return nil, malformed("code with scope that says it has %d bytes, of %d", n, len(src))
	}
	scope, err := checkText(src[4:n])
	if err != nil {
		return nil, err
	}
	if scope, err = checkElements(scope, depth+1, false, unique); err != nil {
		return nil, err
	}
	if len(scope) != 0 {
		return nil, malformed("%d bytes behind the scope of code", len(scope))
	}
	return src[n:], nil
}

// cutString returns the bytes before the first zero byte, and those behind it.
func cutString(src []byte) (text, rest []byte, ok bool) {
	for i, b := range src {
		if b == 0 {
			return src[:i], src[i+1:], true
		}
	}
	return nil, nil, false
}

// cutName is cutString for a field name. It computes in the same pass a hash of the name, whose lowest bit says whether there are
// other bytes than ASCII in it.
func cutName(src []byte) (name, rest []byte, hash uint32, ok bool) {
	all := byte(0)
	for i, b := range src {
		if b == 0 {
			return src[:i], src[i+1:], (hash+uint32(i))*0x9e3779b1&^1 | uint32(all>>7), true
		}
		hash = hash*31 + uint32(b)
		all |= b
	}
	return nil, nil, 0, false
}

// isASCII tells what a hash of cutName says of the name.
func isASCII(hash uint32) bool { return hash&1 == 0 }

// names finds field names that occur twice. Most documents have few names that differ in their length and bytes, so a small
// filter says no at once; only then are names compared. It lies on the stack until a document has many.
type names struct {
	filter [4]uint64
	few    [fewNames]struct{ from, to uint32 } // in the body of the document
	count  int
	many   map[string]struct{}
}

// fewNames is up to how many names are compared one by one.
const fewNames = 32

// add takes the name between two places in the body, with its hash, and reports whether it was there.
func (n *names) add(body []byte, from, to int, hash uint32) bool {
	name := body[from:to]
	if n.many != nil {
		before := len(n.many)
		n.many[string(name)] = struct{}{}
		return len(n.many) == before
	}
	word, bit := &n.filter[hash>>30], uint64(1)<<(hash>>24&63)
	if *word&bit != 0 {
		for _, o := range n.few[:n.count] {
			if string(body[o.from:o.to]) == string(name) {
				return true
			}
		}
	}
	*word |= bit
	if n.count < fewNames {
		n.few[n.count].from, n.few[n.count].to = uint32(from), uint32(to)
		n.count++
		return false
	}
	n.many = make(map[string]struct{}, 4*fewNames)
	for _, o := range n.few {
		n.many[string(body[o.from:o.to])] = struct{}{}
	}
	n.many[string(name)] = struct{}{}
	return false
}

func tooLarge(n int) error {
	return mongoerror.New(mongoerror.BSONObjectTooLarge, "object to insert too large. size in bytes: %d, max size: %d", n, MaxDocumentBytes)
}
