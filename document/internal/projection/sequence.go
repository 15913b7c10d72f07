package projection

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/path"
)

// Sequence is projections that are applied one after the other. A field that one of them removes and a later one sets comes where it was,
// as long as only exclusions and $addFields are between them: MongoDB's documents remember the places of what was in them. Immutable.
type Sequence struct {
	steps  []*Projection
	places *places // nil: none is to be remembered
	past   *past
}

// past is what the steps of a sequence do to fields, by their dotted paths. The sequence that goes on with one takes it over.
type past struct {
	steps int                 // that are taken in
	gone  map[string]bool     // what some step removes, or computes, as that may be missing
	again map[string][]string // what was gone when a later step set it
	above map[string]bool     // the paths of the documents around that
}

// places is the levels of a document at which fields may have lost their places.
type places struct {
	here  bool // at this level
	below map[string]*places
}

// Then returns the sequence with another step; ok is false when it cannot be continued because nothing of the documents before it stays.
// The nil sequence has no steps.
func (s *Sequence) Then(p *Projection) (longer *Sequence, ok bool) {
	if p == nil || p.kind != exclusion && p.kind != addition {
		return nil, false
	}
	longer = new(Sequence)
	if s != nil {
		longer.steps, longer.places, longer.past = slices.Clone(s.steps), s.places, s.past
	}
	if longer.past == nil || longer.past.steps != len(longer.steps) { // another sequence goes on with it already
		longer.past = &past{gone: map[string]bool{}, again: map[string][]string{}, above: map[string]bool{}}
		for _, step := range longer.steps {
			longer.past.take(step)
		}
	}
	longer.steps = append(longer.steps, p)
	if longer.past.take(p) {
		longer.remember()
	}
	return longer, true
}

// Remembers reports whether applying the steps one by one may give another order of fields.
func (s *Sequence) Remembers() bool { return s.places != nil }

// take takes in another step, and reports whether that may change which places are to be remembered.
func (h *past) take(p *Projection) (news bool) {
	h.steps++
	if p.kind == addition && len(h.gone) > 0 {
		p.tree.leaves(nil, func(path []string, _ *node) {
			for n := 1; n <= len(path); n++ {
				name := joined(path[:n])
				if _, known := h.again[name]; known || !h.gone[name] {
					continue
				}
				h.again[name], news = slices.Clone(path[:n]), true
				for above := 1; above < n; above++ {
					h.above[joined(path[:above])] = true
				}
			}
		})
	}
	p.tree.leaves(nil, func(path []string, _ *node) {
		name := joined(path)
		news = news || h.above[name] && !h.gone[name]
		h.gone[name] = true
	})
	return news
}

// remember finds the places of the paths that one step may remove and a later one sets.
func (s *Sequence) remember() {
	s.places = nil
	for _, path := range s.past.again {
		parent := path[:len(path)-1]
		fresh := false // the document that the field is in is another one
		for n := 1; n <= len(parent); n++ {
			fresh = fresh || s.past.gone[joined(parent[:n])]
		}
		if !fresh {
			s.remembered(parent)
		}
	}
}

func (s *Sequence) remembered(parent []string) {
	if s.places == nil {
		s.places = new(places)
	}
	at := s.places
	for _, name := range parent {
		next := at.below[name]
		if next == nil {
			next = new(places)
			if at.below == nil {
				at.below = map[string]*places{}
			}
			at.below[name] = next
		}
		at = next
	}
	at.here = true
}

// Apply appends what the steps make of a document.
func (s *Sequence) Apply(dst []byte, doc bsoncore.Document) ([]byte, error) {
	now := doc
	for i, p := range s.steps {
		if i == len(s.steps)-1 && s.places == nil {
			return p.Apply(dst, now)
		}
		var err error
		if now, err = p.Apply(nil, now); err != nil {
			return dst, err
		}
	}
	if s.places == nil {
		return append(dst, now...), nil
	}
	return s.places.document(dst, doc, now), nil
}

// document appends the document after with the fields that were in before where they were, and others behind them.
func (p *places) document(dst, before, after []byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	was, is := finder{doc: before}, finder{doc: after}
	if p.here {
		for s := path.PlacesOf(before); ; {
			old, ok := s.Next()
			if !ok {
				break
			}
			if e, ok := is.find(old.Name); ok {
				dst = p.element(dst, old.Value, after[e.Start:e.End], e.Value, e.Name)
			}
		}
	}
	for s := path.PlacesOf(after); ; {
		e, ok := s.Next()
		if !ok {
			return finish(dst, start)
		}
		old, had := was.find(e.Name)
		if !had || !p.here {
			dst = p.element(dst, old.Value, after[e.Start:e.End], e.Value, e.Name)
		}
	}
}

// finder finds the elements of a document: by a map when going over them has become long.
type finder struct {
	doc    []byte
	passed int // elements
	byName map[string]path.Placed
}

// manyPassed is how many elements a finder goes over before it makes a map.
const manyPassed = 1024

func (f *finder) find(name []byte) (e path.Placed, ok bool) {
	if f.byName != nil {
		e, ok = f.byName[string(name)]
		return e, ok
	}
	if f.passed > manyPassed {
		f.byName = map[string]path.Placed{}
		for s := path.PlacesOf(f.doc); ; {
			if e, ok = s.Next(); !ok {
				return f.find(name)
			}
			f.byName[string(e.Name)] = e
		}
	}
	for s := path.PlacesOf(f.doc); ; f.passed++ {
		if e, ok = s.Next(); !ok || string(e.Name) == string(name) {
			return e, ok
		}
	}
}

// element appends an element, with the places within it.
func (p *places) element(dst []byte, before bsoncore.Value, whole []byte, after bsoncore.Value, name []byte) []byte {
	below := p.below[string(name)]
	if below == nil || before.Type != after.Type {
		return append(dst, whole...)
	}
	dst = append(dst, whole[:len(whole)-len(after.Data)]...)
	return below.value(dst, before, after)
}

// value appends the bytes of a value; both are of one type.
func (p *places) value(dst []byte, before, after bsoncore.Value) []byte {
	switch after.Type {
	case bsoncore.TypeEmbeddedDocument:
		return p.document(dst, before.Data, after.Data)
	case bsoncore.TypeArray:
		return p.array(dst, before.Data, after.Data)
	}
	return append(dst, after.Data...)
}

func (p *places) array(dst, before, after []byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	old := path.PlacesOf(before)
	for s := path.PlacesOf(after); ; {
		e, ok := s.Next()
		if !ok {
			return finish(dst, start)
		}
		dst = append(dst, after[e.Start:e.End-len(e.Value.Data)]...)
		if o, ok := old.Next(); ok && o.Value.Type == e.Value.Type {
			dst = p.value(dst, o.Value, e.Value)
			continue
		}
		dst = append(dst, e.Value.Data...)
	}
}
