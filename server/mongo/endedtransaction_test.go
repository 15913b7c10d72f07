package mongo

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestOfATransactionThatHasEndedNothingIsKept: a session goes on for half an hour after its last command, and knows then how its transaction has
// ended. What that has read and written is not kept as long.
func TestOfATransactionThatHasEndedNothingIsKept(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", cmd("create", "c"))
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", "taken")}))
	ends := []struct {
		how    string
		letter byte
		end    func(in func(command bson.D) bson.D)
	}{
		{"committed", 'c', func(in func(bson.D) bson.D) { c.must("admin", in(cmd("commitTransaction", 1))) }},
		{"aborted", 'a', func(in func(bson.D) bson.D) { c.must("admin", in(cmd("abortTransaction", 1))) }},
		{"failed", 'f', func(in func(bson.D) bson.D) {
			if reply := c.must("d", in(cmd("insert", "c", "documents", bson.A{cmd("_id", "taken")}))); reply.Lookup("writeErrors").Type != bson.TypeArray {
				t.Errorf("a second document of one _id: %s", reply)
			}
		}},
		{"overtaken by a write of its session", 'w', func(func(bson.D) bson.D) {
			c.must("d", inSession('w', cmd("insert", "c", "documents", bson.A{bson.D{}}), "txnNumber", int64(2)))
		}},
		{"given up as too long", 'l', func(func(bson.D) bson.D) { s.sessions.expire(time.Now().Add(2 * time.Minute)) }},
	}
	for i, e := range ends {
		c.must("d", inTransaction(e.letter, 1, cmd("insert", "c", "documents", bson.A{cmd("_id", i)}), "startTransaction", true))
		kept := weak.Make(sessionOf(s, e.letter).txn.tx)
		e.end(func(command bson.D) bson.D { return inTransaction(e.letter, 1, command) })
		for range 2 { // what the first run of the collector finds in pools is gone after the second
			runtime.GC()
		}
		if kept.Value() != nil {
			t.Errorf("a transaction that has ended (%s) is in memory as long as its session", e.how)
		}
	}
}
