package mongo

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Those who end sessions that were idle for too long end one after the other, which takes time. One that was used meanwhile was ended all the
// same, and what it had just written was forgotten: sent again, it was written once more.
func TestASessionThatIsUsedWhileOthersEndStays(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	write := func(letter byte, id, number int64) bson.D {
		return append(inSession(letter, cmd("insert", "c", "documents", bson.A{cmd("_id", id)})), bson.E{Key: "txnNumber", Value: number})
	}
	for i, letter := range []byte("abc") {
		c.must("d", write(letter, int64(i), 1))
	}
	old, _ := s.sessions.idle(time.Now().Add(time.Hour))
	c.must("d", inSession('a', cmd("find", "c")))
	c.must("d", write('b', 3, 2))
	if len(old) != 3 {
		t.Fatalf("%d sessions were idle", len(old))
	}
	for x, used := range old {
		s.sessions.endIdle(x, used)
	}
	for i, letter := range []byte("abc") {
		if there := sessionOf(s, letter) != nil; there != (i < 2) {
			t.Errorf("session %c is there: %v", letter, there)
		}
	}
	for _, again := range []bson.D{write('a', 0, 1), write('b', 3, 2)} {
		if reply := c.must("d", again); reply.Lookup("retriedStmtIds").Type == 0 {
			t.Errorf("what was written is not known any more: %s", reply)
		}
	}
}
