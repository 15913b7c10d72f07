package fault

import (
	"maps"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// expiring is a collection of documents that expire.
type expiring struct {
	after time.Duration
	docs  map[int32]*expiringDoc
}

type expiringDoc struct {
	never   bool
	at      time.Time
	written time.Time
	p       presence
}

func (s *hourStorm) createExpiring() {
	s.t.Helper()
	index := func(name string, more ...bson.E) {
		spec := append(bson.D{{Key: "key", Value: bson.D{{Key: "at", Value: 1}}}, {Key: "name", Value: "at_1"}, {Key: "expireAfterSeconds", Value: 600}}, more...)
		s.works(bson.D{{Key: "createIndexes", Value: name}, {Key: "indexes", Value: bson.A{spec}}})
	}
	index("ttl")
	index("partial", bson.E{Key: "partialFilterExpression", Value: bson.D{{Key: "k", Value: bson.D{{Key: "$gt", Value: 0}}}}})
	s.works(bson.D{{Key: "create", Value: "series"}, {Key: "timeseries", Value: bson.D{{Key: "timeField", Value: "at"}, {Key: "metaField", Value: "k"}}}, {Key: "expireAfterSeconds", Value: 600}})
	for _, name := range []string{"ttl", "partial", "series"} {
		s.expiring[name] = &expiring{after: 600 * time.Second, docs: map[int32]*expiringDoc{}}
	}
}

func (s *hourStorm) anyExpiring() (string, *expiring) {
	names := slices.Sorted(maps.Keys(s.expiring))
	name := names[s.wireClient.rng.IntN(len(names))]
	return name, s.expiring[name]
}

func (s *hourStorm) insertExpiring() {
	name, x := s.anyExpiring()
	rng := s.wireClient.rng
	docs := bson.A{}
	var ids []int32
	for range 1 + rng.IntN(4) {
		s.drawn++
		at := time.Now().Add(time.Duration(rng.IntN(3600)-900) * time.Second).Truncate(time.Millisecond)
		d := &expiringDoc{at: at, written: time.Now()}
		k := rng.IntN(3)
		d.never = name == "partial" && k == 0
		var value any = at
		if name != "series" {
			switch rng.IntN(5) {
			case 0:
				value = bson.A{at.Add(time.Hour), at, "x"}
			case 1:
				value, d.never = "soon", true
			}
		}
		docs = append(docs, bson.D{{Key: "_id", Value: s.drawn}, {Key: "at", Value: value}, {Key: "k", Value: k}})
		x.docs[s.drawn] = d
		ids = append(ids, s.drawn)
	}
	_, failed := s.tried(bson.D{{Key: "insert", Value: name}, {Key: "documents", Value: docs}})
	for _, id := range ids {
		if x.docs[id].p = isThere; failed {
			x.docs[id].p = mayBe
		}
	}
}

// changeExpiry changes after how long documents expire. It has to be certain.
func (s *hourStorm) changeExpiry() {
	if s.fault != "" || s.fails.Load() {
		return
	}
	name, x := s.anyExpiring()
	s.lookAtExpiring()
	seconds := int64(s.wireClient.rng.IntN(3000))
	command := bson.D{{Key: "collMod", Value: name}}
	if name == "series" {
		command = append(command, bson.E{Key: "expireAfterSeconds", Value: seconds})
	} else {
		command = append(command, bson.E{Key: "index", Value: bson.D{{Key: "name", Value: "at_1"}, {Key: "expireAfterSeconds", Value: seconds}}})
	}
	if _, failed := s.tried(command); !failed {
		for _, d := range x.docs { // what may have gone by the old time
			if d.p == isThere && !d.never && time.Now().After(d.at.Add(x.after)) {
				d.p = mayBe
			}
		}
		x.after = time.Duration(seconds) * time.Second
		s.settle()
	}
}

// lookAtExpiring looks whether what has expired is gone, and nothing else.
func (s *hourStorm) lookAtExpiring() {
	if s.fails.Load() {
		return
	}
	for name, x := range s.expiring {
		reply := s.works(bson.D{{Key: "find", Value: name}, {Key: "batchSize", Value: 100_000}})
		found := map[int32]bool{}
		for _, doc := range s.batch(reply, "firstBatch") {
			found[doc.Lookup("_id").Int32()] = true
		}
		now := time.Now()
		for id, d := range x.docs {
			deadline := d.at.Add(x.after)
			late := s.quiet
			for _, t := range []time.Time{deadline, d.written} {
				if t.After(late) {
					late = t
				}
			}
			switch {
			case found[id] && !d.never && now.Sub(late) > time.Minute+slack:
				s.fatalf("%s: %d should have expired at %v", name, id, deadline)
			case !found[id] && d.p == isThere && (d.never || now.Before(deadline)):
				s.fatalf("%s: %d has gone before %v", name, id, deadline)
			}
			if !found[id] {
				delete(x.docs, id)
			} else {
				d.p = isThere
			}
		}
	}
}
