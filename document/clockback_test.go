package document_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// newestEntry returns the time of the newest entry of the oplog.
func newestEntry(t testing.TB, s *document.Store) bson.Timestamp {
	t.Helper()
	entry, err := s.Database("local").Lookup("oplog.rs").FindOne(ctx, nil, &document.FindOptions{Sort: document.JSON(`{"$natural": -1}`)})
	must(t, err)
	sec, n := entry.Lookup("ts").Timestamp()
	return bson.Timestamp{T: sec, I: n}
}

// TestTimeGoesOnWhereTheLogEnds opens a store again: in the second in which it was closed, and with a clock that has been set back. The
// time of operations goes on behind that of the oplog's newest entry.
func TestTimeGoesOnWhereTheLogEnds(t *testing.T) {
	for name, pause := range map[string]time.Duration{"in the same second": 0, "with the clock set back": time.Hour} {
		var fs *memfs.FS
		var before bson.Timestamp
		synctest.Test(t, func(t *testing.T) {
			fs = memfs.New()
			s := open(t, fs)
			time.Sleep(pause)
			c := collection(t, s, "c", nil)
			for range 50 {
				_, err := c.Insert(ctx, bson.D{})
				must(t, err)
			}
			before = newestEntry(t, s)
			if now := s.LastTime(); now.Compare(before) < 0 {
				t.Errorf("%s: the time is %v, behind the oplog's %v", name, now, before)
			}
			must(t, s.Close())
		})
		// In each bubble the clock begins at the same moment: it is set back by the time that the first one took.
		synctest.Test(t, func(t *testing.T) {
			s := open(t, fs)
			if now := s.LastTime(); now.Compare(before) < 0 {
				t.Errorf("%s: the time is %v after reopening, behind the oplog's %v", name, now, before)
			}
			_, err := s.Database("test").Lookup("c").Insert(ctx, bson.D{})
			must(t, err)
			newest := newestEntry(t, s)
			if newest.Compare(before) <= 0 || s.LastTime() != newest {
				t.Errorf("%s: the newest entry has the time %v, the time is %v, and was %v", name, newest, s.LastTime(), before)
			}
			must(t, s.Close())
		})
	}
}
