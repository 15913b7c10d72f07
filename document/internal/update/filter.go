package update

import (
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/order"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/query"
)

// single is a document with one field, for filters that are about an element of an array.
type single struct {
	name  string
	value bsoncore.Value
}

// Lookup implements path.Fields.
func (s single) Lookup(name string) (bsoncore.Value, bool) { return s.value, name == s.name }

// arrayFilter is one of the array filters.
type arrayFilter struct {
	identifier string
	filter     *query.Filter
	used       bool // while parsing: some path has the identifier
}

func (f *arrayFilter) match(v bsoncore.Value) (bool, error) {
	return f.filter.Match(single{f.identifier, v})
}

func parseFilters(docs []bsoncore.Document, o *Options) (map[string]*arrayFilter, error) {
	if len(docs) == 0 {
		return nil, nil
	}
	filters := make(map[string]*arrayFilter, len(docs))
	for _, doc := range docs {
		f, err := parseFilter(doc, o)
		if err != nil {
			return nil, err
		}
		if filters[f.identifier] != nil {
			return nil, mongoerror.New(mongoerror.FailedToParse, "Found multiple array filters with the same top-level field name %s",
				f.identifier)
		}
		filters[f.identifier] = f
	}
	return filters, nil
}

func parseFilter(doc bsoncore.Document, o *Options) (*arrayFilter, error) {
	filter, err := parseRestricted(doc, o)
	var identifier string
	if err == nil {
		identifier, err = identifierOf(doc, "")
	}
	if err == nil && identifier != "" && !validIdentifier(identifier) {
		err = mongoerror.New(mongoerror.BadValue,
			"The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '%s'", identifier)
	}
	if err != nil {
		return nil, mongoerror.Prefix(err, "Error parsing array filter :: caused by :: ")
	}
	if identifier == "" {
		return nil, mongoerror.New(mongoerror.FailedToParse, "Cannot use an expression without a top-level field name in arrayFilters")
	}
	return &arrayFilter{identifier: identifier, filter: filter}, nil
}

// parseRestricted parses a filter of elements, which has nothing that concerns whole documents.
func parseRestricted(doc bsoncore.Document, o *Options) (*query.Filter, error) {
	if err := refuseWhole(doc); err != nil {
		return nil, err
	}
	f, err := query.Parse(doc, &query.Options{Collation: o.Collation, Let: o.Let, Now: o.Now, Call: o.Call})
	if err == nil {
		_, err = f.Positional() // which distances and schemas have not either
	}
	return f, err
}

func refuseWhole(doc []byte) error {
	for s := path.PlacesOf(doc); ; {
		e, ok := s.Next()
		if !ok {
			return nil
		}
		switch name := string(e.Name); name {
		case "$where", "$text":
			return mongoerror.New(mongoerror.BadValue, "%s is not allowed in this context", name)
		case "$expr":
			return mongoerror.New(mongoerror.QueryFeatureNotAllowed, "%s is not allowed in this context", name)
		case "$and", "$or", "$nor":
			if e.Value.Type != bsoncore.TypeArray {
				continue
			}
			for _, v := range elementsOf(e.Value) {
				if v.Type != bsoncore.TypeEmbeddedDocument {
					continue
				}
				if err := refuseWhole(v.Data); err != nil {
					return err
				}
			}
		}
	}
}

// identifierOf returns the one name with which all paths of a filter begin; found is the one so far.
func identifierOf(doc []byte, found string) (string, error) {
	for s := path.PlacesOf(doc); ; {
		e, ok := s.Next()
		if !ok {
			return found, nil
		}
		name := string(e.Name)
		if name == "$and" || name == "$or" || name == "$nor" {
			for _, v := range elementsOf(e.Value) {
				var err error
				if found, err = identifierOf(v.Data, found); err != nil {
					return "", err
				}
			}
			continue
		}
		if strings.HasPrefix(name, "$") {
			continue
		}
		name, _, _ = strings.Cut(name, ".")
		if found != "" && name != found {
			return "", mongoerror.New(mongoerror.FailedToParse, "Expected a single top-level field name, found '%s' and '%s'", found, name)
		}
		found = name
	}
}

func validIdentifier(s string) bool {
	for i, c := range []byte(s) {
		lower, other := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !lower && (i == 0 || !other) {
			return false
		}
	}
	return true
}

// checkFiltersUsed refuses filters that no path has.
func (u *Update) checkFiltersUsed(doc bsoncore.Document) error {
	for _, identifier := range slices.Sorted(maps.Keys(u.filters)) {
		if !u.filters[identifier].used {
			return mongoerror.New(mongoerror.FailedToParse, "The array filter for identifier '%s' was not used in the update %s",
				identifier, notation.Document(doc))
		}
	}
	return nil
}

// condition is the operand of $pull: a value, a filter of documents, or operators that are about the element itself.
type condition struct {
	value   bsoncore.Value
	filter  *query.Filter
	wrapped bool
}

// elementName is the name under which a filter sees the element itself.
const elementName = "element"

// isPathOperator reports whether an operator of filters stands at a path. An operand of $pull that begins with one is about the
// element itself; one that begins otherwise is about the fields of elements that are documents.
func isPathOperator(name string) bool {
	switch name {
	case "$all", "$bitsAllClear", "$bitsAllSet", "$bitsAnyClear", "$bitsAnySet", "$elemMatch", "$eq", "$exists",
		"$geoIntersects", "$geoNear", "$geoWithin", "$gt", "$gte", "$in", "$lt", "$lte", "$mod", "$ne", "$near", "$nearSphere",
		"$nin", "$options", "$regex", "$size", "$type", "$within":
		return true
	}
	return false
}

func (op *operation) parsePull(v bsoncore.Value, o *Options) error {
	c := &condition{value: v}
	op.pull = c
	if v.Type != bsoncore.TypeEmbeddedDocument && v.Type != bsoncore.TypeRegex {
		return nil
	}
	if v.Type == bsoncore.TypeRegex {
		c.wrapped = true
	} else if e, ok := first(v.Data); ok {
		c.wrapped = isPathOperator(string(e.Name))
	}
	doc := bsoncore.Document(v.Data)
	if c.wrapped {
		doc = bsoncore.NewDocumentBuilder().AppendValue(elementName, v).Build()
	}
	var err error
	c.filter, err = parseRestricted(doc, o)
	return err
}

func (c *condition) match(v bsoncore.Value, collate *collation.Collation) (bool, error) {
	switch {
	case c.filter == nil:
		return order.Equal(c.value, v, collate), nil
	case c.wrapped:
		return c.filter.Match(single{elementName, v})
	case v.Type != bsoncore.TypeEmbeddedDocument:
		return false, nil
	}
	return c.filter.Match(path.Document(v.Data))
}
