package server

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/server/mongo"
	"github.com/pandodb/pando/server/wire"
)

// TestCursorHoarding: one connection gets as many cursors as it may have, all together as many as there may be, and others can work.
func TestCursorHoarding(t *testing.T) {
	const each, all = 10, 25
	s := startTuned(t, Config{Addr: "127.0.0.1:0", MaxCursors: all}, func(o *mongo.Options) { o.MaxConnectionCursors = each })
	h := newHonest(t, s)
	h.must("d", cmd("insert", "c", "documents", bson.A{bson.D{}, bson.D{}, bson.D{}}))
	find := cmd("find", "c", "batchSize", 1)
	first := newPeer(t, s)
	var ids bson.A
	for range each {
		ids = append(ids, first.must("d", find).Lookup("cursor", "id"))
	}
	first.refused("d", find, 261)
	h.must("d", cmd("getMore", h.must("d", find).Lookup("cursor", "id").Int64(), "collection", "c"))
	h.works()

	second, third := newPeer(t, s), newPeer(t, s)
	for range each {
		second.must("d", find)
	}
	for range all - 2*each {
		third.must("d", find)
	}
	third.refused("d", find, 261)
	h.works() // what fits into one answer needs no cursor

	first.must("d", cmd("killCursors", "c", "cursors", ids))
	if open := s.mongo.Statistics().Cursors; open != all-each {
		t.Errorf("%d cursors are open after %d of %d were killed", open, each, all)
	}
	first.must("d", find)
	h.works()
}

// TestIdleCursors: cursors that nobody reads from are closed, and what they hold is given back.
func TestIdleCursors(t *testing.T) {
	t.Parallel()
	s := startTuned(t, Config{Addr: "127.0.0.1:0"}, func(o *mongo.Options) { o.CursorTimeout = time.Millisecond })
	p := newPeer(t, s)
	p.must("d", cmd("insert", "c", "documents", bson.A{bson.D{}, bson.D{}, bson.D{}}))
	id := p.must("d", cmd("find", "c", "batchSize", 1)).Lookup("cursor", "id").Int64()
	eventually(t, "the cursor is closed", func() bool { return s.mongo.Statistics().CursorsTimedOut == 1 })
	p.refused("d", cmd("getMore", id, "collection", "c"), 43)
	eventually(t, "what it held is free", func() bool { return held(t, s) == 0 })
}

// held settles the store, and returns how many earlier pictures of it somebody still reads from. For a moment that may be the store itself,
// whose background goroutine gives up a picture after it has made another.
func held(t *testing.T, s *Server) int {
	t.Helper()
	if err := s.store.DB().Compact(t.Context(), pando.CompactOptions{}); err != nil {
		t.Fatal(err)
	}
	return s.store.DB().Metrics().Readers
}

// TestKilledCursorsFreeTheirSnapshots: nothing is held for a cursor that was killed, also when a getMore waits on it.
func TestKilledCursorsFreeTheirSnapshots(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0"})
	p, other := newPeer(t, s), newPeer(t, s)
	p.must("d", cmd("insert", "c", "documents", bson.A{bson.D{}, bson.D{}, bson.D{}}))
	var ids bson.A
	for range 10 {
		ids = append(ids, p.must("d", cmd("find", "c", "batchSize", 1)).Lookup("cursor", "id"))
	}
	if held(t, s) == 0 {
		t.Error("open cursors hold nothing")
	}
	p.must("d", cmd("killCursors", "c", "cursors", ids))
	eventually(t, "what killed cursors held is free", func() bool { return held(t, s) == 0 })
	watch := p.must("d", cmd("aggregate", "c", "pipeline", bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}, "cursor", bson.D{}))
	id := watch.Lookup("cursor", "id")
	p.sends(message(t, 99, "d", cmd("getMore", id, "collection", "c", "maxTimeMS", int32(1<<30)))...)
	eventually(t, "the getMore waits", func() bool { return running(other) == 2 })
	other.must("d", cmd("killCursors", "c", "cursors", bson.A{id}))
	if m, err := p.r.Read(); err != nil || isOK(bson.Raw(m.Body)) {
		t.Errorf("the getMore on a killed cursor: %v, %v", m, err)
	}
	if open := s.mongo.Statistics().Cursors; open != 0 {
		t.Errorf("%d cursors are open", open)
	}
}

// TestSessionHoarding: who makes sessions gets as many as there may be; strangers get none; others do not need them.
func TestSessionHoarding(t *testing.T) {
	const most = 20
	s := startTuned(t, Config{Addr: "127.0.0.1:0"}, func(o *mongo.Options) { o.MaxSessions = most })
	h := newHonest(t, s)
	p := newPeer(t, s)
	for range most {
		p.must("admin", cmd("startSession", 1))
	}
	p.refused("admin", cmd("startSession", 1), 261)
	p.refused("d", cmd("find", "c", "lsid", session(999)), 261)
	if n := s.mongo.Statistics().Sessions; n != most {
		t.Errorf("%d sessions", n)
	}
	h.works()
	p.must("admin", cmd("killAllSessions", bson.A{}))
	p.must("d", cmd("find", "c", "lsid", session(999)))

	guarded := startTuned(t, Config{Addr: "127.0.0.1:0", Auth: true}, nil)
	stranger := newPeer(t, guarded)
	for i := range most {
		stranger.must("admin", cmd("ping", 1, "lsid", session(i)))
	}
	if n := guarded.mongo.Statistics().Sessions; n != 0 {
		t.Errorf("strangers have %d sessions", n)
	}
}

// session is a session's id.
func session(n int) bson.D {
	id := make([]byte, 16)
	copy(id, fmt.Sprint(n))
	return bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: id}}}
}

// TestTransactionsLeftOpen: there are as many as there may be; the others are told to try again; those that are forgotten end, and
// what they hold is given back.
func TestTransactionsLeftOpen(t *testing.T) {
	t.Parallel()
	const most = 5
	begin := func(i int) bson.D {
		return cmd("insert", "c", "documents", bson.A{bson.D{{Key: "_id", Value: i}}}, "lsid", session(i), "txnNumber", int64(1), "startTransaction", true, "autocommit", false)
	}
	t.Run("too many", func(t *testing.T) {
		s := startTuned(t, Config{Addr: "127.0.0.1:0"}, func(o *mongo.Options) { o.MaxTransactions, o.TransactionTimeout = most, time.Hour })
		h, p := newHonest(t, s), newPeer(t, s)
		h.must("d", cmd("create", "c"))
		for i := range most {
			p.must("d", begin(i))
		}
		reply := p.refused("d", begin(most), 246)
		if label, _ := reply.Lookup("errorLabels", "0").StringValueOK(); label != "TransientTransactionError" {
			t.Errorf("a transaction too many: %s", reply)
		}
		h.works()
		_ = p.Close()
		if held(t, s) == 0 {
			t.Error("open transactions hold nothing")
		}
	})
	t.Run("too long", func(t *testing.T) {
		s := startTuned(t, Config{Addr: "127.0.0.1:0"}, func(o *mongo.Options) { o.MaxTransactions, o.TransactionTimeout = most, time.Millisecond })
		h, p := newHonest(t, s), newPeer(t, s)
		h.must("d", cmd("create", "c"))
		for i := range 3 * most {
			if i%(most-1) == 0 { // the last one that ended may be about to leave its place
				eventually(t, "they end, and what they held is free", func() bool { return held(t, s) == 0 })
			}
			p.must("d", begin(i))
		}
		_ = p.Close()
		eventually(t, "they end, and what they held is free", func() bool { return held(t, s) == 0 })
		if n, _ := h.must("d", cmd("count", "c")).Lookup("n").Int32OK(); n != 0 {
			t.Errorf("%d documents of transactions that ended", n)
		}
		h.works()
	})
}

// TestGreedyQueries: what would take all memory or all time is refused, or stopped when its time is up, and nobody else waits for it.
func TestGreedyQueries(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0"})
	h := newHonest(t, s)
	p := newPeer(t, s)
	docs := make(bson.A, 200)
	for i := range docs {
		docs[i] = bson.D{{Key: "_id", Value: i}, {Key: "text", Value: strings.Repeat("a", 10_000) + "!"}, {Key: "k", Value: 1}}
	}
	p.must("d", cmd("insert", "c", "documents", docs))
	const doubling = `{"$reduce": {"input": {"$range": [0, 60]}, "initialValue": "0123456789", "in": {"$concat": ["$$value", "$$value"]}}}`
	join := `{"$lookup": {"from": "c", "localField": "k", "foreignField": "k", "as": "x"}}, {"$unwind": "$x"}, {"$project": {"k": 1}}`
	pipeline := func(stages string) bson.D {
		var whole struct{ P bson.A }
		if err := bson.UnmarshalExtJSON([]byte(`{"p": [`+stages+`]}`), false, &whole); err != nil {
			t.Fatal(err)
		}
		return cmd("aggregate", "c", "pipeline", whole.P, "cursor", bson.D{}, "maxTimeMS", 500)
	}
	for _, test := range []struct {
		name    string
		command bson.D
	}{
		{"a pattern that backtracks", cmd("find", "c", "filter", bson.D{{Key: "text", Value: bson.Regex{Pattern: "^(a+)+(?<!b)$"}}}, "maxTimeMS", 500)},
		{"a pattern with huge repeats", cmd("find", "c", "filter", bson.D{{Key: "text", Value: bson.Regex{Pattern: "((a{0,1000}){0,1000}){0,1000}$"}}}, "maxTimeMS", 500)},
		{"a pattern of a megabyte", cmd("find", "c", "filter", bson.D{{Key: "text", Value: bson.Regex{Pattern: strings.Repeat("(a|", 300_000)}}})},
		{"strings that double", pipeline(`{"$project": {"x": ` + doubling + `}}`)},
		{"a list without end", pipeline(`{"$project": {"x": {"$range": [0, 2147483647]}}}`)},
		{"loops in loops", endless()},
		{"a join of all with all, and again", pipeline(strings.Join([]string{join, join, join, join}, ", ") + `, {"$group": {"_id": null, "n": {"$sum": 1}}}`)},
		{"a group that collects everything", pipeline(join + `, ` + join + `, {"$group": {"_id": null, "all": {"$push": {"$concat": ["$k", ` + doubling + `]}}}}`)},
		{"a document that grows beyond all bounds", pipeline(`{"$group": {"_id": null, "all": {"$push": "$text"}}}, {"$project": {"x": {"$concatArrays": ["$all", "$all", "$all", "$all", "$all", "$all", "$all", "$all", "$all", "$all"]}}}`)},
		{"numbers without end", pipeline(`{"$densify": {"field": "_id", "range": {"step": 0.0000001, "bounds": [0, 1000000]}}}`)},
		{"a code of the server", pipeline(`{"$match": {"$where": "while (true) {}"}}`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if testing.Short() && test.name == "loops in loops" {
				t.Skip("it takes as many steps as one document may, which is long with the race detector")
			}
			p.t = t
			p.refused("d", test.command)
			h.works()
		})
	}
}

// TestIdleConnections: connections that do nothing cost nobody else anything, and each of them less than 64 KiB, wherever in its life
// before the login it stands still.
func TestIdleConnections(t *testing.T) {
	n := affordable(t, idleConnections)
	s := start(t, Config{Addr: "127.0.0.1:0", Auth: true, MaxConnections: n + 2})
	h := newPeer(t, s)
	h.must("admin", cmd("ping", 1))
	clients := startIdleClients(t, s.Addrs()[0])
	for name := range idleMessages(t) {
		t.Run(name, func(t *testing.T) {
			before := memoryInUse()
			clients.tell("open %d %s", n, name)
			h.must("admin", cmd("ping", 1))
			if got := s.mongo.Statistics().Connections; int(got) != n+1 {
				t.Errorf("%d connections are open, want %d", got, n+1)
			}
			each := (memoryInUse() - before) / int64(n)
			t.Logf("%d connections take %d bytes each", n, each)
			if each > 64<<10 {
				t.Errorf("a connection takes %d bytes", each)
			}
			clients.tell("close")
			left(t, s, 1)
		})
	}
}

// memoryInUse is what the heap and the stacks hold after a collection.
func memoryInUse() int64 {
	var m runtime.MemStats
	for range 3 { // pools survive one
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestNothingIsLeftOpen: after hostile clients and an end of the server there are as many descriptors as before.
func TestNothingIsLeftOpen(t *testing.T) {
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("this system does not list descriptors: ", err)
		}
		return len(list)
	}
	once := func() {
		s := startTuned(t, Config{Addr: "127.0.0.1:0"}, hasty)
		for i := range 50 {
			p := newPeer(t, s)
			switch i % 4 {
			case 0:
				p.must("admin", cmd("ping", 1))
			case 1:
				p.sends(1, 2, 3)
			case 2:
				p.sends(header(1<<20, wire.OpMsg)...)
			}
			defer p.Close()
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	once() // what is opened once and kept
	before := count()
	once()
	if now := count(); now > before {
		t.Errorf("%d descriptors are open, and %d before", now, before)
	}
}
