package mongo

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/server/wire"
)

// largeInsert returns a message of about so many bytes that inserts a document.
func largeInsert(t *testing.T, size int) []byte {
	t.Helper()
	body, err := bson.Marshal(bson.D{
		{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "b", Value: bytes.Repeat([]byte{1}, size)}}}}, {Key: "$db", Value: "d"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return wire.AppendMsg(nil, 1, 0, 0, bsoncore.Document(body))
}

// waitFor waits until the budget has so many bytes in use and so many that wait.
func waitFor(s *Server, used func(bytes int64) bool, waiting int) {
	for {
		if n, w := s.messages.inUse(); used(n) && w == waiting {
			return
		}
		runtime.Gosched()
	}
}

// TestLargeMessagesWaitForRoom: a message for which there is no room waits until others have been answered, or have lost their client;
// small ones go on meanwhile.
func TestLargeMessagesWaitForRoom(t *testing.T) {
	for _, dies := range []bool{false, true} {
		s := newServer(t, &Options{MaxMessageBytes: 1 << 20})
		other := dial(t, s)
		some := func(n int64) bool { return n > 0 }
		first, second := dial(t, s), dial(t, s)
		msg := largeInsert(t, 700<<10)
		if _, err := first.conn.Write(msg[:300<<10]); err != nil {
			t.Fatal(err)
		}
		waitFor(s, some, 0)
		var wait sync.WaitGroup
		wait.Go(func() {
			if _, err := second.conn.Write(msg); err != nil {
				t.Error(err)
			}
		})
		waitFor(s, some, 1)
		other.must("d", bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{}}}})
		if dies {
			_ = first.conn.Close()
		} else {
			if _, err := first.conn.Write(msg[300<<10:]); err != nil {
				t.Fatal(err)
			}
			if reply := first.receive(); okOf(reply) != 1 {
				t.Errorf("the first: %s", reply)
			}
		}
		wait.Wait()
		if reply := second.receive(); okOf(reply) != 1 {
			t.Errorf("the second: %s", reply)
		}
		waitFor(s, func(n int64) bool { return n == 0 }, 0)
	}
}

// TestMessagesLargerThanTheBudget: one that is larger than all of it takes all of it.
func TestMessagesLargerThanTheBudget(t *testing.T) {
	s := newServer(t, &Options{MaxMessageBytes: 100 << 10})
	c := dial(t, s)
	for range 3 {
		if _, err := c.conn.Write(largeInsert(t, 2<<20)); err != nil {
			t.Fatal(err)
		}
		if reply := c.receive(); okOf(reply) != 1 {
			t.Errorf("%s", reply)
		}
	}
}

// TestBudget: the room is given in the order in which it was asked for, and who gives up asking leaves no trace.
func TestBudget(t *testing.T) {
	var b budget
	b.init(10)
	take := func(ctx context.Context, n int64) <-chan error {
		_, before := b.inUse()
		done := make(chan error, 1)
		go func() {
			_, err := b.take(ctx, n)
			done <- err
		}()
		for {
			if _, now := b.inUse(); now > before {
				return done
			}
			runtime.Gosched()
		}
	}
	if n, err := b.take(t.Context(), 8); n != 8 || err != nil {
		t.Fatal(n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone, small := take(ctx, 9), take(t.Context(), 1)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-small; err != nil { // which was behind
		t.Error(err)
	}
	large, last := take(t.Context(), 6), take(t.Context(), 1)
	b.give(3)
	if used, waiting := b.inUse(); used != 6 || waiting != 2 {
		t.Errorf("%d are in use and %d wait: there is no room for the first of them", used, waiting)
	}
	b.give(5)
	if err := errors.Join(<-large, <-last); err != nil {
		t.Error(err)
	}
	if used, waiting := b.inUse(); used != 8 || waiting != 0 {
		t.Errorf("%d are in use, %d wait", used, waiting)
	}
}

// TestBatchesOfClientsThatDoNotRead: where the answers that nobody takes leave no room, batches are shorter, and nothing is lost.
func TestBatchesOfClientsThatDoNotRead(t *testing.T) {
	s := newServer(t, &Options{MaxMessageBytes: 2 << 20})
	c := dial(t, s)
	const docs, size = 60, 100 << 10
	for i := range docs {
		c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", i, "b", bytes.Repeat([]byte{byte(i)}, size))}))
	}
	all := func() (batches, found int) {
		reply := c.must("d", cmd("find", "c"))
		for field := "firstBatch"; ; field = "nextBatch" {
			values, err := reply.Lookup("cursor", field).Array().Values()
			if err != nil {
				t.Fatal(err)
			}
			batches, found = batches+1, found+len(values)
			id := reply.Lookup("cursor", "id").Int64()
			if id == 0 {
				return batches, found
			}
			reply = c.must("d", cmd("getMore", id, "collection", "c"))
		}
	}
	freely, _ := all()
	waitForAnswers(s)
	deaf := dial(t, s)
	body, err := bson.Marshal(cmd("find", "c", "$db", "d"))
	if err != nil {
		t.Fatal(err)
	}
	deaf.send(0, body)
	for {
		if n, _ := s.answers.inUse(); n == s.answers.total {
			break
		}
		runtime.Gosched()
	}
	batches, found := all()
	if batches <= freely || found != docs {
		t.Errorf("%d batches with %d documents; %d when there was room", batches, found, freely)
	}
	_ = deaf.conn.Close()
	waitForAnswers(s)
}

// TestAnswersThatCannotEndEarlyWaitForRoom: a single batch and the values of a distinct cannot end early. Where the answers that nobody takes
// leave no room, they wait for it, and are whole; small ones, and single documents, wait for nothing.
func TestAnswersThatCannotEndEarlyWaitForRoom(t *testing.T) {
	s := newServer(t, &Options{MaxMessageBytes: 4 << 20})
	c := dial(t, s)
	const docs, size = 30, 50_000
	for i := range docs {
		c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", i, "b", bytes.Repeat([]byte{byte(i)}, size))}))
	}
	c.must("d", cmd("insert", "large", "documents", bson.A{cmd("_id", 1, "b", make([]byte, 1<<20))}))
	for _, x := range []struct {
		name    string
		command bson.D
		many    []string // where the answer has one for each document
	}{
		{"single batch", cmd("find", "c", "singleBatch", true, "batchSize", docs), []string{"cursor", "firstBatch"}},
		{"distinct", cmd("distinct", "c", "key", "b"), []string{"values"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			if !s.answers.tryTake(s.answers.total) {
				t.Fatal("somebody has answers")
			}
			waits := dial(t, s)
			body, err := bson.Marshal(with(x.command, "$db", "d"))
			if err != nil {
				t.Fatal(err)
			}
			waits.send(0, body)
			for {
				if _, waiting := s.answers.inUse(); waiting == 1 {
					break
				}
				runtime.Gosched()
			}
			c.must("d", cmd("distinct", "c", "key", "_id"))
			c.must("d", cmd("find", "large", "singleBatch", true))
			c.must("d", cmd("findAndModify", "large", "update", cmd("$inc", cmd("n", 1))))
			s.answers.give(s.answers.total)
			if values, _ := waits.receive().Lookup(x.many...).Array().Values(); len(values) != docs {
				t.Errorf("%d of %d", len(values), docs)
			}
			waitForAnswers(s)
		})
	}
}

// takenAnswer is the connection of a client at the moment when it is to take an answer.
type takenAnswer struct {
	net.Conn
	take func()
}

func (c takenAnswer) Write(b []byte) (int, error) {
	c.take()
	return len(b), nil
}

func (takenAnswer) SetWriteDeadline(time.Time) error { return nil }

// TestAnswersAreThereOnceWhileClientsTakeThem: while a client takes an answer that was compressed, there is only that one, and of the room
// it has only what it needs.
func TestAnswersAreThereOnceWhileClientsTakeThem(t *testing.T) {
	s := newServer(t, nil)
	c := &conn{server: s}
	took := false
	c.net = takenAnswer{take: func() {
		took = true
		if len(c.packed) == 0 || cap(c.out) > keptBuffer {
			t.Errorf("%d bytes are compressed, and there are %d beside them", len(c.packed), cap(c.out))
		}
		if c.answered > answerStep {
			t.Errorf("an answer of %d bytes has room for %d", len(c.packed), c.answered)
		}
	}}
	if err := c.claim(t.Context(), maxBatchBytes); err != nil {
		t.Fatal(err)
	}
	c.out = wire.AppendMsg(c.server.large.get(keptBuffer), 1, 1, 0, bsoncore.NewDocumentBuilder().AppendString("s", strings.Repeat("x", keptBuffer)).Build())
	if err := c.send(&wire.Message{Compressor: wire.Snappy}, "find"); err != nil || !took {
		t.Error(took, err)
	}
	if n, _ := s.answers.inUse(); n != 0 {
		t.Errorf("%d bytes of room are gone", n)
	}
}

// TestDocumentsThatWaitForABatch: a document that does not fit into a batch waits with its cursor as long as there is room for such ones,
// and goes out with the batch where there is none. Nothing is lost, and the room comes back.
func TestDocumentsThatWaitForABatch(t *testing.T) {
	s := newServer(t, &Options{MaxMessageBytes: 16 << 20})
	c := dial(t, s)
	const docs, size = 3, 900 << 10
	for i := range docs {
		c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", i, "b", bytes.Repeat([]byte{byte(i)}, size))}))
	}
	if !s.answers.tryTake(s.answers.total) {
		t.Fatal("somebody has answers")
	}
	var open []int64
	batches := map[int]int{}
	for range 5 {
		reply := c.must("d", cmd("find", "c"))
		batches[len(ids(t, reply, "firstBatch"))]++
		open = append(open, reply.Lookup("cursor", "id").Int64())
	}
	if batches[1] != 2 || batches[2] != 3 { // two of 900 KB have room in 2 MiB
		t.Errorf("batches by how many documents they have: %v", batches)
	}
	if n, _ := s.waiting.inUse(); n < 2*size || n > s.waiting.total {
		t.Errorf("%d bytes wait", n)
	}
	c.must("d", cmd("killCursors", "c", "cursors", bson.A{open[0]}))
	for i, id := range open[1:] {
		left := docs - 2
		if i == 0 {
			left = docs - 1
		}
		for id != 0 {
			reply := c.must("d", cmd("getMore", id, "collection", "c"))
			left -= len(ids(t, reply, "nextBatch"))
			id = reply.Lookup("cursor", "id").Int64()
		}
		if left != 0 {
			t.Errorf("cursor %d: %d documents are missing", i+1, left)
		}
	}
	if n, _ := s.waiting.inUse(); n != 0 {
		t.Errorf("%d bytes wait for nobody", n)
	}
	s.answers.give(s.answers.total)
}

// TestCursorsOfLargeCommands: what cursors keep of large commands has only so much room. A cursor that does not find it is refused, small ones
// go on, and the room comes back, however a cursor ends.
func TestCursorsOfLargeCommands(t *testing.T) {
	s := newServer(t, &Options{MaxMessageBytes: 1 << 20})
	c := dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1), cmd("_id", 2)}))
	find := func(size int) bson.D {
		return cmd("find", "c", "filter", cmd("a", cmd("$ne", strings.Repeat("x", size))), "batchSize", 1)
	}
	const large = 100 << 10 // two of them have room in a quarter of the bytes
	var open []int64
	for range 2 {
		open = append(open, c.must("d", find(large)).Lookup("cursor", "id").Int64())
	}
	c.refused("d", find(large), 261)
	c.refused("d", cmd("aggregate", "c", "pipeline", bson.A{cmd("$match", find(large)[1].Value)}, "cursor", cmd("batchSize", 1)), 261)
	c.must("d", with(find(large), "singleBatch", true)) // keeps nothing
	c.must("d", find(10))
	c.must("d", cmd("getMore", open[0], "collection", "c"))
	c.must("d", cmd("killCursors", "c", "cursors", bson.A{open[1]}))
	c.must("d", find(1<<20)) // larger than all the room: it takes all
	c.refused("d", find(large), 261)
	c.must("d", cmd("drop", "c"))
	if n, _ := s.cursors.commands.inUse(); n != 0 {
		t.Errorf("%d bytes are kept for nobody", n)
	}
}

// waitForAnswers waits until no answer holds room.
func waitForAnswers(s *Server) {
	for {
		if n, _ := s.answers.inUse(); n == 0 {
			return
		}
		runtime.Gosched()
	}
}

// inUse returns how many bytes are taken, and how many wait for some.
func (b *budget) inUse() (bytes int64, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total - b.free, len(b.waiting)
}
