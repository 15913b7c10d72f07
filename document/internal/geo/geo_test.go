package geo

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/golang/geo/s2"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/test/wellformed"
)

// value reads a value of Extended JSON.
func value(t testing.TB, s string) bsoncore.Value {
	t.Helper()
	var doc bson.Raw
	if err := bson.UnmarshalExtJSON([]byte(`{"v": `+s+`}`), true, &doc); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return bsoncore.Document(doc).Lookup("v")
}

// TestTranscript parses shapes and relates them: the first line of an input is the region or the geometry that is asked about, each
// of the others a geometry. What random shapes have to do with each other is compared with MongoDB's answers in package query.
func TestTranscript(t *testing.T) {
	datadriven.RunTest(t, "testdata/shapes", func(t *testing.T, d *datadriven.TestData) string {
		lines := strings.Split(strings.TrimSpace(d.Input), "\n")
		v := value(t, lines[0])
		var r *Region
		var g *Geometry
		var err error
		switch d.Cmd {
		case "box":
			r, err = ParseBox(v)
		case "polygon":
			r, err = ParsePolygon(v)
		case "circle":
			r, err = ParseCircle(v, false)
		case "cap":
			r, err = ParseCircle(v, true)
		default:
			g, err = Parse(v)
		}
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		if d.Cmd == "within" {
			ok := false
			if r, ok = NewRegion(g); !ok {
				return "no area\n"
			}
		}
		var b strings.Builder
		for _, line := range lines[1:] {
			other, err := Parse(value(t, line))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			switch d.Cmd {
			case "intersects":
				fmt.Fprintln(&b, Intersects(g, other))
			case "distance":
				p, _ := g.Point()
				radians, ok := other.SphereDistance(p)
				fmt.Fprintf(&b, "%.0f m %v\n", radians*EarthRadius, ok)
			default:
				fmt.Fprintln(&b, r.Contains(other))
			}
		}
		return b.String()
	})
}

// shape makes a random shape.
func shape(t testing.TB, r *rand.Rand) (*Geometry, string) {
	for {
		x, y, size := math.Round(r.Float64()*3400-1700)/10, math.Round(r.Float64()*1600-800)/10, math.Pow(10, r.Float64()*3-2)
		corner := func(dx, dy float64) []float64 { return []float64{x + dx*size, max(-89, min(89, y+dy*size))} }
		var spec any
		switch r.IntN(3) {
		case 0:
			spec = bson.M{"type": "Point", "coordinates": corner(0, 0)}
		case 1:
			spec = bson.M{"type": "LineString", "coordinates": [][]float64{corner(0, 0), corner(r.Float64(), 1), corner(1, 0)}}
		default:
			spec = bson.M{"type": "Polygon", "coordinates": [][][]float64{{corner(0, 0), corner(1, 0), corner(r.Float64(), 1), corner(0, 0)}}}
		}
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		if g, err := Parse(value(t, string(text))); err == nil {
			return g, string(text)
		}
	}
}

// TestCellsFindWhatIntersects holds the cells that an index is asked for against those that geometries have in it.
func TestCellsFindWhatIntersects(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	found := 0
	for range 400 {
		a, x := shape(t, r)
		cells, _ := a.Cells()
		for range 50 {
			b, y := shape(t, r)
			if r.IntN(2) == 0 {
				b, y = near(t, a, r)
			}
			related := Intersects(a, b)
			if region, ok := NewRegion(a); ok {
				related = related || region.Contains(b)
			}
			if !related {
				continue
			}
			found++
			if !meet(b, cells) {
				t.Errorf("seed %d: %s and %s intersect, and their cells do not", seed, x, y)
			}
		}
	}
	if found < 100 {
		t.Errorf("seed %d: only %d pairs intersect", seed, found)
	}
}

// near makes a point that may lie in a geometry.
func near(t testing.TB, g *Geometry, r *rand.Rand) (*Geometry, string) {
	p := g.point
	if len(g.polygons) > 0 {
		rect := g.polygons[0].polygon.RectBound()
		p = Point{rect.Lo().Lng.Degrees() + r.Float64()*rect.Size().Lng.Degrees(), rect.Lo().Lat.Degrees() + r.Float64()*rect.Size().Lat.Degrees()}
	}
	if !p.OnSphere() {
		p = Point{}
	}
	text := fmt.Sprintf(`{"type": "Point", "coordinates": [%v, %v]}`, p.X, p.Y)
	other, err := Parse(value(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return other, text
}

func meet(g *Geometry, cells []s2.CellID) bool {
	own, _ := g.Cells()
	for _, a := range own {
		for _, b := range cells {
			if a.Intersects(b) {
				return true
			}
		}
	}
	return false
}

// TestAnyPolygonIsCoveredOrRefused makes keys of polygons of any corners.
func TestAnyPolygonIsCoveredOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		degrees := rapid.SampledFrom([]int{-180, -179, -90, -1, 0, 1, 2, 45, 89, 90, 180})
		rings := bson.A{}
		for range rapid.IntRange(1, 2).Draw(t, "rings") {
			ring := bson.A{}
			for range rapid.IntRange(3, 6).Draw(t, "corners") {
				ring = append(ring, bson.A{degrees.Draw(t, "longitude"), degrees.Draw(t, "latitude")})
			}
			rings = append(rings, append(ring, ring[0]))
		}
		doc, err := bson.Marshal(bson.D{{Key: "type", Value: rapid.SampledFrom([]string{"Polygon", "MultiLineString"}).Draw(t, "type")}, {Key: "coordinates", Value: rings}})
		if err != nil {
			t.Fatal(err)
		}
		g, err := Parse(bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: doc})
		if err != nil {
			return
		}
		if cells, ok := g.Cells(); !ok || len(cells) == 0 {
			t.Fatalf("%d cells, %t", len(cells), ok)
		}
	})
}

// FuzzParse reads values that are BSON, but may be no geometries.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`[1, 2]`, `{"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}`, `{"type": "LineString", "coordinates": [[0, 0], [1, 1]]}`,
		`{"type": "GeometryCollection", "geometries": [{"type": "MultiPoint", "coordinates": [[1, 2]]}]}`, `[[0, 0], [1, 1], [2, 0]]`, `[[1, 1], 2]`,
	} {
		f.Add([]byte(bsoncore.NewDocumentBuilder().AppendValue("v", value(f, s)).Build()))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, ok := wellformed.Document(data)
		if !ok {
			return
		}
		v, err := doc.LookupErr("v")
		if err != nil {
			return
		}
		for _, err := range []error{second(Parse(v)), second(ParseBox(v)), second(ParsePolygon(v)), second(ParseCircle(v, true))} {
			if err != nil && mongoerror.CodeOf(err) == 0 {
				t.Errorf("%v: an error without a code: %v", v, err)
			}
		}
		if g, err := Parse(v); err == nil {
			g.Cells()
			g.SphereDistance(Point{1, 1})
			Intersects(g, g)
		}
	})
}

func second[T any](_ T, err error) error { return err }
