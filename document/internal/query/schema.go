package query

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
)

// schema is a parsed $jsonSchema. What it says of strings holds for strings only, what it says of numbers for numbers only, and so on:
// values of other types satisfy it.
type schema struct {
	types []bsoncore.Type // nil: any
	enum  []bsoncore.Value
	all   []*schema
	any   [][]*schema
	one   [][]*schema
	not   []*schema

	multipleOf                   *number.Decimal
	minLength, maxLength         int64 // none: -1, and of the others too
	pattern                      *Regex
	encrypted                    bool
	minItems, maxItems           int64
	unique                       bool
	items, additionalItems       *schema
	tuple                        []*schema
	hasTuple                     bool
	minProperties, maxProperties int64
	required                     []string
	properties                   []property
	known                        map[string]bool // the names of properties
	patterns                     []patternProperty
	additional                   *schema
	dependencies                 []dependency
	about                        keywords
	comparesMin, comparesMax     test
}

// encryptedSubtype is that of binary data which a client has encrypted.
const encryptedSubtype = 6

// keywords is a set of the classes of values that a schema says something of, beside the keywords for all values.
type keywords uint8

const (
	aboutNumbers keywords = 1 << iota
	aboutStrings
	aboutArrays
	aboutObjects
)

type property struct {
	name   string
	schema *schema
}

type patternProperty struct {
	name   *Regex
	schema *schema
}

// dependency is what the presence of a property asks for: other properties, or a schema.
type dependency struct {
	name   string
	others []string
	schema *schema
}

// schemaMatcher matches documents.
type schemaMatcher struct {
	schema *schema
	names  []string
	whole  bool
}

func newSchemaMatcher(s *schema) *schemaMatcher {
	m := &schemaMatcher{schema: s}
	m.whole = s.fields(func(name string) { m.names = append(m.names, name) })
	slices.Sort(m.names)
	m.names = slices.Compact(m.names)
	return m
}

func (m *schemaMatcher) match(o object, _ *int) (bool, error) {
	doc, err := o.part(m.names, m.whole)
	if err != nil {
		return false, err
	}
	return m.schema.test(bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc}, nil)
}

// fields calls add with the names of properties that the schema looks at; whole means that it may look at any.
func (s *schema) fields(add func(string)) (whole bool) {
	whole = s.enum != nil || s.patterns != nil || s.additional != nil || s.minProperties >= 0 || s.maxProperties >= 0
	for _, name := range s.required {
		add(name)
	}
	for _, p := range s.properties {
		add(p.name)
	}
	for _, d := range s.dependencies {
		add(d.name)
		for _, other := range d.others {
			add(other)
		}
		if d.schema != nil {
			whole = d.schema.fields(add) || whole
		}
	}
	for _, inner := range slices.Concat(append(append([][]*schema{s.all, s.not}, s.any...), s.one...)...) {
		whole = inner.fields(add) || whole
	}
	return whole
}

// test reports whether a value satisfies the schema.
func (s *schema) test(v bsoncore.Value, _ *int) (bool, error) {
	if s == nil {
		return true, nil
	}
	if s.types != nil && !slices.Contains(s.types, v.Type) {
		return false, nil
	}
	if s.enum != nil && !s.enumerated(v) {
		return false, nil
	}
	if s.encrypted && (v.Type != bsoncore.TypeBinary || v.Data[4] != encryptedSubtype) {
		return false, nil
	}
	ok, err := s.own(v)
	if !ok || err != nil {
		return false, err
	}
	return s.combined(v)
}

// own looks at the keywords for the type that v has.
func (s *schema) own(v bsoncore.Value) (bool, error) {
	switch {
	case s.about&aboutNumbers != 0 && order.IsNumber(v.Type):
		return s.number(v)
	case s.about&aboutStrings != 0 && v.Type == bsoncore.TypeString:
		return s.text(v)
	case s.about&aboutArrays != 0 && v.Type == bsoncore.TypeArray:
		return s.array(v)
	case s.about&aboutObjects != 0 && v.Type == bsoncore.TypeEmbeddedDocument:
		return s.object(v)
	}
	return true, nil
}

// combined looks at allOf, anyOf, oneOf and not.
func (s *schema) combined(v bsoncore.Value) (bool, error) {
	for _, inner := range s.all {
		if ok, err := inner.test(v, nil); !ok || err != nil {
			return false, err
		}
	}
	for _, inner := range s.not {
		if ok, err := inner.test(v, nil); ok || err != nil {
			return false, err
		}
	}
	for _, some := range s.any {
		if n, err := satisfied(some, v, 1); n == 0 || err != nil {
			return false, err
		}
	}
	for _, some := range s.one {
		if n, err := satisfied(some, v, 2); n != 1 || err != nil {
			return false, err
		}
	}
	return true, nil
}

// satisfied counts the schemas that v satisfies, up to a limit.
func satisfied(schemas []*schema, v bsoncore.Value, limit int) (n int, err error) {
	for _, s := range schemas {
		ok, err := s.test(v, nil)
		if err != nil {
			return 0, err
		}
		if ok {
			n++
		}
		if n == limit {
			break
		}
	}
	return n, nil
}

// enumerated compares with the values of enum; the order of the fields of documents does not matter.
func (s *schema) enumerated(v bsoncore.Value) bool {
	v = sorted(v)
	_, found := slices.BinarySearchFunc(s.enum, v, func(a, b bsoncore.Value) int { return order.Compare(a, b, nil) })
	return found
}

func (s *schema) number(v bsoncore.Value) (bool, error) {
	for _, t := range []test{s.comparesMin, s.comparesMax} {
		if t == nil {
			continue
		}
		if ok, err := t.test(v, nil); !ok || err != nil {
			return false, err
		}
	}
	if s.multipleOf == nil {
		return true, nil
	}
	n, _ := number.Of(v)
	rest := n.Decimal().Mod(*s.multipleOf)
	return !rest.IsNaN() && rest.Sign() == 0, nil
}

func (s *schema) text(v bsoncore.Value) (bool, error) {
	if s.minLength >= 0 || s.maxLength >= 0 {
		n := int64(utf8.RuneCount(v.Data[4 : len(v.Data)-1]))
		if n < s.minLength || s.maxLength >= 0 && n > s.maxLength {
			return false, nil
		}
	}
	if s.pattern == nil {
		return true, nil
	}
	return s.pattern.test(v, nil)
}

func (s *schema) array(v bsoncore.Value) (bool, error) {
	var seen []bsoncore.Value
	n := int64(0)
	for e := path.ElementsOf(v.Data); ; n++ {
		_, element, ok := e.Next()
		if !ok {
			break
		}
		inner := s.items
		switch {
		case s.hasTuple && n < int64(len(s.tuple)):
			inner = s.tuple[n]
		case s.hasTuple:
			inner = s.additionalItems
		}
		if ok, err := inner.test(element, nil); !ok || err != nil {
			return false, err
		}
		if s.unique {
			seen = append(seen, sorted(element))
		}
	}
	if n < s.minItems || s.maxItems >= 0 && n > s.maxItems {
		return false, nil
	}
	slices.SortFunc(seen, func(a, b bsoncore.Value) int { return order.Compare(a, b, nil) })
	for i := 1; i < len(seen); i++ {
		if order.Equal(seen[i-1], seen[i], nil) {
			return false, nil
		}
	}
	return true, nil
}

func (s *schema) object(v bsoncore.Value) (bool, error) {
	for _, name := range s.required {
		if _, ok := path.Lookup(v.Data, name); !ok {
			return false, nil
		}
	}
	for _, p := range s.properties {
		inner, ok := path.Lookup(v.Data, p.name)
		if !ok {
			continue
		}
		if ok, err := p.schema.test(inner, nil); !ok || err != nil {
			return false, err
		}
	}
	if ok, err := s.depends(v); !ok || err != nil {
		return false, err
	}
	if s.patterns == nil && s.additional == nil && s.minProperties < 0 && s.maxProperties < 0 {
		return true, nil
	}
	return s.others(v)
}

// depends looks at dependencies.
func (s *schema) depends(v bsoncore.Value) (bool, error) {
	for _, d := range s.dependencies {
		if _, ok := path.Lookup(v.Data, d.name); !ok {
			continue
		}
		for _, other := range d.others {
			if _, ok := path.Lookup(v.Data, other); !ok {
				return false, nil
			}
		}
		if ok, err := d.schema.test(v, nil); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// others looks at the keywords for which each property counts.
func (s *schema) others(v bsoncore.Value) (bool, error) {
	n := int64(0)
	for e := path.ElementsOf(v.Data); ; n++ {
		name, inner, ok := e.Next()
		if !ok {
			break
		}
		known := s.known[string(name)]
		for _, p := range s.patterns {
			matches, err := p.name.engine.match(name)
			if err != nil {
				return false, err
			}
			if !matches {
				continue
			}
			known = true
			if ok, err := p.schema.test(inner, nil); !ok || err != nil {
				return false, err
			}
		}
		if known {
			continue
		}
		if ok, err := s.additional.test(inner, nil); !ok || err != nil {
			return false, err
		}
	}
	return n >= s.minProperties && (s.maxProperties < 0 || n <= s.maxProperties), nil
}

// sorted returns a value with the fields of its documents in the order of their names.
func sorted(v bsoncore.Value) bsoncore.Value {
	if v.Type != bsoncore.TypeEmbeddedDocument && v.Type != bsoncore.TypeArray {
		return v
	}
	var elements []element
	for e := path.ElementsOf(v.Data); ; {
		name, inner, ok := e.Next()
		if !ok {
			break
		}
		elements = append(elements, element{string(name), sorted(inner)})
	}
	if v.Type == bsoncore.TypeEmbeddedDocument {
		slices.SortStableFunc(elements, func(a, b element) int { return strings.Compare(a.name, b.name) })
	}
	b := bsoncore.NewDocumentBuilder()
	for _, e := range elements {
		b.AppendValue(e.name, e.value)
	}
	return bsoncore.Value{Type: v.Type, Data: b.Build()}
}

type element struct {
	name  string
	value bsoncore.Value
}
