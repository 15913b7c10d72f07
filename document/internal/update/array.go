package update

import (
	"math/rand/v2"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
)

// pushClauses are what stands beside $each in $push.
type pushClauses struct {
	sliced, positioned bool
	slice, position    int64
	sort               []sortKey // nil: no sort
}

// sortKey is a component of $sort; no path is the element itself.
type sortKey struct {
	path       []string
	descending bool
}

// pushInto is $push.
func (r *run) pushInto(dst []byte, op *operation, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	var values []bsoncore.Value
	switch old.Type {
	case 0:
	case bsoncore.TypeArray:
		if op.push == nil && len(op.values) > 0 {
			return r.append(dst, op, old)
		}
		values = elementsOf(old)
	default:
		return dst, 0, mongoerror.New(mongoerror.BadValue, "The field '%s' must be an array but is of type %s in document %s",
			r.pathTo(nil), mongoerror.TypeName(old.Type), r.identity("{no id}", true))
	}
	count := len(values)
	at := count
	c := op.push
	if c == nil {
		c = new(pushClauses)
	}
	if c.positioned && c.position >= 0 {
		at = int(min(c.position, int64(count)))
	} else if c.positioned {
		at = int(max(int64(count)+c.position, 0))
	}
	values = slices.Insert(values, at, op.values...)
	if c.sort != nil {
		r.sort(values, c.sort)
	}
	if n := int64(len(values)); c.sliced && c.slice >= 0 {
		values = values[:min(c.slice, n)]
	} else if c.sliced {
		values = values[max(n+c.slice, 0):]
	}
	if old.Type != 0 && len(op.values) == 0 && (c.sort == nil || count == 0) && len(values) == count {
		return append(dst, old.Data...), old.Type, nil
	}
	return r.array(dst, values, op.depth)
}

// append is $push at the end of an array, the usual case: the array is copied as it is.
func (r *run) append(dst []byte, op *operation, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	if len(r.path)+1+op.depth > maxDepth {
		return dst, 0, tooDeep()
	}
	count := 0
	for s := path.PlacesOf(old.Data); ; count++ {
		if _, ok := s.Next(); !ok {
			break
		}
	}
	start := len(dst)
	dst = append(dst, old.Data[:len(old.Data)-1]...)
	for i, v := range op.values {
		dst = appendItem(dst, count+i, v)
	}
	r.changed = true
	return finish(dst, start), old.Type, nil
}

// array appends an array that is new at its place; depth is that of the deepest new element.
func (r *run) array(dst []byte, values []bsoncore.Value, depth int) ([]byte, bsoncore.Type, error) {
	if len(r.path)+1+depth > maxDepth {
		return dst, 0, tooDeep()
	}
	r.changed = true
	return appendArray(dst, values), bsoncore.TypeArray, nil
}

// sort sorts the elements of an array by their fields, or as they are.
func (r *run) sort(values []bsoncore.Value, keys []sortKey) {
	slices.SortStableFunc(values, func(a, b bsoncore.Value) int {
		for _, k := range keys {
			c := order.Compare(sorted(a, k.path), sorted(b, k.path), r.u.collation)
			if c != 0 && k.descending {
				return -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
}

// sorted returns the value by which an element of an array is sorted: null when it has no such field.
func sorted(v bsoncore.Value, path []string) bsoncore.Value {
	for i, name := range path {
		if i == 0 && v.Type != bsoncore.TypeEmbeddedDocument {
			return bsoncore.Value{Type: bsoncore.TypeNull}
		}
		if v, _ = member(v, name); v.Type == 0 {
			return bsoncore.Value{Type: bsoncore.TypeNull}
		}
	}
	return v
}

// addToSet is $addToSet.
func (r *run) addToSet(dst []byte, op *operation, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	var values []bsoncore.Value
	switch old.Type {
	case 0:
	case bsoncore.TypeArray:
		values = elementsOf(old)
	default:
		return dst, 0, mongoerror.New(mongoerror.BadValue,
			"Cannot apply $addToSet to non-array field. Field named '%s' has non-array type %s", r.here(), mongoerror.TypeName(old.Type))
	}
	count := len(values)
	set := newSet(values, int64(count+len(op.values))*int64(len(op.values)), r.u.collation)
	for _, v := range op.values {
		if !set.has(v) {
			values = append(values, v)
			set.add(v)
		}
	}
	if old.Type != 0 && len(values) == count {
		return append(dst, old.Data...), old.Type, nil
	}
	return r.array(dst, values, op.depth)
}

// set is values among which others are looked for: by their hashes, where it would take long to compare each with all.
type set struct {
	values    []bsoncore.Value
	collation *collation.Collation
	seed      uint64
	byHash    map[uint64][]bsoncore.Value
}

// fewCompared is how many comparisons are made rather than hashes.
const fewCompared = 1024

// newSet returns a set of values. comparisons is how many there would be.
func newSet(values []bsoncore.Value, comparisons int64, c *collation.Collation) *set {
	s := &set{collation: c}
	if comparisons <= fewCompared {
		s.values = slices.Clip(values)
		return s
	}
	s.seed, s.byHash = rand.Uint64(), make(map[uint64][]bsoncore.Value, len(values))
	for _, v := range values {
		s.add(v)
	}
	return s
}

func (s *set) add(v bsoncore.Value) {
	if s.byHash == nil {
		s.values = append(s.values, v)
		return
	}
	hash := order.Hash(s.seed, v, s.collation)
	s.byHash[hash] = append(s.byHash[hash], v)
}

func (s *set) has(v bsoncore.Value) bool {
	among := s.values
	if s.byHash != nil {
		among = s.byHash[order.Hash(s.seed, v, s.collation)]
	}
	return slices.ContainsFunc(among, func(o bsoncore.Value) bool { return order.Equal(o, v, s.collation) })
}

// remove is $pop, $pull and $pullAll.
func (r *run) remove(dst []byte, op *operation, old bsoncore.Value) ([]byte, bsoncore.Type, error) {
	if old.Type == 0 {
		return dst, 0, nil
	}
	if old.Type != bsoncore.TypeArray && op.kind == opPop {
		return dst, 0, mongoerror.New(mongoerror.TypeMismatch, "Path '%s' contains an element of non-array type '%s'",
			r.pathTo(nil), mongoerror.TypeName(old.Type))
	}
	if old.Type != bsoncore.TypeArray {
		return dst, 0, mongoerror.New(mongoerror.BadValue, "Cannot apply $pull to a non-array value")
	}
	values := elementsOf(old)
	kept := values[:0]
	var set *set
	if op.kind == opPullAll {
		set = newSet(op.values, int64(len(op.values))*int64(len(values)), r.u.collation)
	}
	for i, v := range values {
		gone := false
		var err error
		switch {
		case op.kind == opPop && op.first:
			gone = i == 0
		case op.kind == opPop:
			gone = i == len(values)-1
		case op.kind == opPullAll:
			gone = set.has(v)
		default:
			gone, err = op.pull.match(v, r.u.collation)
		}
		if err != nil {
			return dst, 0, err
		}
		if !gone {
			kept = append(kept, v)
		}
	}
	if len(kept) == len(values) {
		return append(dst, old.Data...), old.Type, nil
	}
	return r.array(dst, kept, 0)
}
