package fault

import (
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// wireSteps are what a step of a storm may be, each as often as its weight says.
var wireSteps = []stormStep[*wireStorm]{
	{40, (*wireStorm).write},
	{12, (*wireStorm).transaction},
	{6, (*wireStorm).giveUp},
	{8, (*wireStorm).walk},
	{4, (*wireStorm).leaveCursor},
	{6, (*wireStorm).ask},
	{3, func(s *wireStorm) { s.judge("checkpoint", s.store.DB().Checkpoint(ctx)) }},
	{4, func(s *wireStorm) { time.Sleep(time.Duration(s.rng.IntN(1500)) * time.Millisecond) }},
	{2, func(s *wireStorm) {
		if s.failed || s.rng.IntN(3) == 0 {
			s.reopen()
		}
	}},
}

func (s *wireStorm) step() {
	s.t.Helper()
	stepOf(s, s.rng, wireSteps)
}

// session returns the fields of a command in a session of its own; transactions have one, as some others may.
func (s *wireStorm) session() bson.D {
	s.number++
	id := make([]byte, 16)
	copy(id, fmt.Sprintf("%016d", s.number))
	return bson.D{
		{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: id}}}}, {Key: "txnNumber", Value: int64(1)},
	}
}

// one draws a write of one document: a command, without its session, and what it does.
func (s *wireStorm) one() (id int32, command bson.D, change func(n int32) int32) {
	id, n := s.rng.Int32N(80), s.rng.Int32N(1000)
	switch s.rng.IntN(4) {
	case 0:
		return id, bson.D{{Key: "delete", Value: "c"}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: byID(id)}, {Key: "limit", Value: 1}}}}},
			func(int32) int32 { return absent }
	case 1:
		return id, updateOf(byID(id), bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: n}}}}, true), func(int32) int32 { return n }
	}
	return id, updateOf(byID(id), bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: int32(1)}}}}, false), func(n int32) int32 {
		if n == absent {
			return absent
		}
		return n + 1
	}
}

func updateOf(q, u bson.D, upsert bool) bson.D {
	one := bson.D{{Key: "q", Value: q}, {Key: "u", Value: u}, {Key: "upsert", Value: upsert}}
	return bson.D{{Key: "update", Value: "c"}, {Key: "updates", Value: bson.A{one}}}
}

// write sends a write, and once more when it fails, as drivers do.
func (s *wireStorm) write() {
	s.t.Helper()
	id, command, change := s.one()
	command = append(command, s.session()...)
	before := s.may(id)
	_, failed := s.tried(command)
	if failed {
		s.wrote(id, change, true)
		if _, failed = s.tried(command); failed {
			s.again[id] = &resend{command, change, before}
			return
		}
		s.docs[id] = before
	}
	s.wrote(id, change, false)
}

// transaction writes several documents in one transaction, whose commit is sent again when it fails.
func (s *wireStorm) transaction() {
	s.t.Helper()
	session := s.session()
	changes := map[int32]func(n int32) int32{}
	for i := range 1 + s.rng.IntN(4) {
		id, command, change := s.one()
		if changes[id] != nil {
			continue
		}
		if _, failed := s.tried(inTransaction(command, session, i == 0)); failed {
			s.abort(session)
			return
		}
		changes[id] = change
	}
	commit := inTransaction(bson.D{{Key: "commitTransaction", Value: 1}}, session, false)
	_, failed := s.tried(commit)
	if failed {
		_, failed = s.tried(commit)
	}
	for id, change := range changes {
		s.wrote(id, change, failed)
	}
	if failed {
		s.abort(session)
	}
}

func inTransaction(command, session bson.D, first bool) bson.D {
	command = append(append(bson.D{}, command...), session...)
	command = append(command, bson.E{Key: "autocommit", Value: false})
	if first {
		command = append(command, bson.E{Key: "startTransaction", Value: true})
	}
	return command
}

// abort gives a transaction up. That there is none any more is no failure.
func (s *wireStorm) abort(session bson.D) {
	s.t.Helper()
	_, failure := s.send(inTransaction(bson.D{{Key: "abortTransaction", Value: 1}}, session, false))
	s.note("abort: %s", failure)
}

// giveUp writes in a transaction that is given up.
func (s *wireStorm) giveUp() {
	s.t.Helper()
	session := s.session()
	_, command, _ := s.one()
	_, _ = s.tried(inTransaction(command, session, true))
	s.abort(session)
}

// walk reads through a cursor.
func (s *wireStorm) walk() {
	s.t.Helper()
	reply, failed := s.tried(bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: s.rng.Int32N(900)}}}}}, {Key: "batchSize", Value: 3}})
	for !failed {
		cursor := reply.Lookup("cursor", "id").Int64()
		if cursor == 0 {
			return
		}
		reply, failed = s.tried(bson.D{{Key: "getMore", Value: cursor}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 10}})
	}
}

// leaveCursor opens a cursor and kills it.
func (s *wireStorm) leaveCursor() {
	s.t.Helper()
	reply, failed := s.tried(bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}})
	if failed {
		return
	}
	if cursor := reply.Lookup("cursor", "id").Int64(); cursor != 0 {
		s.works(bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{cursor}}})
	}
}

// ask asks for what a server tells of itself and its collections.
func (s *wireStorm) ask() {
	s.t.Helper()
	commands := []bson.D{
		{{Key: "serverStatus", Value: 1}}, {{Key: "dbStats", Value: 1}}, {{Key: "collStats", Value: "c"}}, {{Key: "listCollections", Value: 1}},
		{{Key: "listIndexes", Value: "c"}}, {{Key: "count", Value: "c"}}, {{Key: "validate", Value: "c"}}, {{Key: "hello", Value: 1}},
		{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}, {Key: "n", Value: bson.D{{Key: "$sum", Value: "$n"}}}}}}}}, {Key: "cursor", Value: bson.D{}}},
		{{Key: "distinct", Value: "c"}, {Key: "key", Value: "n"}},
	}
	_, _ = s.tried(commands[s.rng.IntN(len(commands))])
}
