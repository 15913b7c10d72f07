package fault

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
)

// presence says whether something is there.
type presence uint8

const (
	isAbsent presence = iota
	isThere
	mayBe
)

// slack is how long after its time something may go on being there.
const slack = 3 * time.Second

// kept is something that the server keeps for a client.
type kept struct {
	name string
	used time.Time
	age  time.Duration // for how long it is kept
	lost bool          // in a restart
	gone bool          // it was used up
	use  func(k *kept)
}

// must reports whether it has to be there still, and may whether it may be.
func (k *kept) must() bool { return !k.lost && time.Since(k.used) < k.age-slack }
func (k *kept) may() bool  { return !k.lost && time.Since(k.used) < k.age+slack }

// keep notes that a thing is kept from now on.
func (s *hourStorm) keep(k *kept) {
	k.used = time.Now()
	s.things = append(s.things, k)
}

// useKept uses one of the things that are kept.
func (s *hourStorm) useKept() {
	s.things = slices.DeleteFunc(s.things, func(k *kept) bool { return k.gone })
	if len(s.things) == 0 {
		return
	}
	k := s.things[s.wireClient.rng.IntN(len(s.things))]
	s.note("use %s after %v, lost: %v", k.name, time.Since(k.used), k.lost)
	k.use(k)
}

func codeOf(reply bson.Raw) int64 {
	code, _ := reply.Lookup("code").AsInt64OK()
	return code
}

// expect sends a command that works where a thing is there, and fails with a code where it is not. It reports whether it worked.
func (s *hourStorm) expect(k *kept, command bson.D, without int64) (reply bson.Raw, worked bool) {
	must, may := k.must(), k.may()
	reply, failure := s.send(command)
	switch {
	case failure == "":
		if !may {
			s.fail(0, "%s: %v works after %v (lost: %v)", k.name, command, time.Since(k.used), k.lost)
		}
		k.used = time.Now()
		return reply, true
	case s.fault != "" || s.fails.Load():
		s.note("%v: %s", command, failure)
		if strings.Contains(failure, pando.ErrFailed.Error()) {
			s.fails.Store(true)
		}
	case codeOf(reply) == without && !must:
	default:
		s.fail(0, "%s: %v after %v (lost: %v): %v", k.name, command, time.Since(k.used), k.lost, reply)
	}
	k.gone = true
	return reply, false
}

// newSession draws a session: the field of a command, and the name that the store knows it by.
func (s *hourStorm) newSession() (bson.E, string) {
	s.drawn++
	name := fmt.Sprintf("h%015d", s.drawn)
	return bson.E{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: []byte(name)}}}}, name
}

// sessionAge is how long a session is kept that nobody uses.
const sessionAge = 30 * time.Minute

// keepSession writes in a session whose writes are sent again later.
func (s *hourStorm) keepSession() {
	lsid, name := s.newSession()
	number := int64(0)
	var last bson.D
	var lastID int32
	var lastChange func(n int32) int32
	noted := false // a write that finds nothing to do is not
	write := func() bool {
		id, command, change := s.one()
		number++
		last = append(command, lsid, bson.E{Key: "txnNumber", Value: number})
		lastID, lastChange = id, change
		reply, failed := s.tried(last)
		s.wrote(id, change, failed)
		noted = !failed && did(reply)
		return !failed
	}
	if !write() {
		return
	}
	s.sessions = append(s.sessions, name)
	s.keep(&kept{name: "session " + name, age: sessionAge, use: func(k *kept) {
		idle := time.Since(k.used)
		k.used = time.Now()
		switch n := s.wireClient.rng.IntN(4); {
		case n == 0:
			k.gone = !write()
		case n == 1 && number > 1: // what is over
			old := append(slices.Clone(last[:len(last)-1]), bson.E{Key: "txnNumber", Value: number - 1})
			reply, failure := s.send(old)
			switch {
			case failure == "" && noted && idle < sessionAge-slack && s.fault == "":
				s.fail(0, "%v: an old number works: %v", old, reply)
			case failure == "" || codeOf(reply) != 225:
				s.wrote(lastID, lastChange, true)
				k.gone = true
			}
		default:
			reply, failed := s.tried(last)
			if noted && idle < sessionAge-slack { // it was carried out before
				k.gone = failed
				return
			}
			s.wrote(lastID, lastChange, true)
			noted = !failed && did(reply)
		}
	}})
}

// did reports whether a write has changed something.
func did(reply bson.Raw) bool {
	n, _ := reply.Lookup("n").AsInt64OK()
	modified, isUpdate := reply.Lookup("nModified").AsInt64OK()
	_, err := reply.LookupErr("upserted")
	return n > 0 && (!isUpdate || modified > 0 || err == nil)
}

// keepTransaction begins a transaction.
func (s *hourStorm) keepTransaction() {
	lsid, name := s.newSession()
	s.sessions = append(s.sessions, name)
	session := bson.D{lsid, {Key: "txnNumber", Value: int64(1)}}
	var ids []int32
	insert := func() bson.D {
		s.drawn++
		ids = append(ids, s.drawn)
		s.held[s.drawn] = isAbsent
		return inTransaction(bson.D{{Key: "insert", Value: "held"}, {Key: "documents", Value: bson.A{byID(s.drawn)}}}, session, len(ids) == 1)
	}
	if _, failed := s.tried(insert()); failed {
		s.abort(session)
		return
	}
	began := time.Now()
	s.keep(&kept{name: "transaction " + name, age: time.Minute, use: func(k *kept) {
		k.used = began
		switch s.wireClient.rng.IntN(3) {
		case 0:
			if _, worked := s.expect(k, insert(), 251); !worked {
				s.abort(session)
			}
		case 1:
			k.gone = true
			s.abort(session)
		default:
			_, worked := s.expect(k, inTransaction(bson.D{{Key: "commitTransaction", Value: 1}}, session, false), 251)
			p := isAbsent
			if worked {
				p = isThere
			} else if s.fault != "" || s.fails.Load() {
				p = mayBe
			}
			for _, id := range ids {
				s.held[id] = p
			}
			k.gone = true
		}
		s.lookAtHeld()
	}})
}

// lookAtHeld compares what transactions have written with what they were told.
func (s *hourStorm) lookAtHeld() {
	reply, failed := s.tried(bson.D{{Key: "find", Value: "held"}, {Key: "batchSize", Value: 100_000}})
	if failed {
		return
	}
	found := map[int32]bool{}
	for _, doc := range s.batch(reply, "firstBatch") {
		found[doc.Lookup("_id").Int32()] = true
	}
	for id, p := range s.held {
		if found[id] != (p == isThere) && p != mayBe {
			s.fail(0, "%d of a transaction: there: %v, and should be %v", id, found[id], p)
		}
	}
}

// batch returns the documents of an answer.
func (s *hourStorm) batch(reply bson.Raw, name string) (docs []bson.Raw) {
	values, err := reply.Lookup("cursor", name).Array().Values()
	s.must("batch", err)
	for _, v := range values {
		docs = append(docs, bson.Raw(v.Document()))
	}
	return docs
}

// inOrder sorts by _id.
func inOrder() bson.E { return bson.E{Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}} }

// all returns what the collection has that is written to in all ways.
func (s *hourStorm) all() ([]bson.Raw, bool) {
	reply, failed := s.tried(bson.D{{Key: "find", Value: "c"}, inOrder(), {Key: "batchSize", Value: 100_000}})
	if failed {
		return nil, false
	}
	return s.batch(reply, "firstBatch"), true
}

func sameDocs(a, b []bson.Raw) bool {
	return slices.EqualFunc(a, b, func(x, y bson.Raw) bool { return bytes.Equal(x, y) })
}

// keepCursor opens a cursor.
func (s *hourStorm) keepCursor() {
	docs, ok := s.all()
	if !ok {
		return
	}
	rng := s.wireClient.rng
	k := &kept{age: 10 * time.Minute}
	command := bson.D{{Key: "find", Value: "c"}, inOrder(), {Key: "batchSize", Value: 2}}
	if rng.IntN(2) == 0 {
		command[1] = bson.E{Key: "hint", Value: bson.D{{Key: "_id", Value: 1}}}
	}
	var session bson.D
	if rng.IntN(2) == 0 {
		lsid, name := s.newSession()
		session = bson.D{lsid}
		s.sessions = append(s.sessions, name)
		if rng.IntN(2) == 0 {
			command = append(command, bson.E{Key: "noCursorTimeout", Value: true})
			k.age = sessionAge
		}
	}
	reply, failed := s.tried(append(command, session...))
	if failed {
		return
	}
	id := reply.Lookup("cursor", "id").Int64()
	if id == 0 {
		return
	}
	docs = docs[2:]
	k.name = fmt.Sprint("cursor ", id)
	k.use = func(k *kept) {
		n := 1 + rng.IntN(20)
		reply, worked := s.expect(k, append(bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: n}}, session...), 43)
		if !worked {
			return
		}
		got := s.batch(reply, "nextBatch")
		if n = min(n, len(docs)); !sameDocs(got, docs[:n]) {
			s.fail(0, "%s: %v instead of %v", k.name, got, docs[:n])
		}
		docs = docs[n:]
		k.gone = reply.Lookup("cursor", "id").Int64() == 0
		if k.gone && len(docs) > 0 {
			s.fail(0, "%s ends before %v", k.name, docs)
		}
	}
	s.keep(k)
}

// keepMoment reads at a moment that is read at again later.
func (s *hourStorm) keepMoment() {
	docs, ok := s.all()
	if !ok {
		return
	}
	find := func(concern bson.D) bson.D {
		return bson.D{{Key: "find", Value: "c"}, inOrder(), {Key: "batchSize", Value: 100_000}, {Key: "readConcern", Value: concern}}
	}
	concern := bson.D{{Key: "level", Value: "snapshot"}}
	reply, failed := s.tried(find(concern))
	if failed {
		return
	}
	seconds, counter := reply.Lookup("cursor", "atClusterTime").Timestamp()
	name := fmt.Sprintf("moment %d.%d", seconds, counter)
	for _, k := range s.things {
		if k.name == name {
			k.used = time.Now()
			return
		}
	}
	concern = append(concern, bson.E{Key: "atClusterTime", Value: bson.Timestamp{T: seconds, I: counter}})
	s.keep(&kept{name: name, age: 5 * time.Minute, use: func(k *kept) {
		reply, worked := s.expect(k, find(concern), 239)
		if worked && !sameDocs(s.batch(reply, "firstBatch"), docs) {
			s.fail(0, "%s: %v instead of %v", name, reply, docs)
		}
	}})
}

// toldNumber is a document that change streams tell of.
type toldNumber struct {
	n    int32
	sure bool
}

// tell inserts what change streams tell of.
func (s *hourStorm) tell() {
	s.drawn++
	_, failed := s.tried(bson.D{{Key: "insert", Value: "told"}, {Key: "documents", Value: bson.A{append(byID(s.drawn), bson.E{Key: "pad", Value: make([]byte, s.wireClient.rng.IntN(3000))})}}})
	s.told = append(s.told, toldNumber{s.drawn, !failed && !s.cutting.Load() && !s.fails.Load()})
}

// keepStream opens a change stream.
func (s *hourStorm) keepStream() {
	open := func(after bson.Raw) bson.D {
		stage := bson.D{}
		if after != nil {
			stage = bson.D{{Key: "resumeAfter", Value: after}}
		}
		return bson.D{{Key: "aggregate", Value: "told"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$changeStream", Value: stage}}}}, {Key: "cursor", Value: bson.D{}}}
	}
	reply, failed := s.tried(open(nil))
	if failed {
		return
	}
	id, next := reply.Lookup("cursor", "id").Int64(), len(s.told)
	token := slices.Clone(reply.Lookup("cursor", "postBatchResumeToken").Document())
	take := func(name string, docs []bson.Raw, reply bson.Raw) {
		for _, event := range docs {
			n := event.Lookup("documentKey", "_id").Int32()
			for next < len(s.told) && s.told[next].n != n && !s.told[next].sure {
				next++
			}
			if next == len(s.told) || s.told[next].n != n {
				s.fail(0, "%s tells of %v, and should of %v", name, event, s.told[min(next, len(s.told)-1):])
				return
			}
			next++
		}
		token = slices.Clone(reply.Lookup("cursor", "postBatchResumeToken").Document())
		if len(docs) == 0 && s.fault == "" {
			for _, x := range s.told[next:] {
				if x.sure {
					s.fail(0, "%s does not tell of %d", name, x.n)
					return
				}
			}
		}
	}
	s.keep(&kept{name: fmt.Sprint("stream ", id), age: 10 * time.Minute, use: func(k *kept) {
		for range 20 {
			reply, worked := s.expect(k, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "told"}, {Key: "maxTimeMS", Value: 10}}, 43)
			if worked {
				docs := s.batch(reply, "nextBatch")
				if take(k.name, docs, reply); len(docs) == 0 || s.t.Failed() {
					return
				}
				continue
			}
			if codeOf(reply) == 286 && s.fault == "" {
				return
			}
			if s.t.Failed() || s.fault != "" || s.fails.Load() {
				return
			}
			reply, failure := s.send(open(token))
			if failure != "" {
				if codeOf(reply) != 286 {
					s.fail(0, "%s cannot be resumed: %v", k.name, reply)
				}
				return
			}
			id, k.gone, k.lost, k.used = reply.Lookup("cursor", "id").Int64(), false, false, time.Now()
			k.name = fmt.Sprint("stream ", id)
			take(k.name, s.batch(reply, "firstBatch"), reply)
		}
	}})
}
