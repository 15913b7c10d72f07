package plan

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/number"
)

// key is a field of a sort order.
type key struct {
	path       string
	descending bool
}

// sortKeys returns the fields of a sort order; ok is false for what no index can give, such as {$meta: ...}.
func sortKeys(sort bsoncore.Document) (keys []key, ok bool) {
	elements, err := sort.Elements()
	if err != nil {
		return nil, false
	}
	for _, e := range elements {
		n, ok := e.Value().AsInt64OK()
		if !ok || n == 0 {
			return nil, false
		}
		keys = append(keys, key{e.Key(), n < 0})
	}
	return keys, true
}

// natural reports whether a sort order or hint is {$natural: 1}, and whether it goes backward.
func natural(d bsoncore.Document) (ok, backward bool) {
	v, err := d.LookupErr("$natural")
	if err != nil {
		return false, false
	}
	direction, _ := number.Truncated(v) // of any type; none where it is no number
	return true, direction < 0
}

// provides reports whether a walk over the bounds gives records in an order, and whether it has to go backward for it.
func (s *IndexScan) provides(keys []key) (ok, backward bool) {
	d := s.Definition
	i, decided := 0, false
	for _, k := range keys {
		if s.constant(k.path) {
			continue
		}
		for i < len(d.Components) && d.Components[i].Path != k.path && s.fixed(i) {
			i++
		}
		if i == len(d.Components) || d.Components[i].Path != k.path || !s.ordered(i) {
			return false, false
		}
		back := (d.Components[i].Kind == index.Descending) != k.descending
		if decided && back != backward {
			return false, false
		}
		decided, backward = true, back
		i++
	}
	return true, backward
}

// constant reports whether all records in the bounds have one value at path.
func (s *IndexScan) constant(path string) bool {
	for i, c := range s.Definition.Components {
		if c.Path == path && !c.Wildcard && s.Multikey>>i&1 == 0 && plain(c.Kind) && s.fixed(i) {
			return true
		}
	}
	return false
}

// fixed reports whether the bounds hold component i to one value.
func (s *IndexScan) fixed(i int) bool {
	list := s.Bounds.Fields[i]
	return len(list) == 1 && list[0].IsPoint()
}

// repeats reports whether a record may have several entries in the bounds: it has one for each element of an array, and those differ
// in components that are not held to one value.
func (s *IndexScan) repeats() bool {
	for i := range s.Definition.Components {
		if s.Multikey>>i&1 != 0 && !s.fixed(i) {
			return true
		}
	}
	return false
}

// ordered reports whether the entries come in the order of component i's values as sorting sees them: that of an array is the least
// or greatest of its elements, so none of them must be out of bounds. Of elements without the field an index with places has nothing.
func (s *IndexScan) ordered(i int) bool {
	if c := s.Definition.Components[i]; !plain(c.Kind) || c.Wildcard {
		return false
	}
	if s.Multikey>>i&1 == 0 {
		return true
	}
	if hasSphere(s.Definition) || s.Bounds.Lower != nil || s.Bounds.Upper != nil {
		return false
	}
	for n, list := range s.Bounds.Fields {
		if s.Multikey>>n&1 != 0 && !full(list) {
			return false
		}
	}
	return true
}

// plain reports whether a component's entries are values in their order.
func plain(k index.Kind) bool { return k == index.Ascending || k == index.Descending }

// explode returns scans of single points that together are s and each of which gives an order: those of the first components, where
// they are held to points. nil when there is no such, or there would be too many.
func (s *IndexScan) explode(keys []key) []*IndexScan {
	prefixes := [][][]index.Interval{nil}
	for i := 0; i < len(s.Bounds.Fields); i++ {
		list := s.Bounds.Fields[i]
		if len(list) == 0 || !points(list) || len(list) > maxExploded/len(prefixes) {
			break
		}
		var next [][][]index.Interval
		for _, p := range prefixes {
			for _, in := range list {
				next = append(next, append(p[:len(p):len(p)], []index.Interval{in}))
			}
		}
		prefixes = next
		if len(prefixes) < 2 {
			continue
		}
		if out := s.exploded(prefixes, keys); out != nil {
			return out
		}
	}
	return nil
}

// exploded returns a scan for each prefix, if each gives the order.
func (s *IndexScan) exploded(prefixes [][][]index.Interval, keys []key) []*IndexScan {
	var out []*IndexScan
	for _, p := range prefixes {
		one := *s
		fields := append(p[:len(p):len(p)], s.Bounds.Fields[len(p):]...)
		one.Bounds = newBounds(s.Definition, fields, s.Bounds.Paths)
		ok, backward := one.provides(keys)
		if !ok || !one.holds(keys) {
			return nil
		}
		one.Backward = backward
		one.Dedup = one.repeats() || s.Dedup && s.Path == "" && len(s.Bounds.Paths) > 0
		out = append(out, &one)
	}
	return out
}

// holds reports whether the entries have all the values of an order, so that those of several scans can be merged.
func (s *IndexScan) holds(keys []key) bool {
	for _, k := range keys {
		if s.Component(k.path) < 0 {
			return false
		}
	}
	return true
}

// Component returns the number of the component that has the values of path in their order; -1 when there is none.
func (s *IndexScan) Component(path string) int {
	for i, c := range s.Definition.Components {
		if c.Path == path && plain(c.Kind) && !c.Wildcard {
			return i
		}
	}
	return -1
}

// Part returns which of the encoded values of an entry is that of a component: a wildcard has its path in front of its value.
func (s *IndexScan) Part(component int) int {
	part := component
	for _, c := range s.Definition.Components[:component+1] {
		if c.Wildcard {
			part++
		}
	}
	return part
}
