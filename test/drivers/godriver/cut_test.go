package godriver

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

var (
	cutSeed   = flag.Uint64("cut.seed", 0, "of the connections that are cut; 0: a new one")
	cutWrites = flag.Int("cut.writes", 20, "calls of each writer")
)

// cutter passes bytes on between clients and a server, and ends connections behind any byte of either direction: a command may not have
// arrived, or have been carried out without that the client hears of it.
type cutter struct {
	server string
	seed   uint64
	opened atomic.Uint64
	cuts   atomic.Int64
	wait   sync.WaitGroup
}

// listen accepts clients until the test ends.
func (c *cutter) listen(t *testing.T, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	check(t, err)
	t.Cleanup(func() { _ = l.Close(); c.wait.Wait() })
	c.wait.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			c.wait.Go(func() { c.carry(client) })
		}
	})
}

// carry serves one client. Few connections live for long.
func (c *cutter) carry(client net.Conn) {
	r := rand.New(rand.NewPCG(^c.seed, c.opened.Add(1)))
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		_ = client.Close()
		return
	}
	var once sync.Once
	end := func() { once.Do(func() { c.cuts.Add(1); _ = client.Close(); _ = server.Close() }) }
	var both sync.WaitGroup
	for _, way := range []struct{ from, to net.Conn }{{client, server}, {server, client}} {
		left := 200 + r.IntN(1<<(8+r.IntN(7)))
		piece := 1 + r.IntN(4000)
		both.Go(func() {
			defer end()
			for b := make([]byte, piece); left > 0; {
				n, err := way.from.Read(b)
				n = min(n, left)
				left -= n
				if _, werr := way.to.Write(b[:n]); err != nil || werr != nil {
					return
				}
			}
		})
	}
	both.Wait()
}

// tally is what one writer knows of what it has done: what was answered, and what may have been done.
type tally struct{ done, unknown int }

func (n *tally) heard(err error) {
	if err != nil {
		n.unknown++
	} else {
		n.done++
	}
}

// writer makes calls that a driver repeats, on documents of its own.
type writer struct {
	t       *testing.T
	id      int
	r       *rand.Rand
	db      *mongo.Database
	session *mongo.Session

	counted, found, both, many tally
	inserted                   map[int]bool // by _id: whether there was an answer
	last                       int64        // number that find was told
}

// first returns the lowest _id of the writer's own; the next writer's follow behind idStride.
func (w *writer) first() int { return w.id * idStride }

const (
	idStride  = 1_000_000
	manyAtOne = 5 // documents of an InsertMany
)

// run makes calls, of which a fourth is given up after a while.
func (w *writer) run(ctx context.Context) {
	for i := range *cutWrites {
		call, cancel := ctx, context.CancelFunc(func() {})
		if w.r.IntN(4) == 0 {
			call, cancel = context.WithTimeout(ctx, time.Duration(w.r.IntN(20_000))*time.Microsecond)
		}
		switch w.r.IntN(5) {
		case 0:
			w.count(call)
		case 1:
			w.find(call)
		case 2:
			w.insert(call, i)
		case 3:
			w.together(call)
		default:
			w.insertMany(call, i)
		}
		cancel()
	}
}

func (w *writer) name(what string) string { return fmt.Sprintf("%s %d", what, w.id) }

func (w *writer) count(ctx context.Context) {
	_, err := w.db.Collection("counts").UpdateOne(ctx, bson.M{"_id": w.name("count")}, bson.M{"$inc": bson.M{"n": 1}})
	w.counted.heard(err)
}

// find counts, too, and is told the number: one that it was told before, or a lower one, was another call's.
func (w *writer) find(ctx context.Context) {
	var d struct{ N int64 }
	err := w.db.Collection("counts").FindOneAndUpdate(ctx, bson.M{"_id": w.name("find")}, bson.M{"$inc": bson.M{"n": 1}},
		options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&d)
	w.found.heard(err)
	if err == nil && (d.N <= w.last || d.N < int64(w.found.done) || d.N > int64(w.found.done+w.found.unknown)) {
		w.t.Errorf("writer %d: call %v was answered with number %d, behind %d", w.id, w.found, d.N, w.last)
	}
	if err == nil {
		w.last = d.N
	}
}

func (w *writer) insert(ctx context.Context, i int) {
	_, err := w.db.Collection("singles").InsertOne(ctx, bson.M{"_id": w.first() + i})
	if mongo.IsDuplicateKeyError(err) {
		w.t.Errorf("writer %d: insert %d found itself: %v", w.id, i, err)
	}
	w.inserted[w.first()+i] = err == nil
}

func (w *writer) insertMany(ctx context.Context, i int) {
	docs := make([]any, manyAtOne)
	for n := range docs {
		docs[n] = bson.M{"_id": w.first() + i*manyAtOne + n, "text": string(make([]byte, w.r.IntN(300)))}
	}
	_, err := w.db.Collection("many").InsertMany(ctx, docs)
	if mongo.IsDuplicateKeyError(err) {
		w.t.Errorf("writer %d: inserts from %d on found themselves: %v", w.id, i, err)
	}
	w.many.heard(err)
}

// together counts two numbers in a transaction.
func (w *writer) together(ctx context.Context) {
	_, err := w.session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		for _, name := range []string{w.name("left"), w.name("right")} {
			if _, err := w.db.Collection("counts").UpdateOne(ctx, bson.M{"_id": name}, bson.M{"$inc": bson.M{"n": 1}}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	w.both.heard(err)
}

// TestConnectionsThatAreCut cuts connections behind any byte, while a driver repeats what it has not heard of and its callers give up at any
// moment. What was answered was done, once, and what was not answered at most once.
func TestConnectionsThatAreCut(t *testing.T) {
	seed := *cutSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-cut.seed %d", seed)
	front := lasting(t)
	s := start(t, filepath.Join(t.TempDir(), "db"), "127.0.0.1:0", "--advertise", front)
	plain := connectTo(t, s.addr+"/?directConnection=true")
	db := plain.Database("cut")
	for _, name := range []string{"singles", "many"} {
		check(t, db.CreateCollection(t.Context(), name))
	}
	c := &cutter{server: s.addr, seed: seed}
	c.listen(t, front)
	var writers []*writer
	var writing sync.WaitGroup
	for id := range 4 {
		w := newWriter(t, db, id, seed, front)
		writers = append(writers, w)
		writing.Go(func() { w.run(t.Context()) })
	}
	writing.Wait()
	for _, w := range writers {
		w.verify(db)
		t.Logf("writer %d, answered and not: counts %v, found %v, together %v, many %v", w.id, w.counted, w.found, w.both, w.many)
	}
	t.Logf("%d connections were cut", c.cuts.Load())
}

// connectTo returns a client that lives as long as the test.
func connectTo(t *testing.T, address string) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + address).SetServerSelectionTimeout(patience))
	check(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = client.Disconnect(ctx)
	})
	return client
}

// newWriter returns a writer that goes through front. What it counts stands at 0 in db.
func newWriter(t *testing.T, db *mongo.Database, id int, seed uint64, front string) *writer {
	t.Helper()
	client := connectTo(t, front+"/?replicaSet=rs0")
	session, err := client.StartSession()
	check(t, err)
	w := &writer{t: t, id: id, r: rand.New(rand.NewPCG(seed, uint64(id))), db: client.Database("cut"), session: session, inserted: map[int]bool{}}
	for _, what := range []string{"count", "find", "left", "right"} {
		_, err := db.Collection("counts").InsertOne(t.Context(), bson.M{"_id": w.name(what), "n": int64(0)})
		check(t, err)
	}
	return w
}

// verify compares what was answered with what is there.
func (w *writer) verify(db *mongo.Database) {
	ctx := w.t.Context()
	n := map[string]int{}
	for what, heard := range map[string]tally{"count": w.counted, "find": w.found, "left": w.both, "right": w.both} {
		var d struct{ N int }
		check(w.t, db.Collection("counts").FindOne(ctx, bson.M{"_id": w.name(what)}).Decode(&d))
		if n[what] = d.N; d.N < heard.done || d.N > heard.done+heard.unknown {
			w.t.Errorf("%s is %d, where %d calls were answered and %d not", w.name(what), d.N, heard.done, heard.unknown)
		}
	}
	want(w.t, w.name("transactions that are whole"), n["left"], n["right"])
	there := ids(w.t, db.Collection("singles"))
	for id, answered := range w.inserted {
		if answered && !there[int64(id)] {
			w.t.Errorf("document %d was acknowledged and is not there", id)
		}
	}
	own := bson.M{"_id": bson.M{"$gte": w.first(), "$lt": w.first() + idStride}}
	many, err := db.Collection("many").CountDocuments(ctx, own)
	check(w.t, err)
	if many < int64(manyAtOne*w.many.done) || many > int64(manyAtOne*(w.many.done+w.many.unknown)) {
		w.t.Errorf("writer %d: %d documents of many, of %v calls", w.id, many, w.many)
	}
}
