//go:build !race

package mongo

import (
	"runtime"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/server/wire"
)

// TestAllocations keeps watch over what commands allocate: time is too unsteady for a test.
func TestAllocations(t *testing.T) {
	s := speedServer(t)
	for _, x := range speedCases() {
		c := overTCP(t, s, x.command, x.field, x.doc)
		c.call()
		if got := testing.AllocsPerRun(100, func() { c.call() }); got > x.allocs {
			t.Errorf("%s allocates %.0f times, more than %.0f", x.name, got, x.allocs)
		}
		if reply := c.call(); okOf(bson.Raw(reply)) != 1 {
			t.Errorf("%s: %v", x.name, reply)
		}
	}
}

// Of very many documents no list is made, in whatever part of the message they are: it would be many times as large as they are.
func TestVeryManyStatementsTakeLittleMemory(t *testing.T) {
	c := dial(t, newServer(t, nil))
	docs := bsoncore.NewArrayBuilder()
	for range 500_000 {
		docs.AppendDocument([]byte{5, 0, 0, 0, 0})
	}
	body := bsoncore.NewDocumentBuilder().AppendString("insert", "c").AppendArray("documents", docs.Build()).AppendString("$db", "d").Build()
	msg := wire.AppendMsg(nil, 1, 0, 0, body)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := c.conn.Write(msg); err != nil {
		t.Fatal(err)
	}
	reply := c.receive()
	runtime.ReadMemStats(&after)
	if codeIn(reply) != 16 || !strings.Contains(textIn(reply, "errmsg"), "Got 500000 operations") {
		t.Errorf("%s", reply)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 4*uint64(len(msg)) {
		t.Errorf("a message of %d bytes took %d", len(msg), took)
	}
}
