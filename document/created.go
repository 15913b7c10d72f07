package document

import (
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/notation"
	"github.com/pandodb/pando/document/internal/number"
)

// cappedUnit is what the size of a capped collection is a multiple of, as MongoDB has it.
const cappedUnit = 256

// outOfRange is MongoDB's code for a number that a command's field cannot be.
const outOfRange mongoerror.Code = 51024

// asCreated returns the options that a new collection or view keeps, and that listCollections shows: what was left to defaults is
// written out, and what says nothing is left out. It changes nothing in options that it has returned.
func asCreated(spec document) (document, error) {
	elements, err := spec.Elements()
	if err != nil {
		return nil, malformed("%v", err)
	}
	if err := checkSeriesOptions(elements); err != nil {
		return nil, err
	}
	capped, view, staged := false, false, false
	for _, e := range elements {
		capped = capped || e.Key() == "capped" && truthy(e.Value())
		view, staged = view || e.Key() == "viewOn", staged || e.Key() == "pipeline"
	}
	b := bsoncore.NewDocumentBuilder()
	for _, e := range elements {
		name, v := e.Key(), e.Value()
		doc, isDocument := v.DocumentOK()
		switch {
		case name == "capped":
			if capped {
				b.AppendBoolean(name, true)
			}
		case (name == "size" || name == "max") && v.IsNumber():
			if !capped {
				return nil, mongoerror.New(mongoerror.InvalidOptions,
					"the 'capped' field needs to be true when either the 'size' or 'max' fields are present")
			}
			if err := appendBound(b, name, name, v); err != nil {
				return nil, err
			}
		case name == "collation" && isDocument && len(doc) == len(emptyDocument()):
			return nil, mongoerror.New(codeMissingField, "BSON field 'create.collation.locale' is missing but a required field")
		case name == "collation" && isDocument:
			c, err := collation.Parse(doc)
			if err != nil {
				return nil, err
			}
			if c != nil {
				b.AppendDocument(name, c.Document())
			}
		case name == "clusteredIndex" && v.Type != bsoncore.TypeNull:
			if err := appendClustered(b, v, spec); err != nil {
				return nil, err
			}
		case name == "idIndex" && isDocument: // says what every collection has
			if err := checkIDIndex(doc, spec); err != nil {
				return nil, err
			}
		case (name == "validator" || name == "storageEngine" || name == "indexOptionDefaults") && isDocument && len(doc) == len(emptyDocument()):
		case name == "changeStreamPreAndPostImages" && isDocument && !truthy(doc.Lookup("enabled")):
		case name == "timeseries", name == "expireAfterSeconds":
		default:
			b.AppendValue(name, v)
		}
	}
	if view && !staged {
		b.AppendArray("pipeline", bsoncore.NewArrayBuilder().Build())
	}
	if err := appendSeriesOptions(b, spec); err != nil {
		return nil, err
	}
	if view {
		return ofView(b.Build())
	}
	return b.Build(), nil
}

// ofView returns what a view keeps of the options that it is created with. The others are checked, as those of a collection are, and
// say nothing about a view.
func ofView(spec document) (document, error) {
	if _, err := parseSettings(spec); err != nil {
		return nil, err
	}
	b := bsoncore.NewDocumentBuilder()
	for _, e := range elementsOf(spec) {
		switch e.Key() {
		case "viewOn", "pipeline", "collation":
			b.AppendValue(e.Key(), e.Value())
		case "changeStreamPreAndPostImages": // what is switched off is not there any more
			return nil, mongoerror.New(mongoerror.InvalidOptions, "option not supported on a view: %s", e.Key())
		}
	}
	return b.Build(), nil
}

// checkIDIndex refuses what cannot be the index of _id of a collection that is created with the options of spec.
func checkIDIndex(x, spec document) error {
	for _, other := range []string{"viewOn", "autoIndexId"} {
		if _, err := spec.LookupErr(other); err == nil {
			return mongoerror.New(mongoerror.InvalidOptions, "'idIndex' is not allowed with '%s'", other)
		}
	}
	for _, e := range elementsOf(x) {
		switch e.Key() {
		case "key", "name", "v", "ns", "collation":
		default:
			return mongoerror.New(mongoerror.InvalidIndexSpecificationOption, "The field '%s' is not valid for an _id index specification", e.Key())
		}
	}
	keys, isDocument := x.Lookup("key").DocumentOK()
	direction, isNumber := keys.Lookup("_id").AsInt64OK()
	switch _, err := x.LookupErr("name"); {
	case !isDocument:
		return mongoerror.New(mongoerror.FailedToParse, "The 'key' field is a required property of an index specification")
	case err != nil:
		return mongoerror.New(mongoerror.FailedToParse, "The 'name' field is a required property of an index specification")
	case !isIDPattern(keys) || !isNumber || direction != 1:
		return mongoerror.New(mongoerror.BadValue, "The field 'key' for an _id index must be {_id: 1}, but got %s", notation.Document(keys))
	}
	return sameCollation(x, spec)
}

// sameCollation refuses an index of _id with another collation than that of its collection. One that has none has that.
func sameCollation(x, spec document) error {
	own, has := x.Lookup("collation").DocumentOK()
	if !has {
		return nil
	}
	a, err := collation.Parse(own)
	if err != nil {
		return err
	}
	of, has := spec.Lookup("collation").DocumentOK()
	if !has {
		of = emptyDocument()
	}
	b, err := collation.Parse(of)
	if err == nil && !a.Equal(b) {
		err = mongoerror.New(mongoerror.BadValue, "'idIndex' must have the same collation as the collection.")
	}
	return err
}

// appendBound appends the size or the number of documents of a capped collection: a number of any type, without its fraction. Errors
// call it as it was given.
func appendBound(b *bsoncore.DocumentBuilder, name, given string, v bsoncore.Value) error {
	asked, _ := number.Of(v)
	n, _ := asked.Int64()
	if name == "max" {
		if n > math.MaxInt32 {
			return mongoerror.New(outOfRange, "BSON field '%s' value must be < 2147483648, actual value '%d'", given, n)
		}
		if n <= 0 {
			n = math.MaxInt32 // as many as there is room for
		}
		b.AppendInt32(name, int32(n))
		return nil
	}
	if n < 1 {
		return mongoerror.New(outOfRange, "BSON field '%s' value must be >= 1, actual value '%d'", given, n)
	}
	if n > 1<<50 {
		return mongoerror.New(outOfRange, "BSON field '%s' value must be <= 1125899906842624, actual value '%d'", given, n)
	}
	if n = (n + cappedUnit - 1) / cappedUnit * cappedUnit; n > math.MaxInt32 {
		b.AppendInt64(name, n)
	} else {
		b.AppendInt32(name, int32(n))
	}
	return nil
}

// Codes without a name that are about clustered collections.
const (
	clusteredNotUnique mongoerror.Code = 5979700
	clusteredLegacy    mongoerror.Code = 5979703
	clusteredVersion   mongoerror.Code = 5979704
	clusteredDropped   mongoerror.Code = 5979800
	clusteredSize      mongoerror.Code = 6049200
)

// appendClustered checks the clusteredIndex option of a new collection, and appends it as it is shown. All records are clustered by
// _id, so it changes nothing else.
func appendClustered(b *bsoncore.DocumentBuilder, v bsoncore.Value, spec document) error {
	doc, isDocument := v.DocumentOK()
	if !isDocument {
		if !truthy(v) {
			return nil
		}
		return mongoerror.New(clusteredLegacy, "The 'clusteredIndex' legacy format {clusteredIndex: <bool>} is only supported for specific internal collections and vice versa")
	}
	name := "_id_"
	for _, e := range elementsOf(doc) {
		switch key, v := e.Key(), e.Value(); key {
		case "v", "key", "unique":
		case "name":
			var isText bool
			if name, isText = v.StringValueOK(); !isText {
				return wrongType("create.name", v, "string")
			}
		default:
			return mongoerror.New(codeUnknownField, "BSON field 'create.%s' is an unknown field.", key)
		}
	}
	key, unique, version := doc.Lookup("key"), doc.Lookup("unique"), doc.Lookup("v")
	pattern, isDocument := key.DocumentOK()
	switch {
	case key.Type == 0:
		return mongoerror.New(codeMissingField, "BSON field 'create.key' is missing but a required field")
	case unique.Type == 0:
		return mongoerror.New(codeMissingField, "BSON field 'create.unique' is missing but a required field")
	case !isDocument:
		return wrongType("create.key", key, "object")
	case !truthy(unique):
		return mongoerror.New(clusteredNotUnique, "The clusteredIndex option requires unique: true to be specified")
	case !isIDPattern(pattern) || !isNumber(pattern.Lookup("_id"), 1):
		return mongoerror.New(mongoerror.InvalidIndexSpecificationOption, "The clusteredIndex option is only supported for key: {_id: 1}")
	case version.Type != 0 && !isNumber(version, 2):
		return mongoerror.New(clusteredVersion, "Invalid clusteredIndex specification %s; cannot create a clusteredIndex with v=%s", notation.Document(doc), version)
	case spec.Lookup("size").Type != 0:
		return mongoerror.New(clusteredSize, "'size' field for capped collections is not allowed on clustered collections. Did you mean 'capped: true' with 'expireAfterSeconds'?")
	}
	b.AppendDocument("clusteredIndex", bsoncore.NewDocumentBuilder().AppendInt32("v", 2).AppendDocument("key", idPattern()).
		AppendString("name", name).AppendBoolean("unique", true).Build())
	return nil
}

// isNumber reports whether a value is a whole number, of whatever type.
func isNumber(v bsoncore.Value, want int64) bool {
	if f, isDouble := v.DoubleOK(); isDouble {
		return f == float64(want)
	}
	n, isInt := v.AsInt64OK()
	return isInt && n == want
}

func idPattern() document { return bsoncore.NewDocumentBuilder().AppendInt32("_id", 1).Build() }

// IDIndex returns the specification of the index of _id, which every collection has, from the collection's options.
func IDIndex(options bson.Raw) bson.Raw {
	of := document(options)
	b := bsoncore.NewDocumentBuilder().AppendInt32("v", 2).AppendDocument("key", idPattern())
	if doc, ok := of.Lookup("clusteredIndex").DocumentOK(); ok {
		name, _ := doc.Lookup("name").StringValueOK()
		return bson.Raw(b.AppendString("name", name).AppendBoolean("unique", true).AppendBoolean("clustered", true).Build())
	}
	b.AppendString("name", "_id_")
	if c, ok := of.Lookup("collation").DocumentOK(); ok {
		b.AppendDocument("collation", c)
	}
	return bson.Raw(b.Build())
}
