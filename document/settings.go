package document

import (
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/collation"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// settings is what a collection was created with, parsed: immutable. spec is what listCollections shows.
type settings struct {
	spec        document
	format      Format
	compression pando.Compression

	capped   bool
	maxBytes int64
	maxCount int64

	schema     document  // the validator; nil: none
	validators sync.Pool // of *validator: parsed
	moderate   bool      // validationLevel
	warn       bool      // validationAction

	collation *collation.Collation
	images    bool // changeStreamPreAndPostImages

	series  *series // nil: no time series
	expires int64   // how many seconds after its time a measurement is deleted; -1: never

	viewOn   string
	pipeline bsoncore.Array
}

// spec returns the options as MongoDB's create command has them, which refuses those that contradict each other: nothing is left out here.
func (o *CollectionOptions) spec() (document, error) {
	if o == nil {
		return emptyDocument(), nil
	}
	d := bson.D{}
	add := func(name string, v any) { d = append(d, bson.E{Key: name, Value: v}) }
	if o.Capped {
		add("capped", true)
	}
	if o.Capped || o.SizeBytes != 0 {
		add("size", o.SizeBytes)
	}
	if o.MaxDocuments != 0 {
		add("max", o.MaxDocuments)
	}
	if o.Validator != nil {
		v, err := toDocument(o.Validator)
		if err != nil {
			return nil, err
		}
		add("validator", bson.Raw(v))
	}
	if o.ValidationLevel != "" {
		add("validationLevel", o.ValidationLevel)
	}
	if o.ValidationAction != "" {
		add("validationAction", o.ValidationAction)
	}
	if o.Collation != nil {
		v, err := toDocument(o.Collation)
		if err != nil {
			return nil, err
		}
		add("collation", bson.Raw(v))
	}
	if o.PreImages {
		add("changeStreamPreAndPostImages", bson.D{{Key: "enabled", Value: true}})
	}
	if o.ViewOn != "" {
		add("viewOn", o.ViewOn)
	}
	if o.ViewOn != "" || o.Pipeline != nil {
		stages, err := toPipeline(o.Pipeline)
		if err != nil {
			return nil, err
		}
		list := make(bson.A, len(stages))
		for i, stage := range stages {
			list[i] = bson.Raw(stage)
		}
		add("pipeline", list)
	}
	var own bson.D
	if o.Format != Template {
		own = append(own, bson.E{Key: "format", Value: nameOf(formats(), o.Format)})
	}
	if o.Compression != pando.DefaultCompression {
		own = append(own, bson.E{Key: "compression", Value: nameOf(compressions(), o.Compression)})
	}
	if own != nil {
		add("storageEngine", bson.D{{Key: "pando", Value: own}})
	}
	return toDocument(d)
}

// formats and compressions return the names in the storageEngine option.
func formats() map[string]Format {
	return map[string]Format{"template": Template, "bson": BSON, "json": AsJSON}
}

func compressions() map[string]pando.Compression {
	return map[string]pando.Compression{"none": pando.None, "s2": pando.S2, "zstd": pando.Zstd}
}

// nameOf returns the name of a value; "" when it has none.
func nameOf[V comparable](names map[string]V, v V) string {
	for name, x := range names {
		if x == v {
			return name
		}
	}
	return ""
}

// parseSettings reads the options of the create command.
func parseSettings(spec []byte) (*settings, error) {
	s := &settings{spec: spec, compression: pando.Zstd, expires: -1}
	elements, err := document(spec).Elements()
	if err != nil {
		return nil, malformed("%v", err)
	}
	for _, e := range elements {
		if err := s.set(e.Key(), e.Value()); err != nil {
			return nil, err
		}
	}
	if s.capped && s.maxBytes <= 0 {
		return nil, mongoerror.New(mongoerror.InvalidOptions, "the 'size' field is required when 'capped' is true")
	}
	if s.viewOn == "" && s.pipeline != nil {
		return nil, mongoerror.New(mongoerror.InvalidOptions, "'pipeline' requires 'viewOn' to also be specified")
	}
	if s.expires >= 0 && s.series == nil && !s.clustered() {
		return nil, mongoerror.New(mongoerror.InvalidOptions,
			"'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified")
	}
	if s.schema != nil {
		v, err := s.parseValidator()
		if err != nil {
			return nil, err
		}
		s.validators.Put(v)
	}
	return s, nil
}

// set takes one option.
func (s *settings) set(name string, v bsoncore.Value) (err error) {
	switch name {
	case "capped":
		s.capped = truthy(v)
		return nil
	case "size", "max":
		n, ok := v.AsInt64OK()
		if !ok {
			return wrongType("create."+name, v, "a number")
		}
		if name == "size" {
			s.maxBytes = n
		} else {
			s.maxCount = n
		}
		return nil
	case "validationLevel", "validationAction":
		return s.setValidation(name, v)
	case "viewOn":
		var ok bool
		if s.viewOn, ok = v.StringValueOK(); !ok {
			return wrongType("create.viewOn", v, "a string")
		}
		return nil
	case "pipeline":
		array, ok := v.ArrayOK()
		if !ok {
			return wrongType("create.pipeline", v, "an array")
		}
		s.pipeline = array
		return nil
	case "timeseries":
		s.series, err = parseSeries(v)
		return err
	case "expireAfterSeconds":
		s.expires, err = seriesOption(v)
		return err
	}
	return s.setDocument(name, v)
}

func (s *settings) setValidation(name string, v bsoncore.Value) error {
	text, _ := v.StringValueOK()
	switch {
	case name == "validationLevel" && text == "off":
		s.schema = nil
	case name == "validationLevel" && text == "moderate":
		s.moderate = true
	case name == "validationLevel" && text == "strict":
	case name == "validationAction" && text == "warn":
		s.warn = true
	case name == "validationAction" && text == "error":
	default:
		return mongoerror.New(mongoerror.BadValue, "Enumeration value '%s' for field '%s' is not a valid value.", v, name)
	}
	return nil
}

// setDocument takes an option whose value is a document.
func (s *settings) setDocument(name string, v bsoncore.Value) (err error) {
	doc, ok := v.DocumentOK()
	if !ok {
		return wrongType("create."+name, v, "an object")
	}
	switch name {
	case "validator":
		if level, _ := document(s.spec).Lookup("validationLevel").StringValueOK(); level == "off" {
			return nil
		}
		if len(doc) > len(emptyDocument()) {
			s.schema = doc
		}
		return nil
	case "collation":
		s.collation, err = collation.Parse(doc)
		return err
	case "changeStreamPreAndPostImages":
		s.images = truthy(doc.Lookup("enabled"))
		return nil
	case "storageEngine":
		return s.setStorage(doc)
	case "clusteredIndex", "idIndex", "indexOptionDefaults":
		return nil // records are clustered by _id as it is
	}
	return mongoerror.New(mongoerror.InvalidOptions, "create does not know the option '%s'", name)
}

// setStorage takes {pando: {format, compression}}; what is for other engines is not for us.
func (s *settings) setStorage(doc document) error {
	own, ok := doc.Lookup("pando").DocumentOK()
	if !ok {
		return nil
	}
	if v, err := own.LookupErr("format"); err == nil {
		name, _ := v.StringValueOK()
		if s.format, ok = formats()[name]; !ok {
			return mongoerror.New(mongoerror.BadValue, "storageEngine.pando.format is one of template, bson and json, not %s", v)
		}
	}
	if v, err := own.LookupErr("compression"); err == nil {
		name, _ := v.StringValueOK()
		if s.compression, ok = compressions()[name]; !ok {
			return mongoerror.New(mongoerror.BadValue, "storageEngine.pando.compression is one of none, s2 and zstd, not %s", v)
		}
	}
	return nil
}

// clustered reports whether the collection was created with a clusteredIndex: of _id, as there is no other.
func (s *settings) clustered() bool {
	_, err := document(s.spec).LookupErr("clusteredIndex")
	return err == nil
}

// byID reports whether records are stored under their _id, byte by byte: not those of capped collections and time series, and not
// where a collation makes different strings one.
func (s *settings) byID() bool { return !s.capped && s.series == nil && s.collation == nil }

// truthy is how MongoDB reads flags: true, and numbers other than zero.
func truthy(v bsoncore.Value) bool {
	if b, ok := v.BooleanOK(); ok {
		return b
	}
	n, ok := number.Of(v)
	return ok && !n.IsZero()
}

func wrongType(field string, v bsoncore.Value, want string) error {
	return mongoerror.New(mongoerror.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected %s", field, mongoerror.TypeName(v.Type), want)
}
