package mongo

import (
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestDefaultConcerns: what setDefaultRWConcern sets holds for commands that name no concern, as in mongod 6.0, and after a restart.
func TestDefaultConcerns(t *testing.T) {
	s := newServerOf(t, pando.Relaxed, nil)
	c := dial(t, s)
	shows := func(reply bson.Raw, want string) {
		t.Helper()
		got := bson.D{}
		for _, name := range []string{"defaultReadConcern", "defaultWriteConcern", "defaultReadConcernSource", "defaultWriteConcernSource"} {
			got = append(got, bson.E{Key: name[len("default"):], Value: reply.Lookup(name)})
		}
		raw, err := bson.Marshal(got)
		if text := bson.Raw(raw).String(); err != nil || text != want {
			t.Errorf("%s\nwant %s", text, want)
		}
	}
	const implicit = `{"ReadConcern": {"level": "local"},"WriteConcern": {"w": {"$numberInt":"1"},"wtimeout": {"$numberInt":"0"}},` +
		`"ReadConcernSource": "implicit","WriteConcernSource": "implicit"}`
	shows(c.must("admin", cmd("getDefaultRWConcern", 1)), implicit)
	set := func(args ...any) bson.D { return cmd("setDefaultRWConcern", 1, args...) }
	for _, refused := range []struct {
		command bson.D
		code    int32
	}{
		{set(), 2},
		{set("defaultWriteConcern", bson.D{{Key: "w", Value: 0}}), 2},
		{set("defaultWriteConcern", bson.D{{Key: "w", Value: "tag"}}), 79},
		{set("defaultWriteConcern", bson.D{{Key: "x", Value: 1}}), 40415},
		{set("defaultWriteConcern", 5), 14},
		{set("defaultReadConcern", bson.D{{Key: "level", Value: "snapshot"}}), 2},
		{set("defaultReadConcern", bson.D{{Key: "level", Value: "linearizable"}}), 2},
		{set("defaultReadConcern", bson.D{{Key: "level", Value: "x"}}), 9},
		{set("defaultReadConcern", 5), 14},
		{set("defaultReadConcern", bson.D{{Key: "level", Value: "local"}}, "colour", 1), 40415},
	} {
		c.refused("admin", refused.command, refused.code)
	}
	shows(c.must("admin", cmd("getDefaultRWConcern", 1)), implicit)
	c.must("admin", set("defaultWriteConcern", bson.D{}))

	shows(c.must("admin", set("defaultWriteConcern", bson.D{{Key: "j", Value: true}, {Key: "wtimeout", Value: 5}})),
		`{"ReadConcern": {"level": "local"},"WriteConcern": {"w": {"$numberInt":"1"},"j": true,"wtimeout": {"$numberInt":"5"}},`+
			`"ReadConcernSource": "implicit","WriteConcernSource": "global"}`)
	c.refused("admin", set("defaultWriteConcern", bson.D{}), 20)
	shows(c.must("admin", set("defaultReadConcern", bson.D{{Key: "level", Value: "majority"}}, "defaultWriteConcern", bson.D{{Key: "w", Value: 2}})),
		`{"ReadConcern": {"level": "majority"},"WriteConcern": {"w": {"$numberInt":"2"},"wtimeout": {"$numberInt":"0"}},`+
			`"ReadConcernSource": "global","WriteConcernSource": "global"}`)
	insert := cmd("insert", "c", "documents", bson.A{bson.D{}})
	for range 2 { // and on a server that begins with the same store
		if code := c.must("d", insert).Lookup("writeConcernError", "code").String(); code != `{"$numberInt":"100"}` {
			t.Errorf("a write that two members are to have: %s", code)
		}
		if reply := c.must("d", append(insert, bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: 1}}})); reply.Lookup("writeConcernError").Type != 0 {
			t.Errorf("a write with a concern of its own: %s", reply)
		}
		again, err := New(s.store, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = again.Close() })
		c = dial(t, again)
	}
	reply := c.must("admin", cmd("getDefaultRWConcern", 1, "inMemory", true))
	if inMemory, _ := reply.Lookup("inMemory").BooleanOK(); !inMemory || reply.Lookup("updateOpTime").Type != bson.TypeTimestamp {
		t.Errorf("%s", reply)
	}
	shows(c.must("admin", set("defaultReadConcern", bson.D{}, "defaultWriteConcern", bson.D{{Key: "w", Value: "majority"}})),
		`{"ReadConcern": {"level": "local"},"WriteConcern": {"w": "majority","wtimeout": {"$numberInt":"0"}},`+
			`"ReadConcernSource": "implicit","WriteConcernSource": "global"}`)
}

// TestDefaultWriteConcernSyncs: with a default that asks for it, writes of the relaxed profile survive a power cut when they are
// acknowledged, as does the default itself.
func TestDefaultWriteConcernSyncs(t *testing.T) {
	fs := memfs.New()
	storage := pando.Options{MemoryBytes: 8 << 20, Profile: pando.Relaxed, SyncInterval: time.Hour}
	serve := func(fs *memfs.FS) *testClient {
		o := storage
		o.FS = fs
		store, err := document.Open("db", &document.Options{Storage: o, TTLInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = errors.Join(s.Close(), store.Close()) })
		return dial(t, s)
	}
	c := serve(fs)
	c.must("admin", cmd("setDefaultRWConcern", 1, "defaultWriteConcern", bson.D{{Key: "w", Value: "majority"}}))
	c.must("d", cmd("insert", "c", "documents", bson.A{bson.D{{Key: "_id", Value: 1}}}))
	c.must("d", cmd("insert", "c", "documents", bson.A{bson.D{{Key: "_id", Value: 2}}}, "writeConcern", bson.D{{Key: "w", Value: 1}}))
	c = serve(fs.CrashImage(memfs.Policy{}))
	if n, _ := c.must("d", cmd("count", "c")).Lookup("n").AsInt64OK(); n != 1 {
		t.Errorf("%d documents survive a power cut, want the one of the default concern", n)
	}
	if source := textIn(c.must("admin", cmd("getDefaultRWConcern", 1)), "defaultWriteConcernSource"); source != "global" {
		t.Errorf("the default is %s after a power cut", source)
	}
}

// TestStandaloneHasNoDefaultConcerns as a standalone mongod.
func TestStandaloneHasNoDefaultConcerns(t *testing.T) {
	c := dial(t, newServer(t, &Options{Standalone: true}))
	c.refused("admin", cmd("getDefaultRWConcern", 1), 51300)
	c.refused("admin", cmd("setDefaultRWConcern", 1, "defaultReadConcern", bson.D{}), 51300)
}

// TestDefaultConcernsThatAreWrittenTo: who changes them where they are kept changes them at once, as on a mongod, and not with the next server.
func TestDefaultConcernsThatAreWrittenTo(t *testing.T) {
	s := newServerOf(t, pando.Relaxed, nil)
	c := dial(t, s)
	inForce := func() string {
		reply := c.must("admin", cmd("getDefaultRWConcern", 1))
		return reply.Lookup("defaultReadConcern", "level").StringValue() + " " + reply.Lookup("defaultWriteConcern", "w").String() + " " +
			reply.Lookup("defaultWriteConcernSource").StringValue()
	}
	const set, unset = `majority "majority" global`, `local {"$numberInt":"1"} implicit`
	which := bson.D{{Key: "_id", Value: defaultsID}}
	for why, commands := range map[string][]struct {
		db      string
		command bson.D
		want    string
	}{
		"delete": {{"config", cmd("delete", "settings", "deletes", list(cmd("q", which, "limit", 1))), unset}},
		"update": {{"config", cmd("update", "settings", "updates", list(cmd("q", which, "u", stage("$set", stage("defaultReadConcern.level", "available"))))),
			`available "majority" global`}},
		"drop": {{"config", cmd("drop", "settings"), unset}},
		"rename and back": {
			{"admin", cmd("renameCollection", "config.settings", "to", "d.kept"), unset}, {"admin", cmd("renameCollection", "d.kept", "to", "config.settings"), set},
		},
		"applyOps":            {{"admin", cmd("applyOps", list(cmd("op", "d", "ns", "config.settings", "o", which))), unset}},
		"what makes no sense": {{"config", cmd("update", "settings", "updates", list(cmd("q", which, "u", stage("$set", stage("defaultWriteConcern", "w"))))), unset}},
	} {
		c.must("admin", cmd("setDefaultRWConcern", 1, "defaultReadConcern", stage("level", "majority"), "defaultWriteConcern", stage("w", "majority")))
		if got := inForce(); got != set {
			t.Fatalf("%s: %s", why, got)
		}
		for _, x := range commands {
			c.must(x.db, x.command)
			if got := inForce(); got != x.want {
				t.Errorf("%s: in force is %s, want %s", why, got, x.want)
			}
		}
	}
}
