package document

import (
	"testing"
	"time"

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
