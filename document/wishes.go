package document

import (
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/projection"
)

// wishes is what is asked for beside a filter, as far as it can be had without a plan.
type wishes struct {
	limit      int
	byID       bool                   // the documents are wanted in the order of their _ids
	projection *projection.Projection // of fields that are left out or are not; nil: documents are wanted as they are
}

// wishesOf returns the wishes of options; not ok: there are others, or there is something wrong, which a plan tells.
func wishesOf(o *FindOptions) (w wishes, ok bool) {
	w.limit = math.MaxInt
	if o == nil {
		return w, true
	}
	if o.Skip != 0 || o.Limit < 0 || o.Hint != nil || o.Min != nil || o.Max != nil || o.Collation != nil || o.Let != nil {
		return w, false
	}
	if o.Limit > 0 {
		w.limit = int(min(o.Limit, math.MaxInt))
	}
	order, err := toOptional(o.Sort)
	if err != nil {
		return w, false
	}
	if len(order) > len(emptyDocument()) {
		n, ok := only(order, "_id").AsFloat64OK()
		if w.byID = ok && n == 1; !w.byID {
			return w, false
		}
	}
	spec, err := toOptional(o.Projection)
	if err != nil || !flagsOnly(spec) {
		return w, false
	}
	w.projection, err = projection.Parse(spec, nil)
	return w, err == nil
}

// flagsOnly reports whether a projection says of fields that they are wanted or that they are not, and nothing else.
func flagsOnly(spec document) bool {
	if len(spec) <= len(emptyDocument()) {
		return true
	}
	for rest := spec[4:]; len(rest) > 1; {
		e, after, ok := bsoncore.ReadElement(rest)
		if !ok || strings.Contains(e.Key(), "$") {
			return false
		}
		switch e.Value().Type {
		case bsoncore.TypeBoolean, bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDouble:
		default:
			return false
		}
		rest = after
	}
	return true
}

// suits reports whether a walk over the entries of an index that begin with so many fields gives what is wanted. Where an index has
// all of it, a plan need not read the records.
func (w *wishes) suits(c *collection, i *secondary, fields int) bool {
	if w.byID && len(i.def.Components) > fields {
		return false
	}
	paths, id, simple := w.projection.Simple()
	if id {
		paths = append(paths, "_id")
	}
	return !simple || !slices.ContainsFunc(*c.indexes.Load(), func(x *secondary) bool { return x.has(paths) })
}

// has reports whether an index has the values under all of these paths.
func (x *secondary) has(paths []string) bool {
	for _, path := range paths {
		found := false
		for i := range x.def.Components {
			found = found || x.def.Components[i].Path == path
		}
		if !found {
			return false
		}
	}
	return true
}
