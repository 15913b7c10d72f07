package index

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/golang/geo/s2"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/geo"
	"github.com/pandodb/pando/document/internal/keyenc"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/path"
)

// decoded shows the values of a key, one after the other.
func decoded(t testing.TB, d *Definition, key []byte) string {
	t.Helper()
	var parts []string
	for i := range d.Components {
		if d.Components[i].Wildcard {
			v, _, rest, err := keyenc.Decode(nil, key, false)
			if err != nil {
				t.Fatal(err)
			}
			parts, key = append(parts, text(v)), rest
		}
		v, _, rest, err := keyenc.Decode(nil, key, d.Components[i].Kind == Descending)
		if err != nil {
			t.Fatal(err)
		}
		parts, key = append(parts, text(v)), rest
	}
	return strings.Join(parts, " ")
}

func TestEntries(t *testing.T) {
	for _, test := range []struct {
		index, doc string
		want       string // the keys; an exclamation mark behind those that are not exact
		multikey   uint64
	}{
		{`{"key": {"a": 1}}`, `{"a": 5}`, `5`, 0},
		{`{"key": {"a": 1}}`, `{"a": 5.0}`, `5!`, 0},
		{`{"key": {"a": 1}}`, `{}`, `null!`, 0},
		{`{"key": {"a": 1}}`, `{"a": null}`, `null`, 0},
		{`{"key": {"a": 1, "b": -1}}`, `{"a": ["y", "x"], "b": 1}`, `"x" 1, "y" 1`, 1},
		{`{"key": {"a": 1, "b": -1}}`, `{"a": 1, "b": [1, 2]}`, `1 2, 1 1`, 2},
		{`{"key": {"a": 1}}`, `{"a": [1, 1.0, 2]}`, `1!, 2`, 1},
		{`{"key": {"a": 1}}`, `{"a": []}`, `undefined`, 1},
		{`{"key": {"a": 1}, "collation": {"locale": "en"}}`, `{"a": 1}`, `1`, 0},
		{`{"key": {"a": 1}, "partialFilterExpression": {"b": {"$gt": 5}}}`, `{"a": 1, "b": 5}`, ``, 0},
		{`{"key": {"a": 1}, "partialFilterExpression": {"b": {"$gt": 5}}}`, `{"a": 1, "b": 6}`, `1`, 0},
		{`{"key": {"a": 1, "b": 1}, "sparse": true}`, `{"b": 6}`, `null 6!`, 0},
		{`{"key": {"a": 1, "b": 1}, "sparse": true}`, `{"c": 6}`, ``, 0},
		{`{"key": {"$**": 1}}`, `{"_id": 1, "a": {"b": 2}, "c": [3, {"d": {}}]}`, `"a.b" 2, "c" 3, "c.d" {}`, 1},
		{`{"key": {"a": 1, "b.$**": -1}}`, `{"a": 1, "b": {"x": 1, "y": [2, 3]}}`, `1 "b.x" 1, 1 "b.y" 3, 1 "b.y" 2`, 2},
		{`{"key": {"a": 1, "b.$**": 1}}`, `{"a": [7, 8]}`, `7 MinKey MinKey!, 8 MinKey MinKey!`, 1},
		{`{"key": {"g": "2dsphere"}}`, `{"a": 1}`, ``, 0},
		{`{"key": {"g": "2dsphere", "a": 1}}`, `{"a": [1, 2], "g": [10, 20]}`, `1261844451520561152 1!, 1261844451520561152 2!`, 2},
	} {
		d := parse(t, test.index)
		var e Entries
		if err := d.Append(&e, path.Document(document(t, test.doc))); err != nil {
			t.Errorf("%s: %s: %v", test.index, test.doc, err)
			continue
		}
		var keys []string
		for i, key := range e.Keys {
			s := decoded(t, d, key)
			if !e.Exact[i] {
				s += "!"
			}
			keys = append(keys, s)
		}
		if got := strings.Join(keys, ", "); got != test.want || e.Multikey != test.multikey {
			t.Errorf("%s: %s has keys %s (multikey %b), want %s (%b)", test.index, test.doc, got, e.Multikey, test.want, test.multikey)
		}
	}
}

func TestDocumentsThatCannotBeIndexed(t *testing.T) {
	many := `{"a": [1` + strings.Repeat(`,1`, maxKeys) + `]}`
	for _, test := range []struct {
		index, doc string
		code       mongoerror.Code
	}{
		{`{"key": {"a": 1, "b": 1}}`, `{"a": [1], "b": [2]}`, mongoerror.CannotIndexParallelArrays},
		{`{"key": {"a": "hashed"}}`, `{"a": [1]}`, codeHashedArray},
		{`{"key": {"a.0": 1}}`, `{"a": [{"0": 1}]}`, codeAmbiguousField},
		{`{"key": {"a": 1}}`, many, mongoerror.CannotBuildIndexKeys},
		{`{"key": {"g": "2dsphere"}}`, `{"g": 5}`, codeNoGeometry},
		{`{"key": {"g": "2dsphere"}}`, `{"g": [200, 0]}`, codeNoGeometry},
		{`{"key": {"g": "2dsphere"}}`, `{"g": {"type": "Circle", "coordinates": [1, 2]}}`, codeNoGeometry},
		{`{"key": {"g": "2dsphere"}}`, `{"g": {"type": "Polygon", "coordinates": [[[0, 0], [0, 1], [1, 1]]]}}`, codeNoGeometry},
		{`{"key": {"g": "2dsphere"}}`, `{"g": [[50, 60], [10, 10]]}`, codeNoGeometry},
		{`{"key": {"g": "2dsphere"}}`, `{"g": [{"type": "Point", "coordinates": [1, 2]}]}`, codeNoGeometry},
		{`{"key": {"g": "2dsphere"}}`, `{"g": [null]}`, codeNoGeometry},
	} {
		d := parse(t, test.index)
		var e Entries
		if err := d.Append(&e, path.Document(document(t, test.doc))); !errors.Is(err, test.code) || len(e.Keys) != 0 {
			t.Errorf("%s: %.80s has %d keys: %v, want %v", test.index, test.doc, len(e.Keys), err, test.code)
		}
	}
}

func TestHashesOfEqualValuesAreEqual(t *testing.T) {
	d := parse(t, `{"key": {"a": "hashed"}}`)
	var first, second Entries
	for _, pair := range [][2]string{{`{"a": 1}`, `{"a": 1.0}`}, {`{}`, `{"a": null}`}} {
		if err := errors.Join(d.Append(&first, path.Document(document(t, pair[0]))), d.Append(&second, path.Document(document(t, pair[1])))); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Keys[0], second.Keys[0]) || first.Exact[0] {
			t.Errorf("%s and %s: %x, %x", pair[0], pair[1], first.Keys[0], second.Keys[0])
		}
	}
	// The hash is part of the format of databases.
	if got := decoded(t, d, d.AppendValue(nil, 0, stringValue("pando"))); got != "4449015020679008037" {
		t.Errorf("the hash of pando is %s", got)
	}
}

// fields are Fields that cannot be had as a whole document.
type fields struct{ doc bsoncore.Document }

func (f fields) Lookup(name string) (bsoncore.Value, bool) { return path.Lookup(f.doc, name) }

func TestFieldsThatAreNoWhole(t *testing.T) {
	d := parse(t, `{"key": {"a": 1}}`)
	var e Entries
	if err := d.Append(&e, fields{document(t, `{"a": 1}`)}); err != nil || len(e.Keys) != 1 {
		t.Errorf("%d keys, %v", len(e.Keys), err)
	}
	if err := d.Append(&e, fields{document(t, `{"a": [1]}`)}); !errors.Is(err, errNotWhole) {
		t.Errorf("an array: %v", err)
	}
}

func TestGeometriesMeetTheirCells(t *testing.T) {
	d := parse(t, `{"key": {"g": "2dsphere"}}`)
	near, err := geo.Parse(bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: document(t, `{"type": "Polygon", "coordinates": [[[9, 9], [11, 9], [11, 11], [9, 11], [9, 9]]]}`)})
	if err != nil {
		t.Fatal(err)
	}
	cells, _ := near.Cells()
	bounds := d.Space(0).Cells(cells)
	var e Entries
	for doc, want := range map[string]bool{
		`{"g": {"type": "Point", "coordinates": [10, 10]}}`:                                                                        true,
		`{"g": {"type": "Point", "coordinates": [-100, 10]}}`:                                                                      false,
		`{"g": {"lng": 10, "lat": 10}}`:                                                                                            true,
		`{"g": {"type": "LineString", "coordinates": [[0, 10], [20, 10]]}}`:                                                        true,
		`{"g": {"type": "MultiPoint", "coordinates": [[-50, -60], [10, 10]]}}`:                                                     true,
		`{"g": {"type": "Polygon", "coordinates": [[[0, 0], [40, 0], [40, 40], [0, 40], [0, 0]]]}}`:                                true,
		`{"g": {"type": "MultiPolygon", "coordinates": [[[[-50, 0], [-40, 0], [-40, 10], [-50, 0]]]]}}`:                            false,
		`{"g": {"type": "GeometryCollection", "geometries": [{"type": "MultiLineString", "coordinates": [[[0, 10], [20, 10]]]}]}}`: true,
	} {
		if err := d.Append(&e, path.Document(document(t, doc))); err != nil {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		met := false
		for _, key := range e.Keys {
			for _, iv := range bounds.Intervals {
				met = met || bytes.Compare(iv.Lo(), key) <= 0 && bytes.Compare(key, iv.Hi()) < 0
			}
		}
		if met != want || len(e.Keys) > 2*geo.MostCells {
			t.Errorf("%s meets the polygon: %t (%d keys)", doc, met, len(e.Keys))
		}
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: 5}, {Key: "b", Value: bson.D{{Key: "c", Value: "text"}}}, {Key: "l", Value: bson.A{1, 2, 3}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{`{"key": {"a": 1}}`, `{"key": {"b.c": 1, "a": -1}}`, `{"key": {"a": "hashed"}}`} {
		d := parse(t, spec)
		var e Entries
		fields := path.Fields(path.Document(doc))
		if n := testing.AllocsPerRun(100, func() { err = errors.Join(err, d.Append(&e, fields)) }); n != 0 || err != nil || len(e.Keys) != 1 {
			t.Errorf("%s: %v allocations, %v", spec, n, err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	doc := document(b, `{"_id": 1, "a": 5, "b": {"c": "text"}, "l": [1, 2, 3]}`)
	for _, spec := range []string{`{"key": {"a": 1}}`, `{"key": {"b.c": 1, "a": -1}}`, `{"key": {"l": 1}}`, `{"key": {"a": "hashed"}}`, `{"key": {"$**": 1}}`} {
		b.Run(spec, func(b *testing.B) {
			d := parse(b, spec)
			var e Entries
			fields := path.Fields(path.Document(doc))
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Append(&e, fields); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestCircle(t *testing.T) {
	d := parse(t, `{"key": {"g": "2dsphere"}}`)
	b := d.Space(0).Cells(geo.Cover(s2.CapFromCenterAngle(s2.PointFromLatLng(s2.LatLngFromDegrees(10, 10)), 0.01)))
	for doc, want := range map[string]bool{`{"g": [10.3, 10.3]}`: true, `{"g": [12, 12]}`: false} {
		var e Entries
		if err := d.Append(&e, path.Document(document(t, doc))); err != nil {
			t.Fatal(err)
		}
		met := slices.ContainsFunc(b.Intervals, func(iv Interval) bool {
			return bytes.Compare(iv.Lo(), e.Keys[0]) <= 0 && bytes.Compare(e.Keys[0], iv.Hi()) < 0
		})
		if met != want || b.Exact {
			t.Errorf("%s is in the circle: %t", doc, met)
		}
	}
}
