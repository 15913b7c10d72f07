package index

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/path"
)

// maxComponents is how many components an index may have. Entries.Multikey has room for 64.
const maxComponents = 32

// Codes of MongoDB's that have numbers only.
const (
	codeTooManyComponents mongoerror.Code = 13103
	codeUniqueHashed      mongoerror.Code = 16764
	codeTwoHashed         mongoerror.Code = 31303
)

// wildcardName is the last part of a wildcard component's path.
const wildcardName = "$**"

// keyPattern reads the components.
func (p *parser) keyPattern() error {
	seen := map[string]bool{}
	plugin := ""
	hashes := 0
	elements := path.ElementsOf(p.d.Keys)
	for name, v, ok := elements.Next(); ok; name, v, ok = elements.Next() {
		c, err := p.component(string(name), v)
		if err != nil {
			return err
		}
		if seen[string(name)] {
			return p.fail(mongoerror.BadValue, "Key pattern has duplicate field name '%s'", name)
		}
		seen[string(name)] = true
		if special, ok := v.StringValueOK(); ok {
			if plugin != "" && special != plugin {
				return p.fail(mongoerror.CannotCreateIndex, "Can't use more than one index plugin for a single index.")
			}
			plugin = special
		}
		if c.Kind == Hashed {
			hashes++
			p.d.kind = hashed
		} else if c.Kind == Sphere {
			p.d.kind = sphere
		}
		p.d.Components = append(p.d.Components, c)
	}
	switch {
	case len(p.d.Components) == 0:
		return p.fail(mongoerror.CannotCreateIndex, "Index keys cannot be empty.")
	case len(p.d.Components) > maxComponents:
		return mongoerror.New(codeTooManyComponents, "too many compound keys")
	case hashes > 1:
		return mongoerror.New(codeTwoHashed, "A maximum of one index field is allowed to be hashed but found %d for 'key' %s", hashes, documentText(p.d.Keys))
	}
	return p.wildcardPattern()
}

// component reads one component.
func (p *parser) component(name string, v bsoncore.Value) (c Component, err error) {
	if err := p.checkPath(name, v); err != nil {
		return c, err
	}
	c = Component{Path: name, parts: strings.Split(name, ".")}
	if name == wildcardName || strings.HasSuffix(name, "."+wildcardName) {
		c.Wildcard = true
		c.Path = strings.TrimSuffix(strings.TrimSuffix(name, wildcardName), ".")
	}
	if n, ok := number.Of(v); ok {
		switch {
		case n.IsNaN():
			return c, p.fail(mongoerror.CannotCreateIndex, "Values in the index key pattern cannot be NaN.")
		case n.IsZero():
			return c, p.fail(mongoerror.CannotCreateIndex, "Values in the index key pattern cannot be 0.")
		case n.Sign() < 0:
			c.Kind = Descending
		}
		return c, nil
	}
	special, ok := v.StringValueOK()
	if !ok {
		return c, p.fail(mongoerror.CannotCreateIndex,
			"Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, numbers < 0, and strings are allowed.", mongoerror.TypeName(v.Type))
	}
	switch special {
	case "hashed":
		c.Kind = Hashed
	case "2dsphere":
		c.Kind = Sphere
	case "":
		return c, p.fail(mongoerror.CannotCreateIndex, "Values in the index key pattern cannot be empty strings")
	case "text":
		return c, p.fail(mongoerror.CannotCreateIndex, "text indexes are not supported: there is no text search")
	case "2d":
		return c, p.fail(mongoerror.CannotCreateIndex, "2d indexes are not supported: use 2dsphere")
	case "geoHaystack":
		return c, p.fail(mongoerror.CannotCreateIndex, "GeoHaystack indexes cannot be created in version 5.0 and above")
	default:
		return c, p.fail(mongoerror.CannotCreateIndex, "Unknown index plugin '%s'", special)
	}
	return c, nil
}

// checkPath refuses paths that documents cannot have, but for those of references.
func (p *parser) checkPath(name string, v bsoncore.Value) error {
	if name == "" {
		return p.fail(mongoerror.CannotCreateIndex, "Index keys cannot be an empty field.")
	}
	if name == "_fts" {
		return p.fail(mongoerror.CannotCreateIndex, "Index key contains an illegal field name: '_fts'")
	}
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if part == "" {
			return p.fail(mongoerror.CannotCreateIndex, "Index keys cannot contain an empty field.")
		}
		if part[0] != '$' || i > 0 && (part == "$id" || part == "$ref" || part == "$db") {
			continue
		}
		if part != wildcardName || i < len(parts)-1 || v.Type == bsoncore.TypeString {
			return p.fail(mongoerror.CannotCreateIndex, "Index key contains an illegal field name: field name starts with '$'.")
		}
	}
	return nil
}

// wildcardPattern looks at wildcard components, and at the projection, together with the other components.
func (p *parser) wildcardPattern() error {
	at := -1
	for i := range p.d.Components {
		if !p.d.Components[i].Wildcard {
			continue
		}
		if at >= 0 {
			return p.fail(mongoerror.CannotCreateIndex, "wildcard indexes can have only one wildcard component")
		}
		at = i
	}
	if at < 0 {
		if p.d.WildcardProjection != nil {
			return p.fail(mongoerror.BadValue, "The field 'wildcardProjection' is only allowed in an 'wildcard' index")
		}
		return nil
	}
	c := &p.d.Components[at]
	switch {
	case p.d.kind != ordered:
		return p.fail(mongoerror.CannotCreateIndex, "wildcard indexes do not allow hashed and 2dsphere components")
	case len(p.d.Components) == 1 && c.Kind == Descending:
		return p.fail(mongoerror.CannotCreateIndex, "A numeric value in a $** index key pattern must be positive.")
	case p.d.WildcardProjection != nil && c.Path != "":
		return p.fail(mongoerror.FailedToParse, `The field 'wildcardProjection' is only allowed when 'key' is {"$**": +-1}`)
	}
	p.d.kind = wild
	p.d.wildcard = &wildcard{component: at}
	if c.Path != "" {
		root := &branch{}
		root.insert(c.Path)
		p.d.wildcard.fields = &selection{include: true, root: root}
		p.d.wildcard.id = c.parts[0] == "_id"
	}
	if err := p.projection(); err != nil {
		return err
	}
	for i, other := range p.d.Components {
		if i != at && p.d.wildcard.takesIn(other.parts) {
			return p.fail(mongoerror.CannotCreateIndex,
				"wildcard compound indexes need a wildcardProjection, or a wildcard path, that leaves out the other components: '%s' is not left out", other.Path)
		}
	}
	return nil
}

// takesIn reports whether values on a path may be among those of the wildcard component.
func (w *wildcard) takesIn(parts []string) bool {
	in, decided := w.decides(parts)
	return in || !decided
}

// decides reports whether all that lies on a path is taken in, or all of it left out; !decided: that differs below the path.
func (w *wildcard) decides(parts []string) (in, decided bool) {
	if parts[0] == "_id" && !w.id {
		return false, true
	}
	if w.fields == nil {
		return true, true
	}
	b := w.fields.root
	for _, name := range parts {
		next := b.children[name]
		if next == nil {
			return !w.fields.include, true
		}
		if next.children == nil {
			return w.fields.include, true
		}
		b = next
	}
	return false, false
}

// check looks at the options together.
func (p *parser) check() error {
	d := p.d
	switch {
	case d.kind == hashed && d.Unique:
		return mongoerror.New(codeUniqueHashed, "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.")
	case d.kind == wild && d.Unique:
		return p.fail(mongoerror.CannotCreateIndex, "Index type 'wildcard' does not support the unique option")
	case d.kind == wild && d.Sparse:
		return p.fail(mongoerror.CannotCreateIndex, "Index type 'wildcard' does not support the sparse option")
	case d.kind == wild && d.TTL >= 0:
		return p.fail(mongoerror.CannotCreateIndex, "Index type 'wildcard' cannot be a TTL index")
	case d.Sparse && d.PartialSpec != nil:
		return p.fail(mongoerror.CannotCreateIndex, `cannot mix "partialFilterExpression" and "sparse" options`)
	case d.TTL >= 0 && len(d.Components) > 1:
		return mongoerror.New(mongoerror.CannotCreateIndex,
			"TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: %s", documentText(p.spec))
	case len(d.Components) == 1 && d.Components[0].Path == "_id" && d.kind == ordered:
		return p.checkID()
	}
	return p.partial()
}

// checkID looks at an index on _id, which is there anyway.
func (p *parser) checkID() error {
	if p.d.Components[0].Kind != Ascending {
		return mongoerror.New(mongoerror.BadValue, "The field 'key' for an _id index must be {_id: 1}, but got %s", documentText(p.d.Keys))
	}
	elements := path.ElementsOf(p.spec)
	for name, _, ok := elements.Next(); ok; name, _, ok = elements.Next() {
		switch string(name) {
		case "key", "name", "v", "ns", "collation":
		default:
			return mongoerror.New(mongoerror.InvalidIndexSpecificationOption,
				"The field '%s' is not valid for an _id index specification. Specification: %s", name, documentText(p.spec))
		}
	}
	return nil
}
