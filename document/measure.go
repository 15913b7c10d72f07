package document

import (
	"bytes"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// bucketMeasurements is how many measurements one of MongoDB's buckets holds at most.
const bucketMeasurements = 1000

// newMeasurement makes a document ready to be stored in a time series, and the key of its record.
func (w *writer) newMeasurement(c *collection, s *series, doc document) (arranged document, key []byte, err error) {
	if w.owner != nil {
		return nil, nil, seriesInTransaction(*c.name.Load(), "insert into")
	}
	if doc, err = s.arrange(doc); err != nil {
		return nil, nil, err
	}
	key, regular := c.appendSeriesKey(nil, s, doc)
	if !regular {
		err = w.loosen(c)
	}
	return doc, key, err
}

// appendKey appends the key of a document's record to the arena of its part.
func (b *batch) appendKey(p *part, id bsoncore.Value, doc document) {
	s := b.c.settings.Load().series
	if s == nil {
		p.arena = b.c.key(p.arena, id)
		return
	}
	regular := false
	p.arena, regular = b.c.appendSeriesKey(p.arena, s, doc)
	p.loose = p.loose || !regular
}

// replaceMeasurement stores another document in the place of an old one: under another key, when its meta or time is another.
func (w *writer) replaceMeasurement(c *collection, s *series, key []byte, old, doc document) error {
	doc, err := s.arrange(doc)
	if err != nil {
		return err
	}
	place, regular := s.appendPlace(nil, doc)
	place = append(place, key[len(key)-seriesNumberBytes:]...)
	if !regular {
		if err := w.loosen(c); err != nil {
			return err
		}
	}
	if !bytes.Equal(place, key) {
		if err := w.remove(c, key, old); err != nil {
			return err
		}
		old = nil
	}
	return w.put(c, place, old, doc)
}

// seriesInTransaction is the error of a write to a time series in a transaction.
func seriesInTransaction(ns namespace, what string) error {
	return mongoerror.New(mongoerror.OperationNotSupportedInTransaction, "Cannot %s a time-series collection in a multi-document transaction: %s", what, ns)
}

// isSeriesSpec reports whether options of the create command make a time series.
func isSeriesSpec(spec document) bool {
	_, err := spec.LookupErr("timeseries")
	return err == nil
}

// hasIndex reports whether the order of the records is shown as an index. s may be nil.
func (s *series) hasIndex() bool { return s != nil && s.metaField != "" && s.order != nil }

// ownIndex returns the index that a collection has without one having been made: that of _id, or the order of a time series.
func (c *collection) ownIndex() []IndexInfo {
	settings := c.settings.Load()
	switch s := settings.series; {
	case s == nil:
		return []IndexInfo{{Name: "_id_", Spec: IDIndex(bson.Raw(settings.spec)), Ready: true}}
	case s.hasIndex():
		return []IndexInfo{{Name: s.order.Name, Spec: bson.Raw(s.order.Spec), Ready: true, Multikey: c.loose.Load()}}
	}
	return nil
}

// checkSeriesIndex refuses indexes that a time series cannot have.
func (c *collection) checkSeriesIndex(def *index.Definition) error {
	if c.settings.Load().series == nil {
		return nil
	}
	kind := ""
	switch {
	case def.Unique:
		kind = "Unique"
	case def.TTL >= 0:
		kind = "TTL"
	default:
		return nil
	}
	return mongoerror.New(mongoerror.InvalidOptions, "%s indexes are not supported on time-series collections", kind)
}

// checkSeriesUpdate refuses updates of a time series that MongoDB 7.0 refuses: it changes the metas of all that match by their metas,
// and nothing else.
func (c *Collection) checkSeriesUpdate(filter any, u bsoncore.Value, o *UpdateOptions) error {
	x, err := c.use()
	if x == nil || err != nil {
		return err
	}
	s := x.settings.Load().series
	if s == nil {
		return nil
	}
	spec, err := toDocument(filter)
	if err != nil {
		return err
	}
	doc, _ := u.DocumentOK()
	problem := ""
	switch {
	case c.tx != nil:
		return seriesInTransaction(c.ns, "update")
	case !o.Many:
		problem = "perform a non-multi update on a time-series collection"
	case o.Upsert:
		problem = "perform an upsert on a time-series collection"
	case u.Type == bsoncore.TypeArray:
		problem = "perform an update on a time-series collection using a pipeline update"
	case !startsWithOperator(doc):
		problem = "perform an update on a time-series collection using a replacement document"
	case s.metaField == "":
		problem = "perform an update on a time-series collection that does not have a metaField"
	default:
		if problem = s.foreignCondition(spec); problem == "" && !s.changesMeta(doc) {
			problem = "perform an update on a time-series collection which updates a field that is not the metaField '" + s.metaField + "'"
		}
	}
	if problem == "" {
		return nil
	}
	return mongoerror.New(mongoerror.InvalidOptions, "Cannot %s", problem)
}

// ofMeta reports whether a path is the meta or leads into it.
func (s *series) ofMeta(path string) bool {
	first, _, _ := strings.Cut(path, ".")
	return first == s.metaField
}

// foreignCondition says what in a filter is about something else than the meta; "" when nothing is.
func (s *series) foreignCondition(filter document) string {
	for _, e := range elementsOf(filter) {
		switch key := e.Key(); key {
		case "$comment", "$jsonSchema", "$alwaysTrue", "$alwaysFalse":
		case "$expr", "$where":
			return "use " + key + " when performing an update or delete on a time-series collection"
		case "$and", "$or", "$nor":
			list, _ := e.Value().ArrayOK()
			for _, one := range elementsOf(document(list)) {
				part, _ := one.Value().DocumentOK()
				if problem := s.foreignCondition(part); problem != "" {
					return problem
				}
			}
		default:
			if !s.ofMeta(key) {
				return "perform an update or delete on a time-series collection when querying on a field that is not the metaField '" + s.metaField + "'"
			}
		}
	}
	return ""
}

// changesMeta reports whether a document of operators changes the meta only.
func (s *series) changesMeta(u document) bool {
	for _, operator := range elementsOf(u) {
		fields, _ := operator.Value().DocumentOK()
		for _, e := range elementsOf(fields) {
			to, renames := e.Value().StringValueOK()
			if !s.ofMeta(e.Key()) || renames && operator.Key() == "$rename" && !s.ofMeta(to) {
				return false
			}
		}
	}
	return true
}

// seriesStats is what collStats says of a time series: how many buckets its measurements would fill at least, and that they never need
// what buckets need. Opened and closed buckets are not counted, as there are none.
func (s *Sizes) seriesStats(ns namespace) bson.D {
	buckets := (s.Documents + bucketMeasurements - 1) / bucketMeasurements
	d := bson.D{
		{Key: "bucketsNs", Value: ns.database + "." + bucketsPrefix + ns.collection}, {Key: "bucketCount", Value: Number(buckets)},
		{Key: "avgBucketSize", Value: Number(s.DataBytes / max(1, buckets))},
	}
	for _, name := range []string{"numBucketInserts", "numBucketUpdates", "numBucketsOpenedDueToMetadata", "numBucketsClosedDueToCount",
		"numBucketsClosedDueToSchemaChange", "numBucketsClosedDueToSize", "numBucketsClosedDueToTimeForward",
		"numBucketsClosedDueToTimeBackward", "numBucketsClosedDueToMemoryThreshold", "numCommits", "numWaits"} {
		d = append(d, bson.E{Key: name, Value: int32(0)})
	}
	return append(d, bson.E{Key: "numMeasurementsCommitted", Value: Number(s.Documents)})
}
