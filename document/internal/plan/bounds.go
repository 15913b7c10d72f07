package plan

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
)

// Range is a range [Lo, Hi) of encoded values, or of entries; a nil end is open.
type Range struct{ Lo, Hi []byte }

// Bounds are the entries of an index that a scan looks at: those each part of which lies in one of its ranges.
type Bounds struct {
	// Fields are the intervals of each component, in ascending order whatever the order of the index.
	Fields [][]index.Interval
	// Ranges are the same as encoded, in the order of the index: for each encoded value of an entry, of which a wildcard component has
	// two, its path and its value.
	Ranges [][]Range
	// Descending tells which of the encoded values are inverted.
	Descending []bool
	// Paths are the intervals of the path of a wildcard component.
	Paths []index.Interval
	// Lower and Upper bound whole entries beside that, as min() and max() ask; nil: open.
	Lower, Upper []byte

	points []bool // which of the ranges are nothing but points
}

// all returns the interval of all values.
func all() []index.Interval { return index.Space{}.All().Intervals }

// full reports whether the list is the interval of all values.
func full(list []index.Interval) bool {
	return len(list) == 1 && list[0].LowInclusive && list[0].HighInclusive &&
		list[0].Low.Type == bsoncore.TypeMinKey && list[0].High.Type == bsoncore.TypeMaxKey
}

// points reports whether the list holds nothing but points.
func points(list []index.Interval) bool {
	for i := range list {
		if !list[i].IsPoint() {
			return false
		}
	}
	return true
}

// newBounds encodes intervals for an index. paths are those of its wildcard component, if it has one.
func newBounds(d *index.Definition, fields [][]index.Interval, paths []index.Interval) *Bounds {
	b := &Bounds{Fields: fields, Paths: paths}
	for i, list := range fields {
		if d.Components[i].Wildcard {
			b.add(paths, false)
		}
		b.add(list, d.Components[i].Kind == index.Descending)
	}
	return b
}

// add appends the ranges of one encoded value.
func (b *Bounds) add(list []index.Interval, descending bool) {
	b.Descending = append(b.Descending, descending)
	if full(list) {
		b.Ranges, b.points = append(b.Ranges, []Range{{}}), append(b.points, false)
		return
	}
	out := make([]Range, len(list))
	for i := range list {
		lo, hi := list[i].Cuts(descending)
		if n := i; descending {
			n = len(list) - 1 - i
			out[n] = Range{lo, hi}
		} else {
			out[n] = Range{lo, hi}
		}
	}
	b.Ranges, b.points = append(b.Ranges, out), append(b.points, points(list))
}

// Points reports whether every part is held to points, so that each combination is one value of the whole key.
func (b *Bounds) Points() bool {
	for i, list := range b.Ranges {
		if len(list) == 0 || !b.points[i] {
			return false
		}
	}
	return b.Lower == nil && b.Upper == nil
}

// Values returns how many values of the whole key there are, where every part is held to points.
func (b *Bounds) Values() float64 {
	n := 1.0
	for _, list := range b.Ranges {
		n *= float64(len(list))
	}
	return n
}

// Single reports whether they are one value of the whole key.
func (b *Bounds) Single() bool {
	for i, list := range b.Ranges {
		if len(list) != 1 || !b.points[i] {
			return false
		}
	}
	return b.Lower == nil && b.Upper == nil
}

// Empty reports whether nothing can be in them.
func (b *Bounds) Empty() bool {
	for _, list := range b.Ranges {
		if len(list) == 0 {
			return true
		}
	}
	return false
}

// unbounded reports whether they are all entries.
func (b *Bounds) unbounded() bool {
	for _, list := range b.Ranges {
		if !open(list) {
			return false
		}
	}
	return b.Lower == nil && b.Upper == nil
}

// Cover returns at most limit ranges of entries, in order, that hold all the entries in the bounds. exact tells that they hold no
// others.
func (b *Bounds) Cover(limit int) (list []Range, exact bool) {
	if b.Empty() {
		return nil, true
	}
	list = []Range{{}}
	i := 0
	for ; i < len(b.Ranges) && b.points[i] && len(b.Ranges[i]) <= limit/len(list); i++ {
		list = extend(list, b.Ranges[i])
	}
	exact = b.Lower == nil && b.Upper == nil
	if i < len(b.Ranges) && !open(b.Ranges[i]) {
		ranges := b.Ranges[i]
		if len(ranges) > limit/len(list) {
			ranges, exact = []Range{{ranges[0].Lo, ranges[len(ranges)-1].Hi}}, false
		}
		list = extend(list, ranges)
		i++
	}
	for ; i < len(b.Ranges); i++ {
		exact = exact && open(b.Ranges[i])
	}
	return b.clip(list), exact
}

// Sample returns at most limit ranges of entries, in order, that stand for all the entries in the bounds: there are about times as many
// as in the list. exact tells that the list leaves no part of the bounds out of account.
func (b *Bounds) Sample(limit int) (list []Range, times float64, exact bool) {
	if b.Empty() {
		return nil, 1, true
	}
	list, times = []Range{{}}, 1
	i := 0
	for points := true; points && i < len(b.Ranges) && !open(b.Ranges[i]); i++ {
		ranges := spread(b.Ranges[i], max(1, limit/len(list)))
		list, times = extend(list, ranges), times*float64(len(b.Ranges[i]))/float64(len(ranges))
		points = b.points[i]
	}
	exact = b.Lower == nil && b.Upper == nil
	for ; i < len(b.Ranges); i++ {
		exact = exact && open(b.Ranges[i])
	}
	return b.clip(list), times, exact
}

// spread returns at most n of some ranges, as far from each other.
func spread(ranges []Range, n int) []Range {
	if len(ranges) <= n {
		return ranges
	}
	out := make([]Range, n)
	for i := range out {
		out[i] = ranges[(2*i+1)*len(ranges)/(2*n)]
	}
	return out
}

// clip cuts what Lower and Upper leave out.
func (b *Bounds) clip(list []Range) []Range {
	out := list[:0]
	for _, r := range list {
		if b.Lower != nil && bytes.Compare(r.Lo, b.Lower) < 0 {
			r.Lo = b.Lower
		}
		if b.Upper != nil && (r.Hi == nil || bytes.Compare(r.Hi, b.Upper) > 0) {
			r.Hi = b.Upper
		}
		if r.Hi == nil || bytes.Compare(r.Lo, r.Hi) < 0 {
			out = append(out, r)
		}
	}
	return out
}

func open(list []Range) bool { return len(list) == 1 && list[0].Lo == nil && list[0].Hi == nil }

// extend returns the ranges of entries that begin with one of prefixes, each of which is that of all that begin with its Lo, and go on
// in one of ranges.
func extend(prefixes, ranges []Range) []Range {
	out := make([]Range, 0, len(prefixes)*len(ranges))
	for _, p := range prefixes {
		for _, r := range ranges {
			e := Range{Lo: append(bytes.Clone(p.Lo), r.Lo...), Hi: p.Hi}
			if r.Hi != nil {
				e.Hi = append(bytes.Clone(p.Lo), r.Hi...)
			}
			out = append(out, e)
		}
	}
	return out
}
