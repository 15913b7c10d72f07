package mongo

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/server/wire"
)

// TestLargeAnswersTogether: connections that have large answers at the same time, one after the other, and small ones in between, get
// what they have asked for, though all of them are made in the same few buffers.
func TestLargeAnswersTogether(t *testing.T) {
	s := newServer(t, &Options{})
	c := dial(t, s)
	const documents = 45
	for i := range documents {
		text := bson.Binary{Data: bytes.Repeat([]byte{byte(i)}, 100_000+i*1000)}
		for _, name := range []string{"a", "b"} {
			c.must("d", bson.D{{Key: "insert", Value: name}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: i}, {Key: "in", Value: name}, {Key: "data", Value: text}}}}})
		}
	}
	var wait sync.WaitGroup
	for k := range 4 {
		name := []string{"a", "b"}[k%2]
		c := dial(t, s)
		wait.Go(func() {
			for range 3 {
				cursor := c.must("d", bson.D{{Key: "find", Value: name}, {Key: "batchSize", Value: 3}}).Lookup("cursor")
				batch, rest := cursor.Document().Lookup("firstBatch").Array(), true
				for i := 0; i < documents || rest; {
					values, err := batch.Values()
					if err != nil {
						t.Error(err)
						return
					}
					for _, v := range values {
						_, data := v.Document().Lookup("data").Binary()
						in := v.Document().Lookup("in").StringValue()
						if in != name || len(data) != 100_000+i*1000 || bytes.Count(data, []byte{byte(i)}) != len(data) {
							t.Errorf("document %d of %s is of %s and has %d bytes", i, name, in, len(data))
							return
						}
						i++
					}
					id := cursor.Document().Lookup("id").Int64()
					if rest = id != 0; !rest && i < documents {
						t.Errorf("%s ended after %d documents", name, i)
						return
					}
					if rest {
						cursor = c.must("d", bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: name}}).Lookup("cursor")
						batch = cursor.Document().Lookup("nextBatch").Array()
					}
				}
			}
		})
	}
	wait.Wait()
}

// TestLargeBuffers: an answer that grows moves through the sizes, and its buffers are there for others afterwards.
func TestLargeBuffers(t *testing.T) {
	c := &conn{server: &Server{}}
	out, sizes := make([]byte, 10, 100), largeSizes()
	var moves int
	for cap(out) < sizes[len(sizes)-1] {
		before := cap(out)
		out = c.larger(append(out, 7))
		if cap(out) <= before || out[len(out)-1] != 7 || out[0] != 0 {
			t.Fatalf("%d bytes of %d after %d", len(out), cap(out), before)
		}
		moves++
	}
	if moves > 20 {
		t.Errorf("%d moves", moves)
	}
	if again := c.larger(out); &again[0] != &out[0] {
		t.Error("there is more than the largest")
	}
	c.out = out
	if c.sent(); cap(c.out) > keptBuffer || cap(c.out) < keptBuffer/2 {
		t.Errorf("%d bytes stay with the connection", cap(c.out))
	}
}

// TestSilentConnectionsKeepLittle: what large messages and large answers were in, compressed or not, does not stay with connections on which
// no message comes, and they go on afterwards.
func TestSilentConnectionsKeepLittle(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1, "s", strings.Repeat("x", 900<<10), "a", 1)}))
	c.must("d", cmd("find", "c"))
	const connections = 30
	clients := make([]*testClient, connections)
	for i := range clients {
		clients[i] = dial(t, s)
	}
	before := heapInUse()
	var body, packed []byte
	for _, c := range clients {
		c.must("d", cmd("find", "c"))
		c.must("d", cmd("findAndModify", "c", "query", cmd("_id", 1), "update", cmd("$set", cmd("a", 1)), "comment", strings.Repeat("y", 900<<10)))
		for _, command := range []bson.D{cmd("find", "c"), cmd("ping", 1, "comment", strings.Repeat("y", 900<<10))} {
			var err error
			if body, err = bson.Marshal(append(command, bson.E{Key: "$db", Value: "d"})); err != nil {
				t.Fatal(err)
			}
			if packed, err = wire.AppendCompressed(packed[:0], wire.AppendMsg(nil, 1, 0, 0, body), wire.Snappy); err != nil {
				t.Fatal(err)
			}
			if _, err := c.conn.Write(packed); err != nil {
				t.Fatal(err)
			}
			if reply := c.receive(); okOf(reply) != 1 {
				t.Fatal(reply)
			}
		}
		c.r = wire.NewReader(c.conn)
	}
	waitForSilence(s)
	s.conns.trim()
	s.conns.trim()
	if took := heapInUse() - before; took > connections*200<<10 {
		t.Errorf("%d connections that are silent hold %d bytes", connections, took)
	}
	for _, c := range clients {
		if n := len(c.must("d", cmd("find", "c"))); n < 900<<10 {
			t.Errorf("an answer of %d bytes", n)
		}
	}
}

// waitForSilence waits until all connections wait for a message.
func waitForSilence(s *Server) {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	for c := range s.conns.list {
		for !c.memory.TryLock() { // it gives that up only then
			runtime.Gosched()
		}
		c.memory.Unlock()
	}
}

// heapInUse returns how many bytes are in use when all is collected that can be, pools included.
func heapInUse() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
