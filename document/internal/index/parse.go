package index

import (
	"bytes"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
	"github.com/pandodb/pando/document/internal/path"
)

// The versions of indexes that may be asked for; both are the same here.
const (
	oldestVersion  = 1
	currentVersion = 2
)

// maxTTL is the longest time that documents may live.
const maxTTL = 1<<31 - 1

// parser reads a specification.
type parser struct {
	d       *Definition
	spec    bsoncore.Document
	version int32
	key     bsoncore.Value
	named   bool
	sparse  bool                      // whether the specification has the option
	options map[string]bsoncore.Value // what is shown as it was given
}

// Parse reads an index specification as createIndexes has it ({key: ..., name: ..., unique: ...}); a missing name is made from the
// keys. Errors: CannotCreateIndex, BadValue, InvalidOptions, TypeMismatch as MongoDB has them.
func Parse(spec bsoncore.Document, defaultCollation *collation.Collation) (*Definition, error) {
	p := &parser{
		d: &Definition{TTL: -1, Collation: defaultCollation}, spec: bytes.Clone(spec), version: currentVersion, options: map[string]bsoncore.Value{},
	}
	elements := path.ElementsOf(p.spec)
	for name, v, ok := elements.Next(); ok; name, v, ok = elements.Next() {
		if !IsField(string(name)) {
			return nil, p.fail(mongoerror.InvalidIndexSpecificationOption, "The field '%s' is not valid for an index specification. Specification: %s", name, documentText(p.spec))
		}
		if err := p.field(string(name), v); err != nil {
			return nil, err
		}
	}
	if p.key.Type == 0 {
		return nil, p.fail(mongoerror.FailedToParse, "The 'key' field is a required property of an index specification")
	}
	if err := p.keyPattern(); err != nil {
		return nil, err
	}
	if !p.named {
		p.d.Name = nameOf(p.d.Keys)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	p.d.Prepared = p.d.Prepared && !p.d.Unique && p.d.kind != hashed && p.d.kind != wild
	p.d.Spec = p.document()
	return p.d, nil
}

// IsField reports whether a specification may have a field.
func IsField(name string) bool {
	switch name {
	case "key", "name", "v", "unique", "sparse", "background", "hidden", "expireAfterSeconds", "partialFilterExpression", "collation",
		"wildcardProjection", "ns", "dropDups", "_id", "weights", "clustered", "storageEngine", "2dsphereIndexVersion", "prepareUnique",
		"default_language", "language_override", "textIndexVersion", "bits", "min", "max", "coarsestIndexedLevel", "finestIndexedLevel":
		return true
	}
	return false
}

// fail returns an error about the specification.
func (p *parser) fail(code mongoerror.Code, format string, args ...any) error {
	err := mongoerror.New(code, format, args...)
	err.Message = "Error in specification " + documentText(p.spec) + " :: caused by :: " + err.Message
	return err
}

// nameOf makes the name that drivers give an index: a_1_b_-1.
func nameOf(keys bsoncore.Document) string {
	var parts []string
	elements := path.ElementsOf(keys)
	for name, v, ok := elements.Next(); ok; name, v, ok = elements.Next() {
		direction, isString := v.StringValueOK()
		if n, ok := number.Of(v); ok && !isString {
			direction = n.String()
		}
		parts = append(parts, string(name), direction)
	}
	return strings.Join(parts, "_")
}

// field reads one field of the specification.
func (p *parser) field(name string, v bsoncore.Value) (err error) {
	switch name {
	case "key":
		p.key = v
		return p.object(name, v, &p.d.Keys)
	case "name":
		p.named = true
		return p.name(v)
	case "v":
		return p.indexVersion(v)
	case "unique":
		p.d.Unique, err = p.truth(name, v)
	case "prepareUnique":
		if p.d.Prepared, err = p.truth(name, v); p.d.Prepared {
			p.options[name] = v
		}
	case "sparse":
		p.sparse = true
		p.d.Sparse, err = p.truth(name, v)
	case "background":
		_, err = p.truth(name, v)
		p.options[name] = v
	case "hidden":
		hidden, ok := v.BooleanOK()
		if !ok {
			return p.fail(mongoerror.TypeMismatch, "The field 'hidden' must be a bool, but got %s", mongoerror.TypeName(v.Type))
		}
		p.d.Hidden = hidden
	case "expireAfterSeconds":
		return p.ttl(v)
	case "partialFilterExpression":
		return p.object(name, v, &p.d.PartialSpec)
	case "collation":
		return p.collation(v)
	case "wildcardProjection":
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return p.fail(mongoerror.TypeMismatch, "The field 'wildcardProjection' must be a non-empty object, but got %s", mongoerror.TypeName(v.Type))
		}
		p.d.WildcardProjection = v.Data
	default:
		return p.otherField(name, v)
	}
	return err
}

// otherField reads a field that has no meaning here, or one that MongoDB does not have.
func (p *parser) otherField(name string, v bsoncore.Value) error {
	switch name {
	case "ns", "dropDups", "_id":
	case "weights":
		if _, err := p.spec.LookupErr("key", "_fts"); err == nil { // as listIndexes shows a text index, and a restore creates it
			return p.fail(mongoerror.CannotCreateIndex, "text indexes are not supported: there is no text search")
		}
		return p.fail(mongoerror.CannotCreateIndex, "Invalid index specification %s; the field 'weights' can only be specified with text indexes", documentText(p.spec))
	case "clustered":
		return p.fail(mongoerror.CannotCreateIndex, "clustered indexes are not supported")
	case "storageEngine":
		if v.Type != bsoncore.TypeEmbeddedDocument {
			return p.fail(mongoerror.CannotCreateIndex, `"storageEngine" options must be a document if present`)
		}
		if len(v.Data) == bsoncore.EmptyDocumentLength {
			return p.fail(mongoerror.CannotCreateIndex, `Empty "storageEngine" options are invalid. Please remove the field or include valid options.`)
		}
		p.options[name] = v
	case "2dsphereIndexVersion":
		if n, ok := number.Of(v); !ok || n.Float64() < 1 || n.Float64() > sphereVersion {
			return p.fail(mongoerror.CannotCreateIndex, "unsupported geo index version { 2dsphereIndexVersion : %s }, only versions: [1,2,3] are supported", text(v))
		}
		p.options[name] = v
	default:
		p.options[name] = v
	}
	return nil
}

// object reads a document.
func (p *parser) object(name string, v bsoncore.Value, to *bsoncore.Document) error {
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return p.fail(mongoerror.TypeMismatch, "The field '%s' must be an object, but got %s", name, mongoerror.TypeName(v.Type))
	}
	*to = v.Data
	return nil
}

func (p *parser) name(v bsoncore.Value) error {
	name, ok := v.StringValueOK()
	switch {
	case !ok:
		return p.fail(mongoerror.TypeMismatch, "The field 'name' must be a string, but got %s", mongoerror.TypeName(v.Type))
	case name == "":
		return p.fail(mongoerror.CannotCreateIndex, "index name cannot be empty")
	case name == "*":
		return mongoerror.New(mongoerror.BadValue, "The index name '*' is not valid.")
	case strings.IndexByte(name, 0) >= 0:
		return p.fail(mongoerror.CannotCreateIndex, "index name cannot contain NUL bytes")
	}
	p.d.Name = name
	return nil
}

func (p *parser) indexVersion(v bsoncore.Value) error {
	n, ok := number.Of(v)
	if !ok {
		return p.fail(mongoerror.TypeMismatch, "The field 'v' must be a number, but got %s", mongoerror.TypeName(v.Type))
	}
	whole, exact := n.Int64()
	if !exact || whole != int64(int32(whole)) {
		return p.fail(mongoerror.BadValue, "Index version must be representable as a 32-bit integer, but got %s", text(v))
	}
	if whole < oldestVersion || whole > currentVersion {
		return p.fail(mongoerror.CannotCreateIndex, "Invalid index specification %s; cannot create an index with v=%d", documentText(p.spec), whole)
	}
	p.version = int32(whole)
	return nil
}

// truth reads a boolean; numbers will do.
func (p *parser) truth(name string, v bsoncore.Value) (bool, error) {
	if b, ok := v.BooleanOK(); ok {
		return b, nil
	}
	n, ok := number.Of(v)
	if !ok {
		return false, p.fail(mongoerror.TypeMismatch, "The field '%s has value %s: %s, which is not convertible to bool", name, name, text(v))
	}
	return !n.IsZero(), nil
}

func (p *parser) ttl(v bsoncore.Value) error {
	n, ok := number.Of(v)
	if !ok {
		return mongoerror.New(mongoerror.CannotCreateIndex, "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '%s'. Index spec: %s",
			mongoerror.TypeName(v.Type), documentText(p.spec))
	}
	switch f := n.Float64(); {
	case n.IsNaN():
		p.d.TTL = maxTTL // as MongoDB reads it, which is as good as never
	case f < 0:
		return mongoerror.New(mongoerror.CannotCreateIndex, "TTL index 'expireAfterSeconds' option cannot be less than 0. Index spec: %s", documentText(p.spec))
	case f > maxTTL:
		return mongoerror.New(mongoerror.CannotCreateIndex,
			"TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number. Index spec: %s", documentText(p.spec))
	default:
		p.d.TTL = int64(f)
	}
	return nil
}

func (p *parser) collation(v bsoncore.Value) (err error) {
	var spec bsoncore.Document
	if err := p.object("collation", v, &spec); err != nil {
		return err
	}
	if len(spec) == bsoncore.EmptyDocumentLength {
		return p.fail(mongoerror.BadValue, "The field 'collation' cannot be an empty object.")
	}
	p.d.Collation, err = collation.Parse(spec)
	return err
}

// document returns the specification as listIndexes shows it.
func (p *parser) document() bsoncore.Document {
	d := p.d
	b := bsoncore.NewDocumentBuilder().AppendInt32("v", p.version).AppendDocument("key", d.Keys).AppendString("name", d.Name)
	given := func(names ...string) {
		for _, name := range names {
			if v, ok := p.options[name]; ok {
				b.AppendValue(name, v)
			}
		}
	}
	given("background")
	if d.Unique {
		b.AppendBoolean("unique", true)
	}
	if d.Hidden {
		b.AppendBoolean("hidden", true)
	}
	if d.PartialSpec != nil {
		b.AppendDocument("partialFilterExpression", d.PartialSpec)
	}
	if p.sparse {
		b.AppendBoolean("sparse", d.Sparse)
	}
	if d.TTL >= 0 {
		b.AppendInt32("expireAfterSeconds", int32(d.TTL))
	}
	given("storageEngine", "default_language", "language_override", "textIndexVersion", "2dsphereIndexVersion", "bits", "min", "max",
		"coarsestIndexedLevel", "finestIndexedLevel")
	if d.kind == sphere && p.options["2dsphereIndexVersion"].Type == 0 {
		b.AppendInt32("2dsphereIndexVersion", sphereVersion)
	}
	if d.Collation != nil {
		b.AppendDocument("collation", d.Collation.Document())
	}
	if d.WildcardProjection != nil {
		b.AppendDocument("wildcardProjection", d.WildcardProjection)
	}
	given("prepareUnique")
	return b.Build()
}
