package projection

import (
	"encoding/binary"
	"strconv"

	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// run is one application of a projection to one document.
type run struct {
	kind      kind
	doc       bsoncore.Document
	variables []expression.Variable
	start     int // of what is made, in the buffer that it is appended to
	most      int // bytes that it may become by what is computed: a few bytes of a specification may stand for megabytes
}

// What a document may become: one that find returns, and one in a pipeline, where others may make it shorter.
const (
	maxReturned = 16<<20 + 16<<10
	maxMade     = 100 << 20
)

// document appends what n makes of doc. What stays as it is is copied in bulk.
func (r *run) document(dst, doc []byte, n *node) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	var few [16]bool
	seen := few[:]
	if len(n.names.List) > len(few) {
		seen = make([]bool, len(n.names.List))
	}
	var err error
	from := 4 // where what is not copied yet begins, when unnamed fields stay
	left := len(n.names.List)
	for s := path.PlacesOf(doc); ; {
		e, ok := s.Next()
		if !ok {
			break
		}
		i := n.names.Find(e.Name)
		if i < 0 {
			continue
		}
		if r.kind != inclusion {
			dst = append(dst, doc[from:e.Start]...)
			from = e.End
		}
		child := n.children[i]
		switch {
		case !child.isLeaf() || child.slice != nil:
			dst, seen[i], err = r.below(dst, doc[e.Start:e.End], e.Value, child)
		case child.makes() && r.kind == inclusion:
			continue // it comes after what is included
		case child.makes():
			dst, err = r.compute(dst, n.names.List[i], child)
			seen[i] = true
		case r.kind == inclusion:
			dst = append(dst, doc[e.Start:e.End]...)
		}
		if err != nil {
			return dst, err
		}
		if left--; left == 0 && r.kind == inclusion && !n.computes {
			break
		}
	}
	if r.kind != inclusion {
		dst = append(dst, doc[from:len(doc)-1]...)
	}
	if n.computes {
		if dst, err = r.additions(dst, n, seen); err != nil {
			return dst, err
		}
	}
	return finish(dst, start), nil
}

// additions appends the computed fields that the document did not have.
func (r *run) additions(dst []byte, n *node, seen []bool) ([]byte, error) {
	var err error
	for i, child := range n.children {
		if seen[i] || !child.computes {
			continue
		}
		if child.isLeaf() {
			dst, err = r.compute(dst, n.names.List[i], child)
		} else {
			dst = appendHeader(dst, bsoncore.TypeEmbeddedDocument, n.names.List[i])
			dst, err = r.create(dst, child)
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// finish ends the document that began at start.
func finish(dst []byte, start int) []byte {
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
	return dst
}

func appendHeader(dst []byte, t bsoncore.Type, name string) []byte {
	dst = append(dst, byte(t))
	dst = append(dst, name...)
	return append(dst, 0)
}

// create appends a document with the computed fields under n, and nothing else.
func (r *run) create(dst []byte, n *node) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst, err := r.additions(dst, n, make([]bool, len(n.children)))
	return finish(dst, start), err
}

// compute appends a computed field, unless its value is missing.
func (r *run) compute(dst []byte, name string, n *node) ([]byte, error) {
	var v bsoncore.Value
	var err error
	switch {
	case n.computed != nil && r.variables == nil:
		v, err = n.computed.Eval(r.doc)
	case n.computed != nil:
		v, err = n.computed.EvalWith(r.doc, r.variables)
	case n.elemMatch != nil:
		return n.elemMatch.append(dst, r.doc)
	default:
		for _, variable := range r.variables {
			if variable.Name == metaPrefix+n.meta {
				v = variable.Value
			}
		}
	}
	if err != nil || v.Type == 0 {
		return dst, err
	}
	if n := len(dst) - r.start + len(v.Data); n > r.most {
		return dst, mongoerror.New(mongoerror.BSONObjectTooLarge, "BSONObj size: %d (0x%X) is invalid. Size must be between 0 and %d", n, n, r.most)
	}
	dst = appendHeader(dst, v.Type, name)
	return append(dst, v.Data...), nil
}

// below appends an element whose value n, which has children or a slice, changes. there is false when nothing is appended.
func (r *run) below(dst, whole []byte, v bsoncore.Value, n *node) (out []byte, there bool, err error) {
	start := len(dst)
	header := len(whole) - len(v.Data)
	dst = append(dst, whole[:header]...)
	out, t, err := r.value(dst, v, n)
	if err != nil || t == 0 {
		return out[:start], false, err
	}
	out[start] = byte(t)
	return out, true, nil
}

// value appends the bytes of what n makes of v, and returns its type: 0 when there is nothing.
func (r *run) value(dst []byte, v bsoncore.Value, n *node) ([]byte, bsoncore.Type, error) {
	var err error
	switch {
	case n.slice != nil && v.Type == bsoncore.TypeArray:
		return n.slice.append(dst, v.Data), v.Type, nil
	case n.slice != nil:
		return append(dst, v.Data...), v.Type, nil
	case v.Type == bsoncore.TypeEmbeddedDocument:
		dst, err = r.document(dst, v.Data, n)
		return dst, v.Type, err
	case v.Type == bsoncore.TypeArray:
		dst, err = r.array(dst, v.Data, n)
		return dst, v.Type, err
	case n.computes:
		dst, err = r.create(dst, n)
		return dst, bsoncore.TypeEmbeddedDocument, err
	case r.kind == inclusion:
		return dst, 0, nil
	}
	return append(dst, v.Data...), v.Type, nil
}

// array appends an array to whose elements n is applied. An inclusion leaves out those in which there is nothing to include.
func (r *run) array(dst, array []byte, n *node) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	count := 0
	for s := path.PlacesOf(array); ; {
		e, ok := s.Next()
		if !ok {
			break
		}
		header := len(dst)
		dst = append(dst, 0)
		dst = strconv.AppendInt(dst, int64(count), 10)
		dst = append(dst, 0)
		out, t, err := r.value(dst, e.Value, n)
		if err != nil {
			return out, err
		}
		if dst = out; t == 0 {
			dst = dst[:header]
			continue
		}
		dst[header] = byte(t)
		count++
	}
	return finish(dst, start), nil
}

// replaceRoot appends the document that an expression makes.
func (r *run) replaceRoot(dst []byte, e *expression.Expression) ([]byte, error) {
	v, err := e.EvalWith(r.doc, r.variables)
	if err != nil {
		return dst, err
	}
	if v.Type != bsoncore.TypeEmbeddedDocument {
		shown := "MISSING"
		if v.Type != 0 {
			shown = v.String()
		}
		return dst, mongoerror.New(errNewRoot, "'newRoot' expression  must evaluate to an object, but resulting value was: %.200s. "+
			"Type of resulting value: '%s'. Input document: %.200s", shown, mongoerror.TypeName(v.Type), r.doc)
	}
	return append(dst, v.Data...), nil
}
