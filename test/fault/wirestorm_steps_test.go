package fault

import (
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// wireSteps are what a step of a storm may be, each as often as its weight says.
var wireSteps = []stormStep[*wireClient]{
	{40, (*wireClient).write},
	{12, (*wireClient).transaction},
	{6, (*wireClient).giveUp},
	{8, (*wireClient).walk},
	{4, (*wireClient).leaveCursor},
	{6, (*wireClient).ask},
	{3, func(c *wireClient) { c.s.judge(c.n, "checkpoint", c.s.store.DB().Checkpoint(ctx)) }},
	{8, func(c *wireClient) { time.Sleep(time.Duration(c.rng.IntN(300)) * time.Millisecond) }},
}

func (c *wireClient) step() {
	stepOf(c, c.rng, wireSteps)
}

// session returns the fields of a numbered write, or of a transaction, in a session of its own.
func (c *wireClient) session() bson.D {
	c.number++
	id := make([]byte, 16)
	copy(id, fmt.Sprintf("%04d%012d", c.n, c.number))
	return bson.D{
		{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: id}}}}, {Key: "txnNumber", Value: int64(1)},
	}
}

// ownIDs is how many documents a client has.
const ownIDs = 80

// first is the least _id of the client's documents.
func (c *wireClient) first() int32 { return int32(c.n) * 1000 }

// one draws a write of one document: a command, without its session, and what it does.
func (c *wireClient) one() (id int32, command bson.D, change func(n int32) int32) {
	id, n := c.first()+c.rng.Int32N(ownIDs), c.rng.Int32N(1000)
	switch c.rng.IntN(4) {
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
func (c *wireClient) write() {
	id, command, change := c.one()
	command = append(command, c.session()...)
	before := c.may(id)
	_, failed := c.tried(command)
	if failed {
		c.wrote(id, change, true)
		if _, failed = c.tried(command); failed {
			c.again[id] = &resend{command, change, before}
			return
		}
		c.docs[id] = before
	}
	c.wrote(id, change, false)
}

// transaction writes several documents in one transaction, whose commit is sent again when it fails.
func (c *wireClient) transaction() {
	session := c.session()
	changes := map[int32]func(n int32) int32{}
	for i := range 1 + c.rng.IntN(4) {
		id, command, change := c.one()
		if changes[id] != nil {
			continue
		}
		if _, failed := c.tried(inTransaction(command, session, i == 0)); failed {
			c.abort(session)
			return
		}
		changes[id] = change
	}
	commit := inTransaction(bson.D{{Key: "commitTransaction", Value: 1}}, session, false)
	_, failed := c.tried(commit)
	if failed {
		_, failed = c.tried(commit)
	}
	for id, change := range changes {
		c.wrote(id, change, failed)
	}
	if failed {
		c.abort(session)
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
func (c *wireClient) abort(session bson.D) {
	_, failure := c.send(inTransaction(bson.D{{Key: "abortTransaction", Value: 1}}, session, false))
	c.s.note("abort: %s", failure)
}

// giveUp writes in a transaction that is given up.
func (c *wireClient) giveUp() {
	session := c.session()
	_, command, _ := c.one()
	_, _ = c.tried(inTransaction(command, session, true))
	c.abort(session)
}

// walk reads through a cursor.
func (c *wireClient) walk() {
	reply, failed := c.tried(bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: c.rng.Int32N(900)}}}}}, {Key: "batchSize", Value: 3}})
	for !failed {
		cursor := reply.Lookup("cursor", "id").Int64()
		if cursor == 0 {
			return
		}
		reply, failed = c.tried(bson.D{{Key: "getMore", Value: cursor}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 10}})
	}
}

// leaveCursor opens a cursor and kills it.
func (c *wireClient) leaveCursor() {
	reply, failed := c.tried(bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}})
	if failed {
		return
	}
	if cursor := reply.Lookup("cursor", "id").Int64(); cursor != 0 {
		if reply, failure := c.send(bson.D{{Key: "killCursors", Value: "c"}, {Key: "cursors", Value: bson.A{cursor}}}); failure != "" {
			c.s.fail(c.n, "%v", reply)
		}
	}
}

// ask asks for what a server tells of itself and its collections.
func (c *wireClient) ask() {
	commands := []bson.D{
		{{Key: "serverStatus", Value: 1}}, {{Key: "dbStats", Value: 1}}, {{Key: "collStats", Value: "c"}}, {{Key: "listCollections", Value: 1}},
		{{Key: "listIndexes", Value: "c"}}, {{Key: "count", Value: "c"}}, {{Key: "validate", Value: "c"}}, {{Key: "hello", Value: 1}},
		{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}, {Key: "n", Value: bson.D{{Key: "$sum", Value: "$n"}}}}}}}}, {Key: "cursor", Value: bson.D{}}},
		{{Key: "distinct", Value: "c"}, {Key: "key", Value: "n"}},
	}
	_, _ = c.tried(commands[c.rng.IntN(len(commands))])
}
