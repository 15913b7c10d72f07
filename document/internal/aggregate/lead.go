package aggregate

import (
	"math"
	"slices"
	"strings"

	"github.com/pandodb/pando/document/internal/sortkey"
)

// lead takes the first stages into the request to the collection, and returns the number of those that it has taken.
func lead(steps []step, o *Options) (*Request, int) {
	r := &Request{Hint: o.Hint, Collation: o.Collation, Let: o.Let, Now: o.Now}
	n := 0
	if len(steps) > 0 && steps[0].isSource() {
		return r, 0
	}
	if n < len(steps) {
		if m, ok := steps[n].stage.(*matchStage); ok {
			r.Filter = m.spec
			n++
		}
	}
	if n < len(steps) {
		if s, ok := steps[n].stage.(*sortStage); ok && !s.needsMeta("") {
			r.Sort = s.spec
			n++
		}
	}
	for ; n < len(steps); n++ {
		if !r.window(steps[n].stage) {
			break
		}
	}
	if n == 0 && len(steps) > 0 && r.Hint.Type == 0 {
		if s, ok := steps[0].stage.(*sampleStage); ok {
			r.Sample = s.size // the stage stays, and puts them in an order that is random
		}
	}
	r.Fields = dependencies(steps[n:])
	r.group(steps[n:])
	return r, n
}

// group takes in what a $group among the stages behind asks less than all documents for.
func (r *Request) group(steps []step) {
	for i, s := range steps {
		switch s := s.stage.(type) {
		case *projectStage:
			if s.kind != unset {
				return
			}
		case *groupStage:
			r.Grouped = r.Fields != nil && !slices.ContainsFunc(r.Fields, hasPosition)
			if i > 0 || r.Skip > 0 || r.Limit > 0 {
				return
			}
			if _, r.Counted = s.countsOnly(); r.Counted {
				r.Sort = nil
				return
			}
			if path, ok := s.byFirst(); ok && r.Grouped {
				r.Distinct, r.First = path, len(s.fields) > 0
			}
			return
		}
	}
}

// hasPosition reports whether a component of a path is a number: indexes and filters take that for a place in an array, too, and
// expressions do not.
func hasPosition(path string) bool {
	for _, name := range strings.Split(path, ".") {
		if name != "" && strings.Trim(name, "0123456789") == "" {
			return true
		}
	}
	return false
}

// window takes a $skip or $limit into the request, which skips first. It reports false when that cannot be expressed.
func (r *Request) window(s stage) bool {
	switch s := s.(type) {
	case *limitStage:
		if r.Limit == 0 || s.n < r.Limit {
			r.Limit = s.n
		}
		return true
	case *skipStage:
		if r.Limit > 0 && s.n >= r.Limit || s.n > math.MaxInt64-r.Skip {
			return false // nothing is left, and 0 means no limit
		}
		if r.Skip += s.n; r.Limit > 0 {
			r.Limit -= s.n
		}
		return true
	}
	return false
}

// needsMeta reports whether the sort is by metadata of a kind, or of any.
func (s *sortStage) needsMeta(kind string) bool {
	return slices.ContainsFunc(s.pattern.Parts(), func(p sortkey.Part) bool { return p.Meta != "" && (kind == "" || kind == p.Meta) })
}

// needs gathers the paths that stages read.
type needs struct {
	paths []string
	whole bool
}

func (n *needs) add(paths []string, whole bool) {
	n.paths = append(n.paths, paths...)
	n.whole = n.whole || whole
}

// dependencies returns the paths that the steps read of the collection's documents; nil when they may need all.
func dependencies(steps []step) []string {
	n := &needs{paths: []string{}}
	for _, s := range steps {
		last, known := depends(s.stage, n)
		if !known || n.whole {
			return nil
		}
		if last {
			return shortestPaths(n.paths)
		}
	}
	return nil
}

// depends adds what a stage reads. last tells that nothing else of the documents gets past it.
func depends(s stage, n *needs) (last, known bool) {
	switch s := s.(type) {
	case *matchStage:
		n.add(s.filter.Fields())
	case *sortStage:
		n.add(s.pattern.Paths(), s.needsMeta(""))
	case *limitStage, *skipStage, *sampleStage:
	case *unwindStage:
		n.add([]string{strings.Join(s.path, ".")}, false)
	case *projectStage:
		switch s.kind {
		case unset:
		case addFields:
			return false, false
		default:
			n.add(s.projection.Fields())
			return true, true
		}
	case *groupStage:
		n.add(s.id.expression.Fields())
		for _, a := range s.fields {
			n.add(a.argument.Fields())
			for _, key := range a.keyPaths {
				n.add(key.Fields())
			}
		}
		return true, true
	case *lookupStage:
		if s.pipeline != nil {
			return false, false
		}
		n.add([]string{strings.Join(s.local, ".")}, false)
	default:
		return false, false
	}
	return false, true
}

// shortestPaths drops paths below others.
func shortestPaths(paths []string) []string {
	slices.Sort(paths)
	list := []string{}
	for _, p := range slices.Compact(paths) {
		if len(list) > 0 && strings.HasPrefix(p, list[len(list)-1]+".") {
			continue
		}
		list = append(list, p)
	}
	return list
}
