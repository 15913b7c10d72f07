package plan

import (
	"bytes"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// hint is the way that the caller prescribes.
type hint struct {
	walk     bool // over all records
	backward bool
	index    int
	// The bounds of min() and max() as keys of the index, one of which may be that of all keys; nil: there are none.
	lower, upper []byte
}

// bounded reports whether there are bounds.
func (h *hint) bounded() bool { return h.lower != nil || h.upper != nil }

// The codes of errors about min() and max().
const (
	codeNoHint       = mongoerror.Code(51173)
	codeIncompatible = mongoerror.Code(51174)
	codeMinAboveMax  = mongoerror.Code(51175)
)

// refuse returns an error as the planner words it.
func (p *planner) refuse(code mongoerror.Code, why string) error {
	return mongoerror.New(code, "error processing query: ns=%s planner returned error :: caused by :: %s", p.c.Namespace, why)
}

// parseHint reads hint, min and max; nil when the planner is free.
func (p *planner) parseHint() (*hint, error) {
	q := p.q
	h := &hint{}
	bounded := !emptySpec(q.Min) || !emptySpec(q.Max)
	switch q.Hint.Type {
	case 0:
		if bounded {
			return nil, p.refuse(codeNoHint, "When using min()/max() a hint of which index to use must be provided")
		}
		return nil, nil
	case bsoncore.TypeString:
		for i := range p.indexes() {
			if h.index = p.number(i); p.index(h.index).Definition.Name == q.Hint.StringValue() {
				return h, p.parseBounds(h)
			}
		}
		return nil, p.refuse(mongoerror.BadValue, "hint provided does not correspond to an existing index")
	case bsoncore.TypeEmbeddedDocument:
		return p.hintOf(h, bsoncore.Document(q.Hint.Data), bounded)
	}
	return nil, mongoerror.New(mongoerror.FailedToParse, "Hint must be a string or an object")
}

// hintOf reads a hint that is a key pattern, or {$natural: 1}.
func (p *planner) hintOf(h *hint, pattern bsoncore.Document, bounded bool) (*hint, error) {
	if emptySpec(pattern) {
		if bounded {
			return nil, p.refuse(codeNoHint, "When using min()/max() a hint of which index to use must be provided")
		}
		return nil, nil
	}
	if ok, backward := natural(pattern); ok {
		if bounded {
			return nil, p.refuse(mongoerror.NoQueryExecutionPlans, "min and max are incompatible with $natural")
		}
		h.walk, h.backward = true, backward
		return h, nil
	}
	var matched []string
	for i := range p.indexes() {
		n := p.number(i)
		if d := p.index(n).Definition; same(d.Keys, pattern) {
			h.index, matched = n, append(matched, d.Name)
		}
	}
	switch len(matched) {
	case 0:
		return nil, p.refuse(mongoerror.BadValue, "hint provided does not correspond to an existing index")
	case 1:
		return h, p.parseBounds(h)
	}
	return nil, p.refuse(mongoerror.IndexNotFound, "Hint matched multiple indexes, must hint by index name. Matched: "+strings.Join(matched, " and "))
}

// hinted returns the accesses that the hint allows.
func (p *planner) hinted() ([]*access, error) {
	h := p.hint
	if h.walk {
		return []*access{p.walk(h.backward)}, nil
	}
	if h.bounded() {
		return []*access{p.between()}, nil
	}
	d := p.index(h.index).Definition
	found := p.leaves(p.all)
	out := p.scans(h.index, p.all, found)
	if len(out) == 0 && d.Components[0].Wildcard {
		out = p.scans(h.index, p.all, p.there(p.index(h.index), found))
	}
	if len(out) == 0 {
		if out = p.disjunctions(p.all, len(p.all), 0); len(out) > 0 {
			return out, nil
		}
	}
	if len(out) > 0 {
		p.estimate(out...)
		for _, a := range out {
			if m := p.merge([]*access{a}); m != nil {
				out = append(out, m)
			}
		}
		return out, nil
	}
	if d.Components[0].Wildcard {
		return nil, p.refuse(mongoerror.NoQueryExecutionPlans, "$hint: refusing to build whole-index solution, because it's a wildcard index")
	}
	// The caller may ask for an index that does not hold all documents: then the others are not found.
	return p.estimate(p.scan(h.index, p.all, byName(found), nil)), nil
}

// byName returns the leaves whose paths do not go by the position of elements. Entries of such a path tell of the element at that
// position, and a filter also of fields that have the number as their name, in any element: MongoDB decides by the former only where an
// index is bounded from its first component on.
func byName(found []leaf) []leaf {
	return slices.DeleteFunc(found, func(l leaf) bool { return numeric(l.path) })
}

// between returns the scan of the hinted index between min and max.
func (p *planner) between() *access {
	a := p.scan(p.hint.index, nil, nil, nil)
	a.scan.Bounds.Lower, a.scan.Bounds.Upper = p.hint.lower, p.hint.upper
	a.scan.Dedup = a.scan.Multikey != 0
	a.residual = p.all
	p.estimate(a)
	return a
}

// parseBounds reads min and max for the hinted index. What it refuses is refused whatever the filter asks.
func (p *planner) parseBounds(h *hint) error {
	d := p.index(h.index).Definition
	var ok, also bool
	h.lower, ok = bound(d, p.q.Min)
	h.upper, also = bound(d, p.q.Max)
	if !ok || !also {
		return p.refuse(codeIncompatible, "The index chosen is not compatible with min/max")
	}
	if !h.bounded() {
		return nil
	}
	if h.lower == nil {
		h.lower = outermost(d, bsoncore.TypeMinKey, bsoncore.TypeMaxKey)
	}
	if h.upper == nil {
		h.upper = outermost(d, bsoncore.TypeMaxKey, bsoncore.TypeMinKey)
	}
	if bytes.Compare(h.lower, h.upper) >= 0 {
		return p.refuse(codeMinAboveMax,
			"The value provided for min() does not come before the value provided for max() in the hinted index")
	}
	return nil
}

// outermost returns the first or the last key that there can be in an index, of the value that an ascending component has there and that
// of a descending one. They stand where the caller gave no bound: MongoDB ends before the last.
func outermost(d *index.Definition, ascending, descending bsoncore.Type) (key []byte) {
	for i := range d.Components {
		end := ascending
		if d.Components[i].Kind == index.Descending {
			end = descending
		}
		key = d.AppendValue(key, i, bsoncore.Value{Type: end})
	}
	return key
}

// bound encodes an argument of min or max, which names all the components in their order; nil for none.
func bound(d *index.Definition, spec bsoncore.Document) (key []byte, ok bool) {
	if emptySpec(spec) {
		return nil, true
	}
	elements, err := spec.Elements()
	if err != nil || len(elements) != len(d.Components) {
		return nil, false
	}
	for i, e := range elements {
		c := d.Components[i]
		if e.Key() != c.Path || !plain(c.Kind) || c.Wildcard {
			return nil, false
		}
		key = keyenc.Append(key, e.Value(), c.Kind == index.Descending, d.Collation)
	}
	return key, true
}
