package document_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// openWithTTL opens a store that looks for expired documents every minute.
func openWithTTL(t *testing.T, fs *memfs.FS) (*document.Store, *document.Collection) {
	t.Helper()
	s, err := document.Open("db", &document.Options{Storage: pando.Options{FS: fs, MemoryBytes: 8 << 20}, TTLInterval: time.Minute})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	c, err := s.Collection(t.Context(), "c", nil)
	must(t, err)
	return s, c
}

// wantIDs checks which documents are there.
func wantIDs(t *testing.T, when string, c *document.Collection, want ...string) {
	t.Helper()
	var got []string
	for doc, err := range c.Find(t.Context(), nil, &document.FindOptions{Sort: document.JSON(`{"_id": 1}`)}) {
		must(t, err)
		got = append(got, doc.Lookup("_id").StringValue())
	}
	if len(got) != len(want) {
		t.Fatalf("%s: there are %v, and %v are wanted", when, got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: there are %v, and %v are wanted", when, got, want)
		}
	}
}

// TestExpiredDocumentsAreDeleted: by themselves, within an interval; nothing else is. After a crash that sets the clock back what had not
// expired stays for the time that is left by the new clock, and the oplog goes on behind what it has.
func TestExpiredDocumentsAreDeleted(t *testing.T) {
	fs := memfs.New()
	synctest.Test(t, func(t *testing.T) {
		_, c := openWithTTL(t, fs)
		seconds := int32(600)
		_, err := c.CreateIndex(t.Context(), document.Index{Keys: document.JSON(`{"at": 1}`), ExpireAfterSeconds: &seconds})
		must(t, err)
		begin := time.Now()
		for id, at := range map[string]any{
			"a now": begin, "b later": begin.Add(time.Hour), "c never": "no date", "d several": bson.A{begin.Add(time.Hour), begin.Add(time.Minute)},
		} {
			_, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: id}, {Key: "at", Value: at}})
			must(t, err)
		}
		time.Sleep(10*time.Minute - time.Second)
		wantIDs(t, "before anything expires", c, "a now", "b later", "c never", "d several")
		time.Sleep(31 * time.Second)
		synctest.Wait()
		wantIDs(t, "after ten minutes", c, "b later", "c never", "d several")
		time.Sleep(time.Minute)
		synctest.Wait()
		wantIDs(t, "after eleven minutes: the earliest date of several counts", c, "b later", "c never")
		fs = fs.CrashImage(memfs.Policy{Unsynced: memfs.None})
	})
	synctest.Test(t, func(t *testing.T) { // its clock begins where that of the first one did: it is set back
		s, c := openWithTTL(t, fs)
		before := lastTime(t, s)
		_, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: "e new"}, {Key: "at", Value: time.Now()}})
		must(t, err)
		if after := lastTime(t, s); !after.After(before) {
			t.Errorf("the oplog goes from %v to %v", before, after)
		}
		time.Sleep(9 * time.Minute)
		wantIDs(t, "after the clock was set back", c, "b later", "c never", "e new")
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		wantIDs(t, "twelve minutes later", c, "b later", "c never")
		time.Sleep(time.Hour)
		synctest.Wait()
		wantIDs(t, "an hour later", c, "c never")
	})
}

// lastTime is the time of the newest entry of the oplog.
func lastTime(t *testing.T, s *document.Store) bson.Timestamp {
	t.Helper()
	for entry, err := range oplog(s).Find(t.Context(), nil, &document.FindOptions{Sort: document.JSON(`{"$natural": -1}`), Limit: 1}) {
		must(t, err)
		var ts bson.Timestamp
		ts.T, ts.I = entry.Lookup("ts").Timestamp()
		return ts
	}
	return bson.Timestamp{}
}

// TestExpiryIsPausedAndHurried: while it is paused nothing expires, and a shorter interval counts at once.
func TestExpiryIsPausedAndHurried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := openWithTTL(t, memfs.New())
		seconds := int32(0)
		_, err := c.CreateIndex(t.Context(), document.Index{Keys: bson.D{{Key: "at", Value: 1}}, ExpireAfterSeconds: &seconds})
		must(t, err)
		s.SetTTL(time.Minute, true)
		_, err = c.Insert(t.Context(), bson.D{{Key: "_id", Value: "a"}, {Key: "at", Value: time.Now()}})
		must(t, err)
		time.Sleep(time.Hour + time.Second) // not when the next look begins
		wantIDs(t, "while it is paused", c, "a")
		s.SetTTL(time.Hour, false)
		time.Sleep(10 * time.Minute)
		wantIDs(t, "with an hour to go", c, "a")
		s.SetTTL(time.Second, false)
		time.Sleep(2 * time.Second)
		wantIDs(t, "with a second to go", c)
	})
}
