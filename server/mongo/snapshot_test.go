package mongo

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// atSnapshot returns a command that reads at one moment: the present one, or that of an earlier answer.
func atSnapshot(command bson.D, earlier ...bson.Raw) bson.D {
	concern := cmd("level", "snapshot")
	for _, reply := range earlier {
		concern = append(concern, bson.E{Key: "atClusterTime", Value: reply.Lookup("cursor", "atClusterTime")})
	}
	return with(command, "readConcern", concern)
}

// Clients that read at the present moment again and again use one, until something changes; so they do not use up what may be kept.
func TestSnapshotReadsShareAMoment(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	first := c.must("d", atSnapshot(cmd("find", "c")))
	for range maxSnapshots + 1 {
		c.must("d", atSnapshot(cmd("find", "c")))
	}
	if n := len(s.snapshots.byTime); n != 1 {
		t.Errorf("%d moments are kept, and nothing was written", n)
	}
	for i, write := range []bson.D{
		cmd("create", "c"), cmd("insert", "c", "documents", bson.A{cmd("_id", 1)}), cmd("renameCollection", "d.c", "to", "d.e"), cmd("drop", "e"),
	} {
		db := "d"
		if write[0].Key == "renameCollection" {
			db = "admin"
		}
		c.must(db, write)
		c.must("d", atSnapshot(cmd("find", "c")))
		if n := len(s.snapshots.byTime); n != i+2 {
			t.Errorf("%d moments are kept after %v", n, write)
		}
	}
	if n := len(ids(t, c.must("d", atSnapshot(cmd("find", "c"), first)), "firstBatch")); n != 0 {
		t.Errorf("%d documents in the first of all moments", n)
	}
}

// When as many moments are kept as may be, the one that was not used for longest makes room; only if all are being read from there is none.
func TestUnusedSnapshotsMakeRoom(t *testing.T) {
	s := newServer(t, &Options{MaxConnectionCursors: 2 * maxSnapshots})
	c := dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", -1), cmd("_id", -2), cmd("_id", -3)}))
	insert := func(id int) { c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", id)})) }
	first := c.must("d", atSnapshot(cmd("find", "c")))
	insert(0)
	second := c.must("d", atSnapshot(cmd("find", "c")))
	c.must("d", atSnapshot(cmd("find", "c"), first))
	for i := range maxSnapshots - 1 {
		insert(i + 1)
		c.must("d", atSnapshot(cmd("find", "c", "batchSize", 1)))
	}
	if n := len(ids(t, c.must("d", atSnapshot(cmd("find", "c"), first)), "firstBatch")); n != 3 {
		t.Errorf("%d documents in the moment that was read from since", n)
	}
	c.refused("d", atSnapshot(cmd("find", "c"), second), int32(codeSnapshotTooOld))
	insert(-4)
	c.must("d", atSnapshot(cmd("find", "c", "batchSize", 1)))
	insert(-5)
	c.refused("d", atSnapshot(cmd("find", "c")), 246)
	if n := len(s.snapshots.byTime); n != maxSnapshots {
		t.Errorf("%d moments are kept", n)
	}
}

// A cursor reads at its moment for as long as it is open, however long ago the command was that opened it.
func TestSnapshotsStayForTheirCursors(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	docs := bson.A{}
	for i := range 10 {
		docs = append(docs, cmd("_id", i))
	}
	c.must("d", cmd("insert", "c", "documents", docs))
	opened := c.must("d", atSnapshot(cmd("find", "c", "sort", cmd("_id", 1), "batchSize", 2)))
	id := opened.Lookup("cursor", "id").Int64()
	c.must("d", cmd("delete", "c", "deletes", bson.A{cmd("q", bson.D{}, "limit", 0)}))
	kept := func() int {
		for _, snap := range s.snapshots.expire(time.Now().Add(time.Hour), false) {
			if err := snap.Close(); err != nil {
				t.Error(err)
			}
		}
		return len(s.snapshots.byTime)
	}
	for range 3 {
		if n := kept(); n != 1 {
			t.Fatalf("%d moments are kept while a cursor reads", n)
		}
		if got := ids(t, c.must("d", cmd("getMore", id, "collection", "c", "batchSize", 2)), "nextBatch"); len(got) != 2 {
			t.Errorf("a batch has %v", got)
		}
	}
	c.must("d", cmd("killCursors", "c", "cursors", bson.A{id}))
	if n := kept(); n != 0 {
		t.Errorf("%d moments are kept after their cursor", n)
	}
	c.refused("d", atSnapshot(cmd("find", "c"), opened), int32(codeSnapshotTooOld))
}

// Drivers close their connections when they hear that the server shuts down. They hear it when it does, and not when something is gone that
// they read from.
func TestOnlyAServerThatEndsSaysSo(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1), cmd("_id", 2)}))
	find := cmd("find", "c", "sort", cmd("_id", 1), "batchSize", 1)
	opened := c.must("d", atSnapshot(find))
	for _, kept := range s.snapshots.byTime {
		if err := kept.snap.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c.refused("d", cmd("getMore", opened.Lookup("cursor", "id").Int64(), "collection", "c"), int32(codeInterrupted))
	c.refused("d", atSnapshot(find, opened), int32(codeSnapshotTooOld))
	s.drain()
	c.refused("d", atSnapshot(find, opened), int32(codeShutdown))
}

// A cursor that is killed after a getMore has taken it, and before that reads, has not come to its end.
func TestKilledCursorsDoNotEndAsIfTheyHadReadEverything(t *testing.T) {
	s := newServer(t, nil)
	c := dial(t, s)
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1), cmd("_id", 2)}))
	id := c.must("d", cmd("find", "c", "batchSize", 1)).Lookup("cursor", "id").Int64()
	s.cursors.mu.Lock()
	x := s.cursors.byID[id]
	s.cursors.mu.Unlock()
	if err := x.close(); err != nil { // as kill does, when the cursor has left the table
		t.Fatal(err)
	}
	c.refused("d", cmd("getMore", id, "collection", "c"), int32(codeCursorKilled))
}
