package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// What a session's writes did is kept for those who send them again, and no longer than the session.
func TestEndedSessionsAreForgotten(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	id := bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("0123456789abcdef")}
	lsid := bson.D{{Key: "id", Value: id}}
	insert := cmd("insert", "c", "documents", bson.A{bson.D{{Key: "_id", Value: 1}}}, "lsid", lsid, "txnNumber", int64(1))
	for range 2 { // sent again, it is not carried out again
		if n := c.must("d", insert).Lookup("n").Int32(); n != 1 {
			t.Errorf("%d inserted", n)
		}
	}
	if o, err := s.store.Outcome(string(id.Data), 1, 0); o == nil || err != nil {
		t.Fatalf("before the end of the session: %v, %v", o, err)
	}
	c.must("d", cmd("endSessions", bson.A{lsid}))
	if o, err := s.store.Outcome(string(id.Data), 1, 0); o != nil || err != nil {
		t.Errorf("after the end of the session: %v, %v", o, err)
	}
}
