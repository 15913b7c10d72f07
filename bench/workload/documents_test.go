package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/pandodb/pando/bench/engine"
)

// shelf is an engine of documents that puts off what takes this long, and keeps no more than the emails.
type shelf struct {
	putOff time.Duration
	ids    map[string]int64
}

func (s *shelf) Create(int) error { return nil }

func (s *shelf) Insert(_ int, users []engine.User) error {
	for _, u := range users {
		s.ids[u.Email] = u.ID
	}
	return nil
}

func (s *shelf) ByID(_ int, id int64) (string, error)          { return userEmail(int(id)), nil }
func (s *shelf) ByEmail(_ int, email string) (int64, error)    { return s.ids[email], nil }
func (s *shelf) ByCity(int, string, int) (int, error)          { return 0, engine.ErrUnsupported }
func (s *shelf) LoadFlights(*engine.Table) error               { return nil }
func (s *shelf) LateFlights(origin string, _ int) (int, error) { return 0, engine.ErrUnsupported }
func (s *shelf) Settle() error                                 { time.Sleep(s.putOff); return nil }
func (s *shelf) Compact() error                                { return nil }
func (s *shelf) Close() error                                  { return nil }

// The scale is what is stored, of which only equal amounts are compared.
func TestScalesOfDocuments(t *testing.T) {
	t.Setenv(DataVariable, "")
	want := map[string]string{"documents": "200 users", "documents-large": "2,000 users", "documents-durable": "200 users",
		"documents-flights": "666 made up flights", "documents-many": "3 collections"}
	for _, w := range documents() {
		if got := w.Scale(Sizes{Documents: 2000, Collections: 3}); got != want[w.Name] {
			t.Errorf("%s: %q, want %q", w.Name, got, want[w.Name])
		}
	}
	for _, w := range documents() {
		if got := w.Bytes(Sizes{Documents: 2000, Collections: 3, Records: 1}); got != 3000*userBytes {
			t.Errorf("%s: %d bytes", w.Name, got)
		}
	}
	t.Setenv(DataVariable, t.TempDir())
	if got := flightsScale(Sizes{Documents: 2000}); got != "real flights" {
		t.Errorf("%q", got)
	}
}

// Engines of documents are charged with what they put off, as all others: to fill a collection is compared with and without it.
func TestWhatDocumentsPutOffIsCharged(t *testing.T) {
	t.Setenv(DataVariable, "")
	const putOff = 10 * time.Millisecond
	d := engine.Driver{Name: "shelf", Classes: map[engine.Class]string{engine.Relaxed: "", engine.Durable: ""},
		OpenDocuments: func(engine.Options) (engine.Documents, error) { return &shelf{putOff, map[string]int64{}}, nil }}
	for _, w := range All() {
		if !w.Documents {
			continue
		}
		spec := Spec{Engine: d.Name, Workload: w.Name, Class: w.Class.String(), Dir: t.TempDir(), Sizes: Sizes{Documents: 100, Collections: 2, MemoryMB: 16}}
		cells, err := Execute(spec, d, w)
		if err != nil {
			t.Fatal(err)
		}
		charged := false
		for i, c := range cells {
			if c.Failed != "" {
				t.Errorf("%s: %s", w.Name, c.Failed)
			}
			if name, settled := strings.CutSuffix(c.Name, ", settled"); settled && i > 0 {
				charged = !c.Info && cells[i-1].Name == name && c.Ops == cells[i-1].Ops && c.Wall >= cells[i-1].Wall+int64(putOff)
			}
		}
		if !charged {
			t.Errorf("%s: nothing is charged for settling: %+v", w.Name, cells)
		}
	}
}
