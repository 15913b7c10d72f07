package update

import (
	"bytes"
	"encoding/binary"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
)

// operate appends what op makes of a value, and returns its type: 0 when there is nothing. Whether anything has changed is noted
// as MongoDB counts it, which is not always whether the bytes differ.
func (r *run) operate(dst []byte, op *operation, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	switch op.kind {
	case opSet:
		return r.set(dst, op.value, op.depth, old)
	case opSetOnInsert:
		if !r.inserting {
			return append(dst, old.Data...), old.Type, nil
		}
		return r.set(dst, op.value, op.depth, old)
	case opUnset:
		return r.unset(dst, old)
	case opInc, opMul:
		return r.arithmetic(dst, op, old)
	case opMin, opMax:
		if old.Type != 0 {
			c := order.Compare(op.value, old, r.u.collation)
			if op.kind == opMin && c >= 0 || op.kind == opMax && c <= 0 {
				return append(dst, old.Data...), old.Type, nil
			}
		}
		return r.put(dst, op.value, op.depth)
	case opRename:
		return r.rename(dst, op, old)
	case opRenameSource:
		if old.Type == 0 {
			return dst, 0, nil
		}
		return r.unset(dst, old)
	case opCurrentDate:
		return r.put(dst, r.u.moment(op.value), 0)
	case opPush:
		return r.pushInto(dst, op, old)
	case opAddToSet:
		return r.addToSet(dst, op, old)
	case opPop, opPull, opPullAll:
		return r.remove(dst, op, old)
	default:
		return r.bit(dst, op, old)
	}
}

// moment is what $currentDate sets: every document gets a timestamp of its own, as in MongoDB, where one may be in a unique index.
func (u *Update) moment(v bsoncore.Value) bsoncore.Value {
	if v.Type != bsoncore.TypeTimestamp || u.timestamp == nil {
		return v
	}
	return bsoncore.Value{Type: v.Type, Data: binary.LittleEndian.AppendUint64(nil, u.timestamp())}
}

// put appends a value that is new at its place.
func (r *run) put(dst []byte, v bsoncore.Value, depth int) ([]byte, bsoncore.Type, error) {
	if len(r.path)+depth > maxDepth {
		return dst, 0, tooDeep()
	}
	r.changed = true
	return append(dst, v.Data...), v.Type, nil
}

func tooDeep() error {
	return mongoerror.New(mongoerror.Overflow, "Document exceeds maximum nesting depth of %d", maxDepth)
}

// set is put, unless the very same bytes are there.
func (r *run) set(dst []byte, v bsoncore.Value, depth int, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	if v.Type == old.Type && bytes.Equal(v.Data, old.Data) {
		return append(dst, old.Data...), old.Type, nil
	}
	return r.put(dst, v, depth)
}

// unset leaves a field out. An array keeps its length: the element becomes null.
func (r *run) unset(dst []byte, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	if old.Type == 0 {
		return dst, 0, nil
	}
	r.changed = true
	if r.inArray {
		return dst, bsoncore.TypeNull, nil
	}
	return dst, 0, nil
}

// rename is the target of $rename: the source's value is put there.
func (r *run) rename(dst []byte, op *operation, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	v, found, err := r.renamed(op)
	if err != nil || !found {
		return append(dst, old.Data...), old.Type, err
	}
	r.changed = true
	return r.put(dst, v, depthOf(v))
}

// renamed finds what $rename moves. Neither end may be in an array.
func (r *run) renamed(op *operation) (v bsoncore.Value, found bool, err error) {
	v = bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: r.doc}
	array := ""
	for i, name := range op.source {
		next, at := r.member(v, name)
		if next.Type == 0 {
			if at < 0 && i > 0 {
				return v, false, mongoerror.New(mongoerror.PathNotViable,
					"cannot use the part (%s of %s) to traverse the element ({%s})",
					op.source[i-1], strings.Join(op.source, "."), notation.Element(op.source[i-1], v))
			}
			return v, false, nil
		}
		if v.Type == bsoncore.TypeArray {
			array = op.source[i-1]
		}
		v = next
	}
	if array != "" {
		return v, false, r.renameInArray("source", op.source, array)
	}
	to := bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: r.doc}
	for i, name := range op.target {
		if to.Type == bsoncore.TypeArray {
			return v, false, r.renameInArray("destination", op.target, op.target[i-1])
		}
		if to, _ = r.member(to, name); to.Type == 0 {
			break
		}
	}
	return v, true, nil
}

// fewRenames is up to how many renames look through the fields of a document one by one.
const fewRenames = 8

// member is member for both ends of a $rename. Where there are many, each field is looked at once for all of them.
func (r *run) member(v bsoncore.Value, name string) (m bsoncore.Value, at int) {
	if r.u.renames <= fewRenames || v.Type != bsoncore.TypeEmbeddedDocument {
		return member(v, name)
	}
	fields := r.fields[&v.Data[0]]
	if fields == nil {
		fields = map[string]bsoncore.Value{}
		for s := path.PlacesOf(v.Data); ; {
			e, ok := s.Next()
			if !ok {
				break
			}
			if _, there := fields[string(e.Name)]; !there {
				fields[string(e.Name)] = e.Value
			}
		}
		if r.fields == nil {
			r.fields = map[*byte]map[string]bsoncore.Value{}
		}
		r.fields[&v.Data[0]] = fields
	}
	return fields[name], 0
}

func (r *run) renameInArray(which string, components []string, array string) error {
	return mongoerror.New(mongoerror.BadValue,
		"The %s field cannot be an array element, '%s' in doc with %s has an array field called '%s'",
		which, strings.Join(components, "."), r.identity("_id: (none)", false), array)
}

// member returns a field of a document, or an element of an array. at is -1 when a value like v cannot have such a member.
func member(v bsoncore.Value, name string) (m bsoncore.Value, at int) {
	index := 0
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument:
	case bsoncore.TypeArray:
		n, ok := indexOf(name)
		if !ok {
			return bsoncore.Value{}, -1
		}
		index = n
	default:
		return bsoncore.Value{}, -1
	}
	i := 0
	for s := path.PlacesOf(v.Data); ; i++ {
		e, ok := s.Next()
		if !ok {
			return bsoncore.Value{}, i
		}
		if v.Type == bsoncore.TypeArray && i == index || v.Type != bsoncore.TypeArray && string(e.Name) == name {
			return e.Value, i
		}
	}
}

// identity is how messages name the document.
func (r *run) identity(none string, braces bool) string {
	id, err := r.doc.LookupErr("_id")
	if err != nil {
		return none
	}
	if braces {
		return "{" + notation.Element("_id", id) + "}"
	}
	return notation.Element("_id", id)
}

// bitwise is one operation of $bit.
type bitwise struct {
	kind  byte // '&', '|', '^'
	value int64
	wide  bool // an int64
}

func (r *run) bit(dst []byte, op *operation, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	var n int64
	wide := false
	switch old.Type {
	case 0:
	case bsoncore.TypeInt32:
		n = int64(int32(binary.LittleEndian.Uint32(old.Data)))
	case bsoncore.TypeInt64:
		n, wide = int64(binary.LittleEndian.Uint64(old.Data)), true
	default:
		return dst, 0, mongoerror.New(mongoerror.BadValue,
			"Cannot apply $bit to a value of non-integral type.%s has the field %s of non-integer type %s",
			r.identity("_id: (none)", false), r.here(), mongoerror.TypeName(old.Type))
	}
	for _, b := range op.bits {
		switch b.kind {
		case '&':
			n &= b.value
		case '|':
			n |= b.value
		default:
			n ^= b.value
		}
		wide = wide || b.wide
	}
	t, data := bsoncore.TypeInt32, binary.LittleEndian.AppendUint32(r.digits[:0], uint32(int32(n)))
	if wide {
		t, data = bsoncore.TypeInt64, binary.LittleEndian.AppendUint64(r.digits[:0], uint64(n))
	}
	if t != old.Type || !bytes.Equal(data, old.Data) {
		r.changed = true
	}
	return append(dst, data...), t, nil
}
