package document

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestTimesBefore1970AreNone: operations have times from 1970 on. While the system's clock is set to an earlier moment they have the first
// ones, and not such as lie in the future: those would stay when the clock is right again.
func TestTimesBefore1970AreNone(t *testing.T) {
	right := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, wrong := range []time.Time{{}, time.Unix(-1, 0), time.Unix(-1<<33+5, 0), time.Unix(0, 0)} {
		ticks := clock.NewManual(wrong)
		s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1, clock: ticks})
		if first, second := s.Tick(), s.Tick(); first.T != 0 || !second.After(first) {
			t.Errorf("at %v operations have the times %v and %v", wrong, first, second)
		}
		if ticks.Set(right); s.Tick().T != uint32(right.Unix()) {
			t.Errorf("after %v, at %v, the time of operations is %v", wrong, right, s.LastTime())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestExpiryOfCenturies: what lies further back than a duration reaches expires as anything else does, and what does not stays.
func TestExpiryOfCenturies(t *testing.T) {
	now := time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1, clock: clock.NewManual(now)})
	const years = 300
	seconds := int64(now.Sub(now.AddDate(-years/2, 0, 0)).Seconds()) * 2
	spec := bson.D{{Key: "timeseries", Value: bson.D{{Key: "timeField", Value: "at"}}}, {Key: "expireAfterSeconds", Value: seconds}}
	if err := s.Database("d").Create(t.Context(), "c", spec); err != nil {
		t.Fatal(err)
	}
	c := s.Database("d").Lookup("c")
	for _, at := range []time.Time{now.AddDate(-years-2, 0, 0), now.AddDate(-years+2, 0, 0), now.AddDate(-1, 0, 0)} {
		if _, err := c.Insert(t.Context(), bson.D{{Key: "at", Value: at}}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.DeleteExpired(t.Context()); n != 1 || err != nil {
		t.Errorf("%d measurements of 3 have expired, %v; want 1", n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
