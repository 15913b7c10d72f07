package mongo

import (
	"path/filepath"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// Sessions end by the thousand, when a client leaves or nobody has used them for half an hour. To forget what one has written waits for no
// sync: what a power cut brings back of it is forgotten later. There was one for each, one after the other, and connections, cursors and
// transactions were not looked after meanwhile.
func TestSessionsAreForgottenWithoutASync(t *testing.T) {
	counting := faultfs.New(memfs.New())
	s := serverOn(t, counting)
	c := dial(t, s)
	ids := bson.A{}
	for letter := range byte(50) {
		insert := inSession(letter, cmd("insert", "c", "documents", bson.A{bson.D{}}), "txnNumber", int64(1))
		c.must("d", insert)
		ids = append(ids, cmd("id", bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte{15: letter}}))
	}
	var syncs atomic.Int64
	counting.OnCall(func(op faultfs.Op, name string) error {
		if op == faultfs.OpSync && filepath.Base(filepath.Dir(name)) == "wal" {
			syncs.Add(1)
		}
		return nil
	})
	c.must("admin", cmd("endSessions", ids))
	if n := syncs.Load(); n > 1 {
		t.Errorf("%d syncs for %d sessions", n, len(ids))
	}
	for letter := range byte(50) {
		if o, err := s.store.Outcome(string([]byte{15: letter}), 1, 0); o != nil || err != nil {
			t.Fatalf("session %d is still known: %v, %v", letter, o, err)
		}
	}
}
