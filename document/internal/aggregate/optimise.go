package aggregate

import (
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/query"
)

// maxPasses bounds the optimiser on long pipelines; what is not moved then stays correct.
const maxPasses = 100

// optimise reorders and merges steps without changing the result: filters and limits go to the front, where the collection can
// answer them.
func optimise(steps []step) []step {
	steps = slices.Clone(steps)
	for range maxPasses {
		changed := false
		for i := 0; i+1 < len(steps); i++ {
			if replaced, ok := exchange(&steps[i], &steps[i+1]); ok {
				steps = slices.Replace(steps, i, i+2, replaced...)
				changed = true
			}
		}
		if !changed {
			break
		}
	}
	limitSorts(steps)
	return steps
}

// exchange returns what two neighbours may be replaced by.
func exchange(a, b *step) ([]step, bool) {
	switch second := b.stage.(type) {
	case *matchStage:
		return exchangeMatch(a, b, second)
	case *limitStage:
		return exchangeLimit(a, b, second)
	case *skipStage:
		switch first := a.stage.(type) {
		case *skipStage:
			if first.n <= math.MaxInt64-second.n {
				return []step{skipStep(first.n + second.n)}, true
			}
		case *projectStage:
			return []step{*b, *a}, true
		}
	case *sortStage:
		if _, ok := a.stage.(*sortStage); ok { // as in MongoDB the first one does not even order what is equal
			return []step{*b}, true
		}
	case *unwindStage:
		if first, ok := a.stage.(*lookupStage); ok && first.unwind == nil && slices.Equal(first.as, second.path) {
			joined := *first
			joined.unwind = second
			return []step{{a.name, unwindingSpec(a.spec, b.spec), &joined}}, true
		}
	}
	return nil, false
}

// unwindingSpec is how explain shows a $lookup that unwinds.
func unwindingSpec(lookup, unwind value) value {
	if isString(unwind) {
		unwind = object("path", unwind)
	}
	b, start := begin(nil)
	b = append(b, lookup.Data[4:len(lookup.Data)-1]...)
	return documentValue(end(appendField(b, "unwinding", unwind), start))
}

func exchangeLimit(a, b *step, second *limitStage) ([]step, bool) {
	switch first := a.stage.(type) {
	case *limitStage:
		return []step{limitStep(min(first.n, second.n))}, true
	case *projectStage:
		return []step{*b, *a}, true
	}
	return nil, false
}

func limitStep(n int64) step { return step{"$limit", int64Value(n), &limitStage{n}} }
func skipStep(n int64) step  { return step{"$skip", int64Value(n), &skipStage{n}} }

// limitSorts tells sorts how many of their documents will be asked for.
func limitSorts(steps []step) {
	for i := range steps {
		s, ok := steps[i].stage.(*sortStage)
		if !ok {
			continue
		}
		skipped := int64(0)
		for _, next := range steps[i+1:] {
			if skip, ok := next.stage.(*skipStage); ok && skip.n <= math.MaxInt64-skipped {
				skipped += skip.n
				continue
			}
			if limit, ok := next.stage.(*limitStage); ok && limit.n <= math.MaxInt64-skipped {
				limited := *s
				limited.limit = limit.n + skipped
				steps[i].stage = &limited
				steps[i].spec = object("sortKey", documentValue(s.spec), "limit", int64Value(limited.limit))
			}
			break
		}
	}
}

// exchangeMatch merges filters, and moves those that do not depend on a stage before it.
func exchangeMatch(a, b *step, second *matchStage) ([]step, bool) {
	switch first := a.stage.(type) {
	case *matchStage:
		both := fields("$and", array(documentValue(first.spec), documentValue(second.spec)))
		return matchSteps(both, second)
	case *sortStage:
		if first.limit == 0 {
			return []step{*b, *a}, true
		}
		return nil, false
	}
	touched, ok := touches(a)
	if !ok {
		return nil, false
	}
	var moving, staying [][]byte
	elements, err := second.spec.Elements()
	if err != nil {
		return nil, false
	}
	for _, e := range elements {
		if !separable(e.Key()) {
			return nil, false
		}
		if independent(fieldsOf(e, second), touched) {
			moving = append(moving, e)
		} else {
			staying = append(staying, e)
		}
	}
	if len(moving) == 0 {
		return nil, false
	}
	before, ok := matchSteps(documentOf(moving), second)
	if !ok {
		return nil, false
	}
	list := append(before, *a)
	if len(staying) > 0 {
		after, ok := matchSteps(documentOf(staying), second)
		if !ok {
			return nil, false
		}
		list = append(list, after...)
	}
	return list, true
}

// separable reports whether a condition means the same without those beside it.
func separable(key string) bool {
	return !strings.HasPrefix(key, "$") || key == "$and" || key == "$or" || key == "$nor" || key == "$expr"
}

func documentOf(elements [][]byte) document {
	b, start := begin(nil)
	for _, e := range elements {
		b = append(b, e...)
	}
	return end(b, start)
}

// matchSteps parses a filter that was made of parts of others.
func matchSteps(spec document, like *matchStage) ([]step, bool) {
	m, err := newMatch(spec, like.o)
	if err != nil {
		return nil, false
	}
	return []step{{"$match", documentValue(spec), m}}, true
}

// fieldsOf returns the top-level fields that a condition depends on; nil means any.
func fieldsOf(e bsoncore.Element, m *matchStage) []string {
	one, err := newMatch(documentOf([][]byte{e}), m.o)
	if err != nil {
		return nil
	}
	names, whole := one.filter.Fields()
	if whole {
		return nil
	}
	if _, constant := one.filter.Root.(*query.Always); constant {
		return []string{} // what matches nothing does so in front of the stage, which then has nothing to fail at
	}
	return names
}

// touched says which top-level fields a stage changes: those of names, or with except all but these.
type touched struct {
	names  map[string]bool
	except bool
}

func namesOf(list ...string) map[string]bool {
	names := make(map[string]bool, len(list))
	for _, name := range list {
		names[name] = true
	}
	return names
}

func independent(names []string, t touched) bool {
	if names == nil {
		return false
	}
	for _, name := range names {
		if t.names[name] != t.except {
			return false
		}
	}
	return true
}

// touches tells what a stage changes, when it changes documents one by one and lets the rest of them as it is.
func touches(s *step) (t touched, ok bool) {
	switch stage := s.stage.(type) {
	case *unwindStage:
		t.names = namesOf(stage.path[0])
		if stage.index != nil {
			t.names[stage.index[0]] = true
		}
		return t, true
	case *lookupStage:
		t.names = namesOf(stage.as[0])
		if stage.unwind != nil && stage.unwind.index != nil {
			t.names[stage.unwind.index[0]] = true
		}
		return t, true
	case *projectStage:
		return stage.touches(s.spec)
	}
	return t, false
}

func (p *projectStage) touches(spec value) (t touched, ok bool) {
	switch p.kind {
	case addFields:
		return touched{names: namesOf(topLevel(spec)...)}, true
	case unset:
		return touched{names: namesOf(topLevelOf(spec)...)}, true
	case project:
		if excludes(spec) {
			return touched{names: namesOf(topLevel(spec)...)}, true
		}
		return touched{names: namesOf(included(spec)...), except: true}, true
	}
	return t, false
}

// topLevel returns the first components of the names of a specification.
func topLevel(spec value) []string {
	var names []string
	elements, _ := spec.Document().Elements()
	for _, e := range elements {
		name, _, _ := strings.Cut(e.Key(), ".")
		names = append(names, name)
	}
	return names
}

// topLevelOf does the same for $unset's string or array of strings.
func topLevelOf(spec value) []string {
	list := []value{spec}
	if spec.Type == bsoncore.TypeArray {
		list, _ = spec.Array().Values()
	}
	var names []string
	for _, v := range list {
		if s, ok := v.StringValueOK(); ok {
			name, _, _ := strings.Cut(s, ".")
			names = append(names, name)
		}
	}
	return names
}

// included returns the fields that an inclusion takes over as they are.
func included(spec value) []string {
	names, id := []string(nil), true
	elements, _ := spec.Document().Elements()
	for _, e := range elements {
		f, number := float(e.Value())
		plain := number && f != 0 || isTrue(e.Value())
		switch {
		case e.Key() == "_id":
			id = plain
		case plain && !strings.Contains(e.Key(), "."):
			names = append(names, e.Key())
		}
	}
	if id {
		names = append(names, "_id")
	}
	return names
}

// excludes reports whether a $project has top-level exclusions only.
func excludes(spec value) bool {
	elements, _ := spec.Document().Elements()
	for _, e := range elements {
		if f, ok := float(e.Value()); ok && f == 0 {
			continue
		}
		if b, ok := e.Value().BooleanOK(); !ok || b {
			return false
		}
	}
	return true
}
