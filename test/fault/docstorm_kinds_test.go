package fault

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
)

// mostCapped is how many documents a capped collection has at most.
const mostCapped = 50

// docRow is a document of a collection that is only inserted into.
type docRow struct {
	number  int32
	there   bool // it was acknowledged, and no power cut came that may have taken it
	durable bool // none may take it
}

// insertRow inserts the next number into one of the collections that have another order, and their own way to store.
func (s *docStorm) insertRow() {
	s.t.Helper()
	name := []string{"capped", "series"}[s.rng.IntN(2)]
	s.drawn++
	n := int32(s.drawn)
	doc := bson.D{{Key: "n", Value: n}, {Key: "at", Value: bson.NewDateTimeFromTime(time.Now())}, {Key: "of", Value: n % 3}}
	_, err := s.collection(name).Insert(ctx, doc)
	s.judge("insert into "+name, err)
	s.rows[name] = append(s.rows[name], docRow{n, err == nil, err == nil && s.profile == pando.Durable})
}

// lookAtRows reads those collections: what was acknowledged is there, unless newer ones took its place in a capped collection.
func (s *docStorm) lookAtRows() {
	s.t.Helper()
	for name, rows := range s.rows {
		var found []int32
		for doc, err := range s.collection(name).Find(ctx, nil, nil) {
			s.must("find", err)
			found = append(found, int32(doc.Lookup("n").AsInt64()))
		}
		if name == "capped" {
			if !slices.IsSorted(found) || len(found) > mostCapped {
				s.fatalf("%s has %v", name, found)
			}
			if len(found) > 0 {
				rows = slices.DeleteFunc(slices.Clone(rows), func(r docRow) bool { return len(found) == mostCapped && r.number < found[0] })
			}
		}
		for _, r := range rows {
			at := slices.Index(found, r.number)
			if at < 0 && r.there {
				s.fatalf("%s has not %d: %v", name, r.number, found)
			}
			if at >= 0 {
				found = slices.Delete(found, at, at+1)
			}
		}
		if len(found) > 0 {
			s.fatalf("%s has %v, which nobody wrote, or twice", name, found)
		}
	}
}

// docRetry is a write that failed and is to be carried out once.
type docRetry struct {
	session string
	insert  bool
	record  *docRecord // to insert
	update  bson.D
	change  func(r *docRecord)
	before  []*docRecord
}

func (r *docRetry) send(c *document.Collection, id int32) error {
	once := document.WithStatements(ctx, r.session, 1, 0)
	if r.insert {
		_, err := c.Insert(once, r.record.raw(id))
		return err
	}
	_, err := c.Update(once, byID(id), r.update, nil)
	return err
}

func (r *docRetry) apply(old *docRecord) *docRecord {
	if r.insert {
		return r.record
	}
	return old.with(r.change)
}

// writeOnce sends a write that is sent again when it fails.
func (s *docStorm) writeOnce(_ string, t *docTable, c *document.Collection) {
	s.t.Helper()
	id := s.id()
	s.drawn++
	r := &docRetry{session: fmt.Sprint("session", s.drawn), before: t.cells(id)}
	may, _ := t.presence(id, nil)
	if r.insert = !may; r.insert {
		r.record = s.record(newDocTable(s.written))
	} else {
		r.update, r.change = s.change()
	}
	err := r.send(c, id)
	s.judge("write once", err)
	s.wrote(t, id, r.apply, false, err)
	if err != nil {
		t.retries[id] = r
	}
}

// retry sends again what failed, unless the document has been written otherwise meanwhile.
func (s *docStorm) retry() {
	s.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		t := s.tables[name]
		if t.vague {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(t.retries)) {
			r := t.retries[id]
			if done, err := s.store.Outcome(r.session, 1, 0); done == nil {
				s.must("outcome", err)
				s.must("retry", r.send(s.collection(name), id))
			}
			t.possible[id] = r.before
			s.wrote(t, id, r.apply, false, nil)
		}
	}
}
