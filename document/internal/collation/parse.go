package collation

import (
	"bytes"
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// icuVersion is the version of the collator that MongoDB 7.0 has; sorts within a locale are as of then.
const icuVersion = "57.1"

// maxStrength is the strength at which only identical strings are equal.
const maxStrength = 5

// specification is a collation document with the defaults filled in.
type specification struct {
	Locale, CaseFirst, Alternate, MaxVariable            string
	Strength                                             int
	CaseLevel, NumericOrdering, Normalization, Backwards bool
}

// parser collects what the fields of a document say; nil where they say nothing.
type parser struct {
	specification
	spec      bsoncore.Document
	hasLocale bool
	backwards *bool
}

// Parse reads a collation document; {locale: "simple"} and an empty document give nil.
func Parse(spec bsoncore.Document) (*Collation, error) {
	elements, err := spec.Elements()
	if err != nil {
		return nil, mongoerror.New(mongoerror.InvalidBSON, "the collation is no valid document: %v", err)
	}
	if len(elements) == 0 {
		return nil, nil
	}
	p := &parser{spec: spec, specification: specification{CaseFirst: "off", Alternate: "non-ignorable", MaxVariable: "punct", Strength: 3}}
	for _, e := range elements {
		v := e.Value()
		if v.Type == bsoncore.TypeNull || v.Type == bsoncore.TypeUndefined {
			if isListed(fields, e.Key()) {
				continue // as if it were not there
			}
		}
		if err := p.field(e.Key(), v); err != nil {
			return nil, err
		}
	}
	if !p.hasLocale {
		return nil, mongoerror.New(missingField, "BSON field 'collation.locale' is missing but a required field")
	}
	if p.Locale == "simple" {
		return nil, nil
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return newCollation(p.specification), nil
}

// fields are the names that a collation document may have.
const fields = "locale caseLevel caseFirst strength numericOrdering alternate maxVariable normalization backwards version"

// Codes of MongoDB's that have numbers only.
const (
	missingField mongoerror.Code = 40414
	unknownField mongoerror.Code = 40415
	outOfBounds  mongoerror.Code = 51024
)

func (p *parser) field(name string, v bsoncore.Value) (err error) {
	switch name {
	case "locale":
		p.hasLocale = true
		p.Locale, err = text(name, v)
	case "caseLevel":
		p.CaseLevel, err = boolean(name, v)
	case "caseFirst":
		p.CaseFirst, err = choice(name, v, "upper lower off")
	case "strength":
		p.Strength, err = strength(v)
	case "numericOrdering":
		p.NumericOrdering, err = boolean(name, v)
	case "alternate":
		p.Alternate, err = choice(name, v, "non-ignorable shifted")
	case "maxVariable":
		p.MaxVariable, err = choice(name, v, "punct space")
	case "normalization":
		p.Normalization, err = boolean(name, v)
	case "backwards":
		b, ok := v.BooleanOK()
		if !ok {
			return mongoerror.New(mongoerror.TypeMismatch, "Field 'backwards' should be a boolean value, but found: %s", mongoerror.TypeName(v.Type))
		}
		p.backwards = &b
	case "version":
		var version string
		if version, err = text(name, v); err == nil && version != icuVersion {
			err = mongoerror.New(mongoerror.IncompatibleCollationVersion,
				"Requested collation version %s but the only available collator version was %s. Requested collation spec: %s", version, icuVersion, p.spec)
		}
	default:
		err = mongoerror.New(unknownField, "BSON field 'collation.%s' is an unknown field.", name)
	}
	return err
}

// check looks at the fields together.
func (p *parser) check() error {
	switch {
	case p.Locale == "":
		return mongoerror.New(mongoerror.BadValue, "Field 'locale' cannot be the empty string in: %s", p.spec)
	case strings.IndexByte(p.Locale, 0) >= 0:
		return mongoerror.New(mongoerror.BadValue, "Field 'locale' cannot contain null byte. Collation spec: %s", p.spec)
	case !hasLocale(p.Locale):
		hint := ""
		if near := nearest(p.Locale); near != "" {
			hint = ". Did you mean '" + near + "'?"
		}
		return mongoerror.New(mongoerror.BadValue, "Field 'locale' is invalid in: %s%s", p.spec, hint)
	}
	p.Backwards = strings.HasPrefix(p.Locale, "fr_CA")
	if p.backwards != nil {
		p.Backwards = *p.backwards
	}
	if p.Backwards && p.Strength == 1 {
		return mongoerror.New(mongoerror.BadValue, "'backwards' is invalid with 'strength' of 1 in: %s", p.spec)
	}
	if p.CaseFirst != "off" && !p.CaseLevel && p.Strength < 3 {
		return mongoerror.New(mongoerror.BadValue, "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2 in: %s", p.spec)
	}
	return nil
}

func wrongType(name string, v bsoncore.Value, expected string) error {
	return mongoerror.New(mongoerror.TypeMismatch, "BSON field 'collation.%s' is the wrong type '%s', expected %s", name, mongoerror.TypeName(v.Type), expected)
}

func text(name string, v bsoncore.Value) (string, error) {
	s, ok := v.StringValueOK()
	if !ok {
		return "", wrongType(name, v, "type 'string'")
	}
	return s, nil
}

func boolean(name string, v bsoncore.Value) (bool, error) {
	b, ok := v.BooleanOK()
	if !ok {
		return false, wrongType(name, v, "type 'bool'")
	}
	return b, nil
}

func choice(name string, v bsoncore.Value, choices string) (string, error) {
	s, err := text(name, v)
	if err == nil && (s == "" || !isListed(choices, s)) {
		err = mongoerror.New(mongoerror.BadValue, "Enumeration value '%s' for field 'collation.%s' is not a valid value.", s, name)
	}
	return s, err
}

// strength takes any number, without its fraction.
func strength(v bsoncore.Value) (int, error) {
	n := 0.0
	switch v.Type {
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		n = float64(v.AsInt64())
	case bsoncore.TypeDouble:
		n = v.Double()
	case bsoncore.TypeDecimal128:
		n = smallDecimal(v)
	default:
		return 0, wrongType("strength", v, "types '[long, int, decimal, double']")
	}
	switch n = math.Trunc(n); {
	case n > maxStrength:
		return 0, mongoerror.New(outOfBounds, "BSON field 'strength' value must be <= 5, actual value '%.0f'", n)
	case n < 0:
		return 0, mongoerror.New(outOfBounds, "BSON field 'strength' value must be >= 0, actual value '%.0f'", n)
	case n >= 1:
		return int(n), nil
	}
	return 0, mongoerror.New(mongoerror.BadValue, "Enumeration value '0' for field 'collation.strength' is not a valid value.")
}

// smallDecimal returns the decimals 1 to 5 and 0 for all others: nobody writes a strength so.
func smallDecimal(v bsoncore.Value) float64 {
	for n := 1; n <= maxStrength; n++ {
		if bytes.Equal(v.Data, bsoncore.AppendDecimal128(nil, decimalOne, uint64(n))) {
			return float64(n)
		}
	}
	return 0
}

// decimalOne is the upper half of small integers in decimal128: the exponent 0.
const decimalOne = 6176 << 49

// document returns the specification as MongoDB shows it.
func (s *specification) document() bsoncore.Document {
	return bsoncore.NewDocumentBuilder().
		AppendString("locale", s.Locale).
		AppendBoolean("caseLevel", s.CaseLevel).
		AppendString("caseFirst", s.CaseFirst).
		AppendInt32("strength", int32(s.Strength)).
		AppendBoolean("numericOrdering", s.NumericOrdering).
		AppendString("alternate", s.Alternate).
		AppendString("maxVariable", s.MaxVariable).
		AppendBoolean("normalization", s.Normalization).
		AppendBoolean("backwards", s.Backwards).
		AppendString("version", icuVersion).
		Build()
}

func simple() bsoncore.Document {
	return bsoncore.NewDocumentBuilder().AppendString("locale", "simple").Build()
}
