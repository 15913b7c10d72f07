package update

import (
	"encoding/binary"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/path"
)

// Limits of what an update may make of a document.
const (
	maxDocumentSize = 16 << 20 // MongoDB's BSONObjMaxUserSize
	sizeAllowance   = 16 << 10 // that the server's own additions may take beyond it
	maxDepth        = 100
	maxPadding      = 1_500_000 // nulls that one update may put before a new position
)

// run is one application of a tree of operations to one document. Documents are rewritten in one pass: what no path names is
// copied in bulk.
type run struct {
	u         *Update
	doc       bsoncore.Document // as it was
	inserting bool
	position  int
	keepID    bool // _id must not change
	anyID     bool // _id is not looked at
	changed   bool
	inArray   bool // the element at hand is one of an array
	padded    int  // bytes of nulls put into arrays so far
	path      []step
	room      [8]step
	digits    [16]byte                            // of a new number
	fields    map[*byte]map[string]bsoncore.Value // of documents, by their first byte, in which much is renamed
}

// step is a component of the path to the element at hand: a name, or a position.
type step struct {
	name  string
	index int
}

func (r *run) push(name string, index int) { r.path = append(r.path, step{name, index}) }
func (r *run) pop()                        { r.path = r.path[:len(r.path)-1] }

// pathTo returns the path of the element at hand, and suffix.
func (r *run) pathTo(suffix []string) string {
	var b strings.Builder
	for i, s := range r.path {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.text())
	}
	for _, s := range suffix {
		b.WriteByte('.')
		b.WriteString(s)
	}
	return b.String()
}

func (s step) text() string {
	if s.name == "" {
		return strconv.Itoa(s.index)
	}
	return s.name
}

// here returns the last component of the path.
func (r *run) here() string { return r.path[len(r.path)-1].text() }

// failure keeps the error of the child that is applied first, whatever the order in which the document shows them.
type failure struct {
	err error
	at  int
}

func (f *failure) note(err error, at int) {
	if f.err == nil || at < f.at {
		f.err, f.at = err, at
	}
}

// document appends the document that n makes of doc.
func (r *run) document(dst, doc []byte, n *node) ([]byte, error) {
	n, err := r.withPosition(n)
	if err != nil {
		return dst, err
	}
	start, from := len(dst), 4
	dst = append(dst, 0, 0, 0, 0)
	var few [16]bool
	done := few[:]
	if len(n.names.List) > len(few) {
		done = make([]bool, len(n.names.List))
	}
	var failed failure
	s := path.PlacesOf(doc)
	for left := len(n.names.List); left > 0; {
		e, ok := s.Next()
		if !ok {
			break
		}
		i := n.names.Find(e.Name)
		if i < 0 || done[i] {
			continue
		}
		done[i] = true
		left--
		dst = append(dst, doc[from:e.Start]...)
		from = e.End
		if dst, err = r.field(dst, n.names.List[i], n.children[i], e.Value); err != nil {
			failed.note(err, i)
		}
	}
	dst = append(dst, doc[from:len(doc)-1]...)
	for i, name := range n.names.List {
		if done[i] || failed.err != nil && i > failed.at {
			continue
		}
		if dst, err = r.field(dst, name, n.children[i], bsoncore.Value{}); err != nil {
			failed.note(err, i)
		}
	}
	return finish(dst, start), failed.err
}

// finish ends the document that began at start.
func finish(dst []byte, start int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

// withPosition puts what is under $ where the position is.
func (r *run) withPosition(n *node) (*node, error) {
	if n.positional == nil {
		return n, nil
	}
	if r.position < 0 {
		return nil, mongoerror.New(mongoerror.BadValue, "The positional operator did not find the match needed from the query.")
	}
	name := strconv.Itoa(r.position)
	wrapped := new(node)
	wrapped.put(name, n.positional)
	plain := &node{names: n.names, children: n.children}
	return merged(plain, wrapped, r.pathTo, nil)
}

// field appends the element that n makes of the field of that name; old has no type when there is none. Nothing is appended
// when there is no such field afterwards.
func (r *run) field(dst []byte, name string, n *node, old bsoncore.Value) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0)
	dst = append(dst, name...)
	dst = append(dst, 0)
	r.push(name, 0)
	inArray, changed := r.inArray, r.changed
	r.inArray = false
	watched := len(r.path) == 1 && name == "_id" && !r.anyID
	if watched {
		r.changed = false
	}
	out, t, err := r.value(dst, n, old)
	if err == nil && watched && r.changed {
		err = r.checkID(n, old, bsoncore.Value{Type: t, Data: out[len(dst):]})
	}
	if err == nil && len(r.path) == 1 && old.Type == 0 && t != 0 && strings.HasPrefix(name, "$") && !r.inserting {
		err = dollarPrefixed(name)
	}
	r.changed = r.changed || changed
	r.inArray = inArray
	r.pop()
	if err != nil || t == 0 {
		return out[:start], err
	}
	out[start] = byte(t)
	return out, nil
}

// value appends the bytes of what n makes of a value, and returns its type: 0 when there is nothing.
func (r *run) value(dst []byte, n *node, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	switch {
	case n.op != nil:
		return r.operate(dst, n.op, old)
	case n.array:
		return r.elements(dst, n, old)
	case old.Type == 0:
		return r.create(dst, n)
	case old.Type == bsoncore.TypeEmbeddedDocument:
		out, err := r.document(dst, old.Data, n)
		return out, old.Type, err
	case old.Type == bsoncore.TypeArray:
		return r.positions(dst, n, old)
	}
	n, err := r.withPosition(n)
	if err == nil {
		err = r.unviable(n, old)
	}
	return append(dst, old.Data...), old.Type, err
}

// create appends a new embedded document, unless nothing would be in it.
func (r *run) create(dst []byte, n *node) ([]byte, bsoncore.Type, error) {
	n, err := r.withPosition(n)
	if err != nil {
		return dst, 0, err
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i, name := range n.names.List {
		if dst, err = r.field(dst, name, n.children[i], bsoncore.Value{}); err != nil {
			return dst, 0, err
		}
	}
	if len(dst) == start+4 {
		return dst[:start], 0, nil
	}
	return finish(dst, start), bsoncore.TypeEmbeddedDocument, nil
}

// elements applies an array node: every element gets what the filters that it passes say.
func (r *run) elements(dst []byte, n *node, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	if old.Type == 0 {
		return dst, 0, mongoerror.New(mongoerror.BadValue,
			"The path '%s' must exist in the document in order to apply array updates.", r.pathTo(nil))
	}
	if old.Type != bsoncore.TypeArray {
		return dst, 0, mongoerror.New(mongoerror.BadValue, "Cannot apply array updates to non-array element %s",
			notation.Element(r.here(), old))
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	index := 0
	for s := path.PlacesOf(old.Data); ; index++ {
		e, ok := s.Next()
		if !ok {
			break
		}
		r.push("", index)
		chosen, err := r.chosen(n, e.Value)
		if err == nil && chosen == nil {
			dst = append(dst, old.Data[e.Start:e.End]...)
		} else if err == nil {
			dst, err = r.item(dst, index, chosen, e.Value)
		}
		r.pop()
		if err != nil {
			return dst, 0, err
		}
	}
	return finish(dst, start), bsoncore.TypeArray, nil
}

// chosen merges the children of an array node whose filter an element passes; nil when there is none.
func (r *run) chosen(n *node, v bsoncore.Value) (*node, error) {
	var result *node
	for i, identifier := range n.names.List {
		if identifier != "" {
			ok, err := r.u.filters[identifier].match(v)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		if result == nil {
			result = n.children[i]
			continue
		}
		both, err := merged(result, n.children[i], r.pathTo, nil)
		if err != nil {
			return nil, err
		}
		result = both
	}
	return result, nil
}

// item appends an element of an array.
func (r *run) item(dst []byte, index int, n *node, old bsoncore.Value) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0)
	dst = strconv.AppendInt(dst, int64(index), 10)
	dst = append(dst, 0)
	inArray := r.inArray
	r.inArray = true
	dst, t, err := r.value(dst, n, old)
	r.inArray = inArray
	if t == 0 {
		t = bsoncore.TypeNull
	}
	dst[start] = byte(t)
	return dst, err
}

// positions applies an object node to an array: its children are positions.
func (r *run) positions(dst []byte, n *node, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	n, err := r.withPosition(n)
	if err != nil {
		return dst, 0, err
	}
	values := elementsOf(old)
	for i, name := range n.names.List {
		index, ok := indexOf(name)
		if !ok {
			if err := r.blocked(n.children[i], name, old); err != nil {
				return dst, 0, err
			}
			continue
		}
		var was bsoncore.Value
		if index < len(values) {
			was = values[index]
		}
		r.push(name, 0)
		inArray := r.inArray
		r.inArray = true
		data, t, err := r.value(nil, n.children[i], was)
		r.inArray = inArray
		r.pop()
		if err != nil {
			return dst, 0, err
		}
		if t == 0 {
			if was.Type == 0 {
				continue
			}
			t, data = bsoncore.TypeNull, nil
		}
		if index-len(values) > maxPadding {
			return dst, 0, mongoerror.New(mongoerror.CannotBackfillArray, "can't backfill more than %d elements", maxPadding)
		}
		if r.padded += nullsSize(len(values), index); r.padded > maxDocumentSize {
			return dst, 0, mongoerror.New(mongoerror.BSONObjectTooLarge,
				"Resulting document after update is larger than %d", maxDocumentSize)
		}
		for index >= len(values) {
			values = append(values, bsoncore.Value{Type: bsoncore.TypeNull})
		}
		values[index] = bsoncore.Value{Type: t, Data: data}
	}
	return appendArray(dst, values), bsoncore.TypeArray, nil
}

// nullsSize returns how many bytes the nulls at positions low to high take in an array.
func nullsSize(low, high int) int {
	total := 0
	for power, digits := 10, 1; low < high; power, digits = power*10, digits+1 {
		if n := min(high, power) - low; n > 0 {
			total += n * (1 + digits + 1)
			low += n
		}
	}
	return total
}

// appendArray appends an array of values.
func appendArray(dst []byte, values []bsoncore.Value) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i, v := range values {
		dst = appendItem(dst, i, v)
	}
	return finish(dst, start)
}

func appendItem(dst []byte, i int, v bsoncore.Value) []byte {
	dst = append(dst, byte(v.Type))
	dst = strconv.AppendInt(dst, int64(i), 10)
	dst = append(dst, 0)
	return append(dst, v.Data...)
}

// unviable returns the error of the first operation under n, none of whose fields can be in a value like v.
func (r *run) unviable(n *node, v bsoncore.Value) error {
	for i, name := range n.names.List {
		if err := r.blocked(n.children[i], name, v); err != nil {
			return err
		}
	}
	return nil
}

// blocked returns the error of the first operation under the child of that name, which cannot be in a value like v.
func (r *run) blocked(n *node, name string, v bsoncore.Value) error {
	return r.blockedUnder(n, name, v, []string{name})
}

func (r *run) blockedUnder(n *node, name string, v bsoncore.Value, suffix []string) error {
	if n.array {
		return mongoerror.New(mongoerror.BadValue,
			"The path '%s' must exist in the document in order to apply array updates.", r.pathTo(suffix))
	}
	if n.op != nil {
		switch n.op.kind {
		case opPop, opPull, opPullAll:
			return mongoerror.New(mongoerror.PathNotViable, "Cannot use the part (%s) of (%s) to traverse the element ({%s})",
				name, r.pathTo(suffix), notation.Element(r.here(), v))
		case opRename:
			if _, found, err := r.renamed(n.op); err != nil || !found {
				return err
			}
		}
		if n.op.creates(r.inserting) {
			return mongoerror.New(mongoerror.PathNotViable, "Cannot create field '%s' in element {%s}",
				name, notation.Element(r.here(), v))
		}
		return nil
	}
	n, err := r.withPosition(n)
	if err != nil {
		return err
	}
	for i, child := range n.children {
		if err := r.blockedUnder(child, name, v, append(suffix, n.names.List[i])); err != nil {
			return err
		}
	}
	return nil
}

// dollarPrefixed is the error of a top-level field whose name begins with a dollar.
func dollarPrefixed(name string) error {
	if name == "$id" {
		return mongoerror.New(mongoerror.InvalidDBRef, "Found $id field without a $ref before it, which is invalid.")
	}
	return mongoerror.New(mongoerror.DollarPrefixedFieldName, "The dollar ($) prefixed field '%s' in '%s' is not allowed in the "+
		"context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith.", name, name)
}
