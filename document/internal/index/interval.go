package index

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/query"
)

// Interval is a range of the values of one component, whatever the component's direction. Low and High are for people: what
// explain shows. What counts are the two cuts, which place the interval among encoded values.
type Interval struct {
	Low, High                   bsoncore.Value
	LowInclusive, HighInclusive bool
	lo, hi                      []byte // ascending encodings: lo is the first within, hi the first behind; a cut is never empty
	key                         bool   // Low and High are shown as keys: hashes, or strings under a collation
}

// Lo returns the lower cut: no ascending encoding of a value within sorts below it.
func (iv *Interval) Lo() []byte { return iv.lo }

// Hi returns the upper cut: every ascending encoding of a value within sorts below it.
func (iv *Interval) Hi() []byte { return iv.hi }

// IsPoint reports whether the interval is one value.
func (iv *Interval) IsPoint() bool {
	return iv.LowInclusive && iv.HighInclusive && bytes.Equal(keyenc.End(nil, iv.lo), iv.hi)
}

// Cuts returns the range [lo, hi) of a component's encodings in an index where the component has the direction.
func (iv *Interval) Cuts(descending bool) (lo, hi []byte) {
	if !descending {
		return iv.lo, iv.hi
	}
	return flip(iv.hi), flip(iv.lo)
}

// flip returns the place of a cut among inverted encodings: what was at or above it is below.
func flip(cut []byte) []byte {
	inverted := make([]byte, len(cut))
	for i, b := range cut {
		inverted[i] = ^b
	}
	return keyenc.End(inverted[:0], inverted)
}

// Bounds are the intervals that hold every value a condition matches: ascending, apart from each other. Exact tells that what lies
// within matches, too; otherwise the document has to be asked.
type Bounds struct {
	Intervals []Interval
	Exact     bool
}

// Space is what decides how the values of a component are encoded, and so what its intervals look like. The zero value is for an
// ordered component without a collation.
type Space struct {
	Collation *collation.Collation
	Hashed    bool
}

// append appends the ascending encoding of a value.
func (s Space) append(dst []byte, v bsoncore.Value) []byte {
	if s.Hashed {
		return appendHash(dst, v, s.Collation)
	}
	return keyenc.Append(dst, v, false, s.Collation)
}

// between makes the interval from low to high; ok is false when it is empty.
func (s Space) between(low, high bsoncore.Value, lowInclusive, highInclusive bool) (iv Interval, ok bool) {
	iv = Interval{Low: low, High: high, LowInclusive: lowInclusive, HighInclusive: highInclusive}
	iv.lo, iv.hi = s.append(nil, low), s.append(nil, high)
	if !lowInclusive {
		iv.lo = keyenc.End(iv.lo[:0], iv.lo)
	}
	if highInclusive {
		iv.hi = keyenc.End(iv.hi[:0], iv.hi)
	}
	return iv, bytes.Compare(iv.lo, iv.hi) < 0
}

func (s Space) point(v bsoncore.Value) Interval {
	iv, _ := s.between(v, v, true, true)
	iv.key = s.Hashed || s.Collation != nil && v.Type == bsoncore.TypeString
	return iv
}

// All returns the interval of all values.
func (s Space) All() Bounds {
	all, _ := Space{}.between(minKey(), maxKey(), true, true)
	return Bounds{Intervals: []Interval{all}, Exact: true}
}

// all is All for conditions of which the index knows nothing.
func (s Space) all() Bounds {
	b := s.All()
	b.Exact = false
	return b
}

// None returns no interval: no value matches.
func (s Space) None() Bounds { return Bounds{Exact: true} }

// Eq returns what {$eq: v} may match. Null matches null, missing and undefined values, but not the empty array, which is in an index
// as undefined; an array matches as a whole, and by its first element where arrays are in the index element by element.
func (s Space) Eq(v bsoncore.Value) Bounds {
	switch v.Type {
	case 0, bsoncore.TypeNull, bsoncore.TypeUndefined:
		return s.Null()
	case bsoncore.TypeArray:
		return s.eqArray(v)
	}
	return Bounds{Intervals: []Interval{s.point(v)}, Exact: !s.Hashed}
}

// Null returns what {$eq: null} may match: also missing and undefined values.
func (s Space) Null() Bounds {
	return Bounds{Intervals: s.sorted(undefined(), null())}
}

func (s Space) eqArray(v bsoncore.Value) Bounds {
	if s.Hashed {
		return s.all()
	}
	first, err := bsoncore.Array(v.Data).IndexErr(0)
	if err != nil {
		return Bounds{Intervals: s.sorted(undefined(), v)}
	}
	element := first
	if element.Type == 0 {
		element = undefined()
	}
	return Bounds{Intervals: s.sorted(element, v)}
}

// sorted makes points of values.
func (s Space) sorted(values ...bsoncore.Value) []Interval {
	var list []Interval
	for _, v := range values {
		list = Union(list, []Interval{s.point(v)})
	}
	return list
}

// In returns what {$in: values} may match.
func (s Space) In(values []bsoncore.Value) Bounds {
	b := s.None()
	var list []Interval
	for _, v := range values {
		one := s.Eq(v)
		b.Exact = b.Exact && one.Exact
		list = append(list, one.Intervals...)
	}
	b.Intervals = merge(list)
	return b
}

// Compare returns what {op: v} may match: values of the class of v only.
func (s Space) Compare(op query.Op, v bsoncore.Value) Bounds {
	if op == query.Eq {
		return s.Eq(v)
	}
	if s.Hashed {
		return s.all()
	}
	return s.compare(op, v)
}

// Prefix returns the strings that begin with prefix; under a collation all of them, which is not exact.
func (s Space) Prefix(prefix string) Bounds {
	if s.Hashed {
		return s.all()
	}
	if prefix == "" || s.Collation != nil {
		b := s.class(bsoncore.TypeString)
		b.Exact = prefix == ""
		return b
	}
	next := keyenc.End(nil, []byte(prefix))
	high := emptyObject()
	if next != nil {
		high = stringValue(string(next))
	}
	iv, _ := s.between(stringValue(prefix), high, true, false)
	return Bounds{Intervals: []Interval{iv}, Exact: true}
}

// Complement returns what lies outside of the intervals, for $ne and the like. It is exact for intervals that are.
func (s Space) Complement(list []Interval) []Interval {
	all := s.All().Intervals[0]
	var out []Interval
	rest := all
	for _, iv := range list {
		gap := rest
		gap.High, gap.HighInclusive, gap.hi = iv.Low, !iv.LowInclusive, iv.lo
		if bytes.Compare(gap.lo, gap.hi) < 0 {
			out = append(out, gap)
		}
		rest.Low, rest.LowInclusive, rest.lo = iv.High, !iv.HighInclusive, iv.hi
		rest.key = iv.key
	}
	if bytes.Compare(rest.lo, rest.hi) < 0 {
		out = append(out, rest)
	}
	return out
}

// Union returns what is in a or in b, both as in Bounds.
func Union(a, b []Interval) []Interval {
	return merge(slices.Concat(a, b))
}

// merge sorts intervals and joins those that overlap or touch. The list is changed.
func merge(list []Interval) []Interval {
	slices.SortFunc(list, func(a, b Interval) int { return bytes.Compare(a.lo, b.lo) })
	out := list[:0]
	for _, iv := range list {
		if n := len(out); n > 0 && bytes.Compare(iv.lo, out[n-1].hi) <= 0 {
			last := &out[n-1]
			if bytes.Compare(iv.hi, last.hi) > 0 {
				last.High, last.HighInclusive, last.hi = iv.High, iv.HighInclusive, iv.hi
			}
			continue
		}
		out = append(out, iv)
	}
	return out
}

// Intersect returns what is in a and in b, both as in Bounds.
func Intersect(a, b []Interval) []Interval {
	var out []Interval
	for i, j := 0, 0; i < len(a) && j < len(b); {
		iv := a[i]
		if bytes.Compare(b[j].lo, iv.lo) > 0 {
			iv.Low, iv.LowInclusive, iv.lo, iv.key = b[j].Low, b[j].LowInclusive, b[j].lo, b[j].key
		}
		if bytes.Compare(b[j].hi, iv.hi) < 0 {
			iv.High, iv.HighInclusive, iv.hi = b[j].High, b[j].HighInclusive, b[j].hi
		}
		if bytes.Compare(iv.lo, iv.hi) < 0 {
			out = append(out, iv)
		}
		if bytes.Compare(a[i].hi, b[j].hi) < 0 {
			i++
		} else {
			j++
		}
	}
	return out
}
