package projection

import (
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/query"
)

// slice is find's $slice.
type slice struct {
	skip  int64 // from the end, when negative
	limit int64 // the last ones, when negative and there is no skip
	skips bool
}

// parseSlice parses a count, or a pair of skip and limit; what is neither may be an expression.
func parseSlice(v bsoncore.Value) (*slice, error) {
	if n, ok := number.Of(v); ok {
		return &slice{limit: clamp(n)}, nil
	}
	if v.Type != bsoncore.TypeArray {
		return nil, newError(31273, "$slice only supports numbers and [skip, limit] arrays")
	}
	var numbers []int64
	count := 0
	for s := path.PlacesOf(v.Data); ; count++ {
		e, ok := s.Next()
		if !ok {
			break
		}
		if n, ok := number.Of(e.Value); ok {
			numbers = append(numbers, clamp(n))
		}
	}
	switch {
	case count != 2:
		return nil, newError(31272, "$slice array argument should be of form [skip, limit]")
	case len(numbers) != 2:
		return nil, newError(31257, "$slice arguments should be numeric")
	case numbers[1] <= 0:
		return nil, newError(31259, "$slice limit must be positive")
	}
	return &slice{skip: numbers[0], limit: numbers[1], skips: true}, nil
}

// clamp returns a number without its fraction, in the range of int32.
func clamp(n number.Number) int64 {
	i, _ := n.Int64()
	return max(math.MinInt32, min(math.MaxInt32, i))
}

// append appends the part of an array.
func (s *slice) append(dst, array []byte) []byte {
	count := int64(0)
	for s := path.PlacesOf(array); ; count++ {
		if _, ok := s.Next(); !ok {
			break
		}
	}
	low, high := int64(0), min(s.limit, count)
	if !s.skips && s.limit < 0 {
		low, high = max(count+s.limit, 0), count
	}
	if s.skips {
		low = min(s.skip, count)
		if s.skip < 0 {
			low = max(count+s.skip, 0)
		}
		high = min(low+s.limit, count)
	}
	return appendPart(dst, array, low, high)
}

// appendPart appends an array of the elements low to high of an array.
func appendPart(dst, array []byte, low, high int64) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	var i int64
	for s := path.PlacesOf(array); i < high; i++ {
		e, ok := s.Next()
		if !ok {
			break
		}
		if i >= low {
			dst = append(dst, byte(e.Value.Type))
			dst = strconv.AppendInt(dst, i-low, 10)
			dst = append(dst, 0)
			dst = append(dst, e.Value.Data...)
		}
	}
	return finish(dst, start)
}

// elemMatch is find's $elemMatch: the first element of an array that a condition matches.
type elemMatch struct {
	field  string
	filter *query.Filter // {field: {$elemMatch: ...}}
}

// append appends the field with that element only; nothing when there is none.
func (m *elemMatch) append(dst []byte, doc bsoncore.Document) ([]byte, error) {
	v, err := doc.LookupErr(m.field)
	if err != nil || v.Type != bsoncore.TypeArray {
		return dst, nil
	}
	matched, position, err := m.filter.MatchPosition(path.Document(doc))
	if err != nil || !matched || position < 0 {
		return dst, err
	}
	dst = appendHeader(dst, bsoncore.TypeArray, m.field)
	return appendPart(dst, v.Data, int64(position), int64(position)+1), nil
}

// withPosition applies a projection and then leaves of the first array on the positional path only the element that the
// query found.
func (r *run) withPosition(dst []byte, p *Projection) ([]byte, error) {
	r.start = 0
	projected, err := r.document(nil, r.doc, p.tree)
	if err != nil {
		return dst, err
	}
	position := -1
	if p.filter != nil {
		if _, position, err = p.filter.MatchPosition(path.Document(r.doc)); err != nil {
			return dst, err
		}
	}
	return positioned(dst, projected, p.positional, position)
}

// positioned appends a document in which the first array on a path has only the element at position.
func positioned(dst, doc []byte, names []string, position int) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for s := path.PlacesOf(doc); ; {
		e, ok := s.Next()
		if !ok {
			return finish(dst, start), nil
		}
		header := e.End - len(e.Value.Data)
		switch {
		case string(e.Name) != names[0]:
			dst = append(dst, doc[e.Start:e.End]...)
		case e.Value.Type == bsoncore.TypeArray:
			if position < 0 {
				return dst, newError(errNoPosition, "positional operator '.$' couldn't find a matching element in the array")
			}
			part := appendPart(nil, e.Value.Data, int64(position), int64(position)+1)
			if len(part) <= 5 {
				return dst, newError(errPositionMismatch, "positional operator '.$' element mismatch")
			}
			dst = append(dst, doc[e.Start:header]...)
			dst = append(dst, part...)
		case e.Value.Type == bsoncore.TypeEmbeddedDocument && len(names) > 1:
			dst = append(dst, doc[e.Start:header]...)
			var err error
			if dst, err = positioned(dst, e.Value.Data, names[1:], position); err != nil {
				return dst, err
			}
		default:
			dst = append(dst, doc[e.Start:e.End]...)
		}
	}
}
