package document

import (
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/number"
)

// A time series collection holds measurements: documents with a time, and mostly with a value that says what was measured (meta).
// MongoDB packs those of one meta and of about the same time into a bucket, a document with columns, because its storage keeps
// documents one by one. Here pages do that: records are stored in the order of
//
//	meta, time, a number that no other record has
//
// so that those of a source lie side by side, where compression finds what they have in common and a range of a source's times is a
// range of records. Each measurement stays a record of its own, so everything that reads and writes records works on it, nothing has to
// be unpacked, and a late measurement goes where it belongs. The order of the records stands in for the index of meta and time that
// MongoDB 7.0 makes by itself, and a query of a time alone leaps from one meta to the next. _id is not unique, as in MongoDB.
//
// A meta that is an array, or very long, is no part of an order that an index would have: from the first one on the records are only
// walked over (collection.loose).

// series is how a time series collection was created.
type series struct {
	timeField, metaField string // metaField may be empty
	granularity          string // "" when the bucket's bounds were given
	maxSpan              int64  // seconds
	order                *index.Definition
}

// maxSeriesMeta is how many bytes of a meta are in a record's key.
const maxSeriesMeta = 512

// seriesNumberBytes is the length of the number at the end of a record's key: an ObjectID.
const seriesNumberBytes = 12

// Codes of MongoDB that have no name.
const (
	codeMissingField mongoerror.Code = 40414
	codeUnknownField mongoerror.Code = 40415
)

// granularity is what a name for the distance of measurements stands for.
type granularity struct {
	span, rounding int64 // of a bucket, in seconds
}

func granularities() map[string]granularity {
	return map[string]granularity{
		"seconds": {span: 3600, rounding: 60},
		"minutes": {span: 86_400, rounding: 3600},
		"hours":   {span: 2_592_000, rounding: 86_400},
	}
}

// maxBucketSpan is the longest span of a bucket that may be asked for, in seconds.
const maxBucketSpan = 31_536_000

// parseSeries reads the timeseries option of the create command.
func parseSeries(v bsoncore.Value) (*series, error) {
	spec, ok := v.DocumentOK()
	if !ok {
		return nil, wrongType("create.timeseries", v, "type 'object'")
	}
	s := &series{}
	var maxSpan, rounding int64
	for _, e := range elementsOf(spec) {
		v, name := e.Value(), "create.timeseries."+e.Key()
		switch e.Key() {
		case "timeField", "metaField", "granularity":
			text, ok := v.StringValueOK()
			if !ok {
				return nil, wrongType(name, v, "type 'string'")
			}
			*map[string]*string{"timeField": &s.timeField, "metaField": &s.metaField, "granularity": &s.granularity}[e.Key()] = text
		case "bucketMaxSpanSeconds", "bucketRoundingSeconds":
			n, ok := number.Truncated(v)
			if !ok {
				return nil, wrongType(name, v, "types '[long, int, decimal, double']")
			}
			if n < 1 || n > maxBucketSpan {
				return nil, mongoerror.New(outOfRange, "BSON field '%s' value must be >= 1 and <= %d, actual value '%d'", name, maxBucketSpan, n)
			}
			*map[string]*int64{"bucketMaxSpanSeconds": &maxSpan, "bucketRoundingSeconds": &rounding}[e.Key()] = n
		default:
			return nil, mongoerror.New(codeUnknownField, "BSON field '%s' is an unknown field.", name)
		}
	}
	if _, err := spec.LookupErr("timeField"); err != nil {
		return nil, mongoerror.New(codeMissingField, "BSON field 'create.timeseries.timeField' is missing but a required field")
	}
	if err := s.checkFields(); err != nil {
		return nil, err
	}
	if err := s.bound(maxSpan, rounding); err != nil {
		return nil, err
	}
	return s, s.define()
}

// checkFields refuses names of fields that cannot be those of the time and the meta.
func (s *series) checkFields() error {
	switch {
	case s.metaField == "_id":
		return mongoerror.New(mongoerror.InvalidOptions, "'metaField' cannot be \"_id\"")
	case s.metaField != "" && s.metaField == s.timeField:
		return mongoerror.New(mongoerror.InvalidOptions, "'metaField' cannot be the same as 'timeField'")
	case strings.Contains(s.timeField+s.metaField, "\x00"): // which a name in BSON cannot hold
		return mongoerror.New(mongoerror.InvalidOptions, "'timeField' and 'metaField' must not contain a zero byte")
	case strings.Contains(s.timeField, "."):
		return mongoerror.New(mongoerror.InvalidOptions, "'timeField' must be a top-level field and not contain a '.'")
	case strings.Contains(s.metaField, "."):
		return mongoerror.New(mongoerror.InvalidOptions, "'metaField' must be a top-level field and not contain a '.'")
	}
	return nil
}

// bound settles how much time a bucket spans: as a granularity says, or as given.
func (s *series) bound(maxSpan, rounding int64) error {
	if s.granularity == "" && rounding > 0 {
		if maxSpan != rounding {
			return mongoerror.New(mongoerror.InvalidOptions, "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' need to be set and equal to each other")
		}
		s.maxSpan = maxSpan
		return nil
	}
	if s.granularity == "" {
		s.granularity = "seconds"
	}
	g, ok := granularities()[s.granularity]
	if !ok {
		return mongoerror.New(mongoerror.BadValue, "Enumeration value '%s' for field 'create.timeseries.granularity' is not a valid value.", s.granularity)
	}
	if rounding > 0 && rounding != g.rounding {
		return mongoerror.New(mongoerror.InvalidOptions, "Timeseries 'bucketRoundingSeconds' is not configurable with the provided granularity")
	}
	if s.maxSpan = g.span; maxSpan > 0 && maxSpan != g.span {
		return mongoerror.New(mongoerror.InvalidOptions,
			"Timeseries 'bucketMaxSpanSeconds' is not configurable to a value other than the default of %d for the provided granularity", g.span)
	}
	return nil
}

// define makes the definition of the index that the order of the records is.
func (s *series) define() (err error) {
	keys, name := bsoncore.NewDocumentBuilder(), s.timeField+"_1"
	if s.metaField != "" {
		keys.AppendInt32(s.metaField, 1)
		name = s.metaField + "_1_" + name
	}
	if s.timeField == "" || strings.HasPrefix(s.timeField, "$") || strings.HasPrefix(s.metaField, "$") {
		return nil // no index can be of such a field
	}
	spec := bsoncore.NewDocumentBuilder().AppendInt32("v", 2).AppendDocument("key", keys.AppendInt32(s.timeField, 1).Build()).
		AppendString("name", name).Build()
	s.order, err = index.Parse(spec, nil)
	return err
}

// document returns the option as listCollections shows it.
func (s *series) document() document {
	b := bsoncore.NewDocumentBuilder().AppendString("timeField", s.timeField)
	if s.metaField != "" {
		b.AppendString("metaField", s.metaField)
	}
	if s.granularity != "" {
		b.AppendString("granularity", s.granularity)
	} else {
		b.AppendInt32("bucketRoundingSeconds", int32(s.maxSpan))
	}
	return b.AppendInt32("bucketMaxSpanSeconds", int32(s.maxSpan)).Build()
}

// arrange returns a measurement as it is stored: the time, the meta with its fields sorted, and the rest. It fails when there is no time.
func (s *series) arrange(doc document) (document, error) {
	at, ok := doc.Lookup(s.timeField).DateTimeOK()
	if !ok {
		return nil, mongoerror.New(mongoerror.BadValue, "'%s' must be present and contain a valid BSON UTC datetime value", s.timeField)
	}
	start, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(doc)))
	dst = bsoncore.AppendDateTimeElement(dst, s.timeField, at)
	if s.metaField != "" {
		if meta, err := doc.LookupErr(s.metaField); err == nil {
			dst = appendSorted(dst, s.metaField, meta)
		}
	}
	for _, e := range elementsOf(doc) {
		if key := e.Key(); key != s.timeField && (key != s.metaField || s.metaField == "") {
			dst = append(dst, e...)
		}
	}
	return bsoncore.AppendDocumentEnd(dst, start)
}

// appendSorted appends an element of which all documents have their fields sorted by name: so metas that differ in that only are one.
func appendSorted(dst []byte, name string, v bsoncore.Value) []byte {
	if v.Type != bsoncore.TypeEmbeddedDocument && v.Type != bsoncore.TypeArray {
		return bsoncore.AppendValueElement(dst, name, v)
	}
	list := elementsOf(document(v.Data))
	if v.Type == bsoncore.TypeEmbeddedDocument {
		slices.SortStableFunc(list, func(a, b bsoncore.Element) int { return strings.Compare(a.Key(), b.Key()) })
	}
	dst = bsoncore.AppendHeader(dst, v.Type, name)
	start, dst := bsoncore.AppendDocumentStart(dst)
	for _, e := range list {
		dst = appendSorted(dst, e.Key(), e.Value())
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, start) // which fails on a wrong place only
	return dst
}

// appendPlace appends the meta and the time of a measurement, as the key of its record begins, and reports whether the records are in
// the order of an index with it.
func (s *series) appendPlace(dst []byte, doc document) (grown []byte, regular bool) {
	regular = true
	if s.metaField != "" {
		meta, err := doc.LookupErr(s.metaField)
		if err != nil {
			meta = bsoncore.Value{Type: bsoncore.TypeNull}
		}
		from := len(dst)
		dst = keyenc.Append(dst, meta, false, nil)
		regular = meta.Type != bsoncore.TypeArray
		if len(dst)-from > maxSeriesMeta {
			dst, regular = dst[:from+maxSeriesMeta], false
		}
	}
	return keyenc.Append(dst, doc.Lookup(s.timeField), false, nil), regular
}

// appendSeriesKey appends the key of a new measurement's record.
func (c *collection) appendSeriesKey(dst []byte, s *series, doc document) (grown []byte, regular bool) {
	dst, regular = s.appendPlace(dst, doc)
	number := c.store.newID()
	return append(dst, number[:]...), regular
}

// loosen notes, before a commit that needs it, that the records are in no order that an index would have.
func (w *writer) loosen(c *collection) error {
	if c.looseStored.Load() {
		return nil
	}
	c.loose.Store(true)
	return w.raise(raised{c: c, bits: 1})
}

// order returns the definition of the index that the order of the records is; nil: it is that of _id, byte by byte.
func (c *collection) order() *index.Definition {
	s := c.settings.Load().series
	switch {
	case s == nil:
		return c.ids
	case s.order == nil || c.loose.Load():
		return &index.Definition{TTL: -1}
	}
	return s.order
}

// onSeries is the error of what cannot be done with a time series collection.
func onSeries(ns namespace) error {
	return mongoerror.New(mongoerror.CommandNotSupportedOnView, "Namespace %s is a timeseries collection", ns)
}

// notSeries fails if the collection is a time series.
func (c *Collection) notSeries() error {
	if c.IsTimeSeries() {
		return onSeries(c.ns)
	}
	return nil
}

// IsTimeSeries reports whether there is such a collection and it is a time series.
func (c *Collection) IsTimeSeries() bool {
	x, err := c.use()
	return err == nil && x != nil && x.settings.Load().series != nil
}

// seriesOption returns what expireAfterSeconds of the create command means: a number without its fraction.
func seriesOption(v bsoncore.Value) (int64, error) {
	x, ok := number.Of(v)
	if !ok {
		return 0, wrongType("create.expireAfterSeconds", v, "types '[long, int, decimal, double']")
	}
	n, exact := x.Int64()
	switch {
	case n < 0 || x.IsNaN(): // which must not be zero, by which everything expires
		return 0, mongoerror.New(mongoerror.InvalidOptions, "TTL index 'expireAfterSeconds' option cannot be less than 0")
	case !exact && n == math.MaxInt64:
		return 0, mongoerror.New(mongoerror.InvalidOptions, "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number")
	}
	return n, nil
}

// checkSeriesOptions refuses options that a time series cannot have.
func checkSeriesOptions(options []bsoncore.Element) error {
	if !slices.ContainsFunc(options, func(e bsoncore.Element) bool { return e.Key() == "timeseries" }) {
		return nil
	}
	for _, e := range options {
		switch e.Key() {
		case "timeseries", "expireAfterSeconds", "collation", "storageEngine", "indexOptionDefaults":
		default:
			if e.Key() == "capped" && !truthy(e.Value()) { // says what is so anyway: Spring Data sends it with every create
				continue
			}
			return mongoerror.New(mongoerror.InvalidOptions, "'timeseries' is not allowed with '%s'", e.Key())
		}
	}
	return nil
}

// appendSeriesOptions appends the options of a time series as listCollections shows them.
func appendSeriesOptions(b *bsoncore.DocumentBuilder, spec document) error {
	if v, err := spec.LookupErr("expireAfterSeconds"); err == nil && v.Type != bsoncore.TypeNull { // null: collMod took it away
		n, err := seriesOption(v)
		if err != nil {
			return err
		}
		b.AppendInt64("expireAfterSeconds", n)
	}
	if v, err := spec.LookupErr("timeseries"); err == nil {
		s, err := parseSeries(v)
		if err != nil {
			return err
		}
		b.AppendDocument("timeseries", s.document())
	}
	return nil
}

// modification checks what collMod changes of a time series, and returns the option as it is stored: a granularity may become coarser
// by one step, and the span of buckets longer. The stored records are the same for all of them.
func (s *series) modification(e bsoncore.Element) (bsoncore.Element, error) {
	change, ok := e.Value().DocumentOK()
	if !ok {
		return nil, wrongType("collMod.timeseries", e.Value(), "type 'object'")
	}
	b := bsoncore.NewDocumentBuilder().AppendString("timeField", s.timeField)
	if s.metaField != "" {
		b.AppendString("metaField", s.metaField)
	}
	for _, part := range elementsOf(change) {
		switch name := part.Key(); name {
		case "granularity":
			text, _ := part.Value().StringValueOK()
			if _, known := granularities()[text]; !known {
				return nil, mongoerror.New(mongoerror.BadValue, "Enumeration value '%s' for field 'collMod.timeseries.granularity' is not a valid value.", text)
			}
			if s.granularity == "" || granularities()[text].span < granularities()[s.granularity].span {
				return nil, mongoerror.New(mongoerror.InvalidOptions,
					"Invalid transition for timeseries.granularity. Can only transition from 'seconds' to 'minutes' or 'minutes' to 'hours'.")
			}
			b.AppendString(name, text)
		case "bucketMaxSpanSeconds", "bucketRoundingSeconds":
			if n, ok := number.Truncated(part.Value()); ok && n < s.maxSpan {
				return nil, mongoerror.New(mongoerror.InvalidOptions, "Invalid transition for timeseries.%s: it cannot become smaller.", name)
			}
			b.AppendValue(name, part.Value())
		default:
			return nil, mongoerror.New(codeUnknownField, "BSON field 'collMod.timeseries.%s' is an unknown field.", name)
		}
	}
	return bsoncore.AppendDocumentElement(nil, "timeseries", b.Build()), nil
}

// modifiedExpiry checks a change of expireAfterSeconds, and returns it as it is stored: null for "off".
func (s *settings) modifiedExpiry(e bsoncore.Element) (bsoncore.Element, error) {
	if s.series == nil && !s.clustered() {
		return nil, mongoerror.New(mongoerror.InvalidOptions, "'expireAfterSeconds' option is only supported on collections clustered by _id")
	}
	if text, ok := e.Value().StringValueOK(); ok && text == "off" {
		return bsoncore.AppendNullElement(nil, "expireAfterSeconds"), nil
	}
	_, err := seriesOption(e.Value())
	return e, err
}
