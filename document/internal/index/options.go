package index

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/query"
)

// Codes of MongoDB's that have numbers only.
const (
	codeInclusionInExclusion mongoerror.Code = 31253
	codeExclusionInInclusion mongoerror.Code = 31254
	codePathCollision        mongoerror.Code = 31249
	codeComputedField        mongoerror.Code = 51271
	codeDollarName           mongoerror.Code = 16410
	codeEmptyName            mongoerror.Code = 40352
)

// partial reads partialFilterExpression, which compares with the collation of the index.
func (p *parser) partial() error {
	if p.d.PartialSpec == nil {
		return nil
	}
	filter, err := query.Parse(p.d.PartialSpec, &query.Options{Collation: p.d.Collation})
	if err != nil {
		if code := mongoerror.CodeOf(err); code != 0 {
			return p.fail(code, "%s", message(err))
		}
		return err
	}
	p.d.Partial = filter
	return p.supported(filter.Root)
}

// supported refuses what planners could not prove about queries.
func (p *parser) supported(n query.Node) error {
	switch n := n.(type) {
	case *query.And:
		return p.allSupported(n.Children)
	case *query.Or:
		return p.allSupported(n.Children)
	case *query.Comparison, *query.In, *query.Exists, *query.Type, *query.Geo, *query.Always:
		return nil
	case *query.Expr:
		return p.fail(mongoerror.QueryFeatureNotAllowed, "$expr is not allowed in this context")
	case *query.JSONSchema:
		return p.fail(mongoerror.QueryFeatureNotAllowed, "$jsonSchema is not allowed in this context")
	}
	return p.fail(mongoerror.CannotCreateIndex, "Expression not supported in partial index: %s", documentText(query.Document(n)))
}

func (p *parser) allSupported(list []query.Node) error {
	for _, n := range list {
		if err := p.supported(n); err != nil {
			return err
		}
	}
	return nil
}

// message returns the text of an error without its code.
func message(err error) string {
	if e, ok := err.(*mongoerror.Error); ok {
		return e.Message
	}
	return err.Error()
}

// projection reads wildcardProjection: either what is included or what is excluded, but for _id.
func (p *parser) projection() error {
	if p.d.WildcardProjection == nil {
		return nil
	}
	if len(p.d.WildcardProjection) == bsoncore.EmptyDocumentLength {
		return p.fail(mongoerror.FailedToParse, "The 'wildcardProjection' field can't be an empty object")
	}
	w := p.d.wildcard
	s := &projectionParser{parser: p, root: &branch{}}
	if err := s.fields("", p.d.WildcardProjection); err != nil {
		return err
	}
	w.id = s.id
	if s.decided {
		w.fields = &selection{include: s.include, root: s.root}
	} else if s.id {
		w.fields = &selection{include: true, root: &branch{children: map[string]*branch{}}}
	}
	if w.id && w.fields.include {
		w.fields.root.insert("_id")
	}
	return nil
}

// projectionParser collects paths.
type projectionParser struct {
	*parser
	root             *branch
	decided, include bool // whether it is known which of both it is, and which
	id               bool
}

func (s *projectionParser) refuse(code mongoerror.Code, format string, args ...any) error {
	return s.fail(code, "Failed to parse: wildcardProjection :: caused by :: "+format, args...)
}

func (s *projectionParser) fields(prefix string, doc []byte) error {
	elements := path.ElementsOf(doc)
	for raw, v, ok := elements.Next(); ok; raw, v, ok = elements.Next() {
		name := string(raw)
		for _, part := range strings.Split(name, ".") {
			if part == "" {
				return s.refuse(codeEmptyName, "FieldPath cannot be constructed with empty string")
			}
			if part[0] == '$' && v.Type != bsoncore.TypeEmbeddedDocument && prefix == "" {
				return s.refuse(codeDollarName, "FieldPath field names may not start with '$'. Consider using $getField or $setField.")
			}
		}
		if err := s.field(join(prefix, name), name, v); err != nil {
			return err
		}
	}
	return nil
}

func (s *projectionParser) field(full, name string, v bsoncore.Value) error {
	if v.Type == bsoncore.TypeEmbeddedDocument && name[0] != '$' {
		return s.fields(full, v.Data)
	}
	include, ok := v.BooleanOK()
	if n, isNumber := number.Of(v); isNumber {
		include, ok = !n.IsZero(), true
	}
	switch {
	case !ok || name[0] == '$':
		return s.refuse(codeComputedField, "Bad projection specification, cannot use computed fields when parsing a spec in kBanComputedFields mode: %s", documentText(s.d.WildcardProjection))
	case full == "_id":
		s.id = include
		return nil
	case s.decided && s.include && !include:
		return s.refuse(codeExclusionInInclusion, "Cannot do exclusion on field %s in inclusion projection", full)
	case s.decided && !s.include && include:
		return s.refuse(codeInclusionInExclusion, "Cannot do inclusion on field %s in exclusion projection", full)
	}
	s.decided, s.include = true, include
	if rest, ok := s.root.insert(full); !ok {
		return s.refuse(codePathCollision, "Path collision at %s remaining portion %s", full, rest)
	}
	return nil
}
