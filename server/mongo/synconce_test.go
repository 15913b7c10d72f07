package mongo

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// serverOn returns a server, and its store, on a file system, which end with the test.
func serverOn(t *testing.T, fs vfs.FS) *Server {
	t.Helper()
	store, err := document.Open("db", &document.Options{Storage: pando.Options{FS: fs, MemoryBytes: 8 << 20}, TTLInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(store, &Options{TestCommands: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(s.Close(), store.Close()) })
	return s
}

// named inserts n documents with names, n of other collections too, and does what else the commands below need.
func named(c *testClient, n int) {
	c.t.Helper()
	docs := bson.A{}
	for i := range n {
		docs = append(docs, cmd("_id", i, "name", i, "text", "t"))
	}
	for _, name := range []string{"c", "from"} {
		c.must("d", cmd("insert", name, "documents", docs))
		c.must("d", cmd("createIndexes", name, "indexes", bson.A{cmd("key", cmd("name", 1), "name", "n", "unique", true)}))
	}
	c.must("d", cmd("create", "capped", "capped", true, "size", 1<<20))
	c.must("d", cmd("insert", "capped", "documents", bson.A{cmd("_id", -1, "name", 1)})) // the shape that others will have
	c.must("d", cmd("update", "c", "updates", bson.A{cmd("q", cmd("_id", 0), "u", cmd("$set", cmd("n", 0)))}))
}

// planned is a filter for the document of a name, by a plan: statements by their _id or a unique index alone share commits.
func planned(name int) bson.D { return cmd("name", cmd("$in", bson.A{name, "none"})) }

// bulk is a command that commits many times, and what is there afterwards: so many documents with a field.
type bulk struct {
	name    string
	command func(n int) bson.D
	in      string
	found   bson.D
	want    func(n int) int
}

// bulks are commands that commit as often as the collection has documents; most have a statement that fails.
func bulks() []bulk {
	all := func(n int) int { return n }
	one := func(n int) int { return n - 1 }
	seen := cmd("n", cmd("$gt", 0))
	update := func(n int, more ...bson.E) bson.D {
		list := bson.A{}
		for i := range n {
			u := cmd("$set", cmd("n", i+1))
			if i == n/2 {
				u = cmd("$inc", cmd("text", 1)) // fails
			}
			list = append(list, cmd("q", planned(i), "u", u))
		}
		return append(cmd("update", "c", "updates", list, "ordered", false), more...)
	}
	merge := func(stage bson.D) func(n int) bson.D {
		return func(int) bson.D {
			stage := append(cmd("into", "c", "on", "name"), stage...)
			return cmd("aggregate", "from", "pipeline", bson.A{cmd("$project", cmd("_id", 0, "name", 1, "n", cmd("$add", bson.A{"$name", 1}))), cmd("$merge", stage)}, "cursor", bson.D{})
		}
	}
	lsid := cmd("id", bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("0123456789abcdef")})
	return []bulk{
		{"update", func(n int) bson.D { return update(n) }, "c", seen, one},
		{"retryable update", func(n int) bson.D { return update(n, cmd("lsid", lsid, "txnNumber", int64(1))...) }, "c", seen, one},
		{"ordered update that ends early", func(n int) bson.D {
			return append(update(n)[:2:2], bson.E{Key: "ordered", Value: true})
		}, "c", seen, func(n int) int { return n / 2 }},
		{"delete", func(n int) bson.D {
			list := bson.A{}
			for i := range n {
				list = append(list, cmd("q", planned(i), "limit", 1))
			}
			return cmd("delete", "c", "deletes", list)
		}, "c", bson.D{}, func(int) int { return 0 }},
		{"merge", merge(nil), "c", seen, all},
		{"merge one by one", merge(cmd("whenNotMatched", "fail")), "c", seen, all},
		{"merge by a pipeline", merge(cmd("whenMatched", bson.A{cmd("$set", cmd("n", cmd("$add", bson.A{"$name", 1})))})), "c", seen, all},
		{"insert into a capped collection", func(n int) bson.D {
			docs := bson.A{}
			for i := range n {
				docs = append(docs, cmd("_id", i, "name", i))
			}
			return cmd("insert", "capped", "documents", append(docs, cmd("_id", 0)), "ordered", false)
		}, "capped", cmd("_id", cmd("$gte", 0)), all},
		{"applyOps", func(n int) bson.D {
			list := bson.A{cmd("op", "c", "ns", "d.$cmd", "o", cmd("create", "new"))}
			for i := range n {
				list = append(list, cmd("op", "u", "ns", "d.c", "o2", cmd("_id", i), "o", cmd("$set", cmd("n", 1))))
			}
			return cmd("applyOps", list)
		}, "c", seen, all},
	}
}

// A command that commits many times takes as many syncs of the log when it commits ten times as often, and when it is answered all that
// it has done survives a power cut.
func TestCommandsThatCommitOftenSyncOnce(t *testing.T) {
	for _, b := range bulks() {
		t.Run(b.name, func(t *testing.T) {
			var took []int64
			for _, n := range []int{6, 60} {
				fs := memfs.New()
				counting := faultfs.New(fs)
				var syncs atomic.Int64
				c := dial(t, serverOn(t, counting))
				named(c, n)
				counting.OnCall(func(op faultfs.Op, name string) error {
					if op == faultfs.OpSync && filepath.Base(filepath.Dir(name)) == "wal" {
						syncs.Add(1)
					}
					return nil
				})
				c.must("d", b.command(n))
				took = append(took, syncs.Load())
				image := fs.CrashImage(memfs.Policy{})
				left := dial(t, serverOn(t, image)).must("d", cmd("count", b.in, "query", b.found)).Lookup("n").Int32()
				if want := b.want(n); int(left) != want {
					t.Errorf("%d documents survive a power cut, not %d", left, want)
				}
			}
			if took[0] < 1 || took[1] > took[0] {
				t.Errorf("%d syncs, and ten times as many statements take %d", took[0], took[1])
			}
		})
	}
}

// The documents of an update of many are changed with several commits, and one sync, or two: that of the last commit, and the last.
func TestUpdateOfManySyncsOnce(t *testing.T) {
	fs := memfs.New()
	s := serverOn(t, fs)
	c := dial(t, s)
	named(c, 2000)
	before := s.store.DB().Metrics().Syncs
	c.must("d", cmd("update", "c", "updates", bson.A{cmd("q", bson.D{}, "u", cmd("$set", cmd("n", 1)), "multi", true)}))
	if got := s.store.DB().Metrics().Syncs - before; got > 2 {
		t.Errorf("%d syncs", got)
	}
	left := dial(t, serverOn(t, fs.CrashImage(memfs.Policy{}))).must("d", cmd("count", "c", "query", cmd("n", 1))).Lookup("n").Int32()
	if left != 2000 {
		t.Errorf("%d documents survive a power cut", left)
	}
}

// What a command tells of may have been done by another one that has not come to its sync yet. Where that is promised to last it is
// durable first, although the command itself writes nothing; other reads do not wait.
func TestAnswersRestOnWhatIsDurable(t *testing.T) {
	set := cmd("$set", cmd("n", 1))
	level := func(name string) bson.D { return cmd("level", name) }
	for _, x := range []struct {
		name, db string
		command  bson.D
		durable  bool
	}{
		{"update", "d", cmd("update", "c", "updates", bson.A{cmd("q", cmd("_id", 1), "u", set)}), true},
		{"updates", "d", cmd("update", "c", "updates", bson.A{cmd("q", cmd("name", 1), "u", set), cmd("q", cmd("name", 1), "u", set)}), true},
		{"delete", "d", cmd("delete", "c", "deletes", bson.A{cmd("q", cmd("_id", 1, "n", nil), "limit", 1)}), true},
		{"findAndModify", "d", cmd("findAndModify", "c", "query", cmd("_id", 1), "update", set), true},
		{"insert", "d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1)}), true},
		{"drop", "d", cmd("drop", "none"), true},
		{"find", "d", cmd("find", "c"), false},
		{"aggregate", "d", cmd("aggregate", "c", "pipeline", bson.A{}, "cursor", bson.D{}), false},
		{"find that lasts", "d", cmd("find", "c", "readConcern", level("majority")), true},
		{"find of the newest", "d", cmd("find", "c", "readConcern", level("linearizable")), true},
		{"aggregate at a moment", "d", cmd("aggregate", "c", "pipeline", bson.A{}, "cursor", bson.D{}, "readConcern", level("snapshot")), true},
		{"oplog", "local", cmd("find", "oplog.rs", "sort", cmd("$natural", -1), "limit", 1), true},
	} {
		t.Run(x.name, func(t *testing.T) {
			fs := memfs.New()
			s := serverOn(t, fs)
			c := dial(t, s)
			named(c, 4)
			whileExposed(t, s, func() {
				c.run(x.db, x.command)
				if durable := exposedSurvives(t, fs); durable != x.durable {
					t.Errorf("it is durable: %v", durable)
				}
			})
		})
	}
}

// whileExposed calls fn while a change, of n to 1 in a document, is to be seen and not durable.
func whileExposed(t *testing.T, s *Server, fn func()) {
	t.Helper()
	err := s.store.SyncOnce(t.Context(), 2, func(ctx context.Context) error {
		_, err := s.store.Database("d").Lookup("c").Update(ctx, cmd("name", 1), cmd("$set", cmd("n", 1)), nil)
		fn()
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// exposedSurvives reports whether that change survives a power cut.
func exposedSurvives(t *testing.T, fs *memfs.FS) bool {
	t.Helper()
	return dial(t, serverOn(t, fs.CrashImage(memfs.Policy{}))).must("d", cmd("count", "c", "query", cmd("n", 1))).Lookup("n").Int32() == 1
}

// So it is with what cursors are read from, whose getMore says nothing of a read concern, with the default one, and with transactions,
// which promise at their commit that what they have read lasts.
func TestLaterAnswersRestOnWhatIsDurable(t *testing.T) {
	lsid := cmd("id", bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("0123456789abcdef")})
	open := func(command bson.D) func(c *testClient) bson.D {
		return func(c *testClient) bson.D {
			id := c.must("d", command).Lookup("cursor", "id").Int64()
			return cmd("getMore", id, "collection", "c", "batchSize", 1)
		}
	}
	find := cmd("find", "c", "batchSize", 1)
	for _, x := range []struct {
		name    string
		before  func(c *testClient) bson.D
		durable bool
	}{
		{"change stream", open(cmd("aggregate", "c", "pipeline", bson.A{cmd("$changeStream", bson.D{})}, "cursor", bson.D{})), true},
		{"cursor", open(find), false},
		{"cursor that lasts", open(append(find[:2:2], cmd("readConcern", cmd("level", "majority"))...)), true},
		{"default read concern", func(c *testClient) bson.D {
			c.must("admin", cmd("setDefaultRWConcern", 1, "defaultReadConcern", cmd("level", "majority")))
			return find
		}, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			fs := memfs.New()
			s := serverOn(t, fs)
			c := dial(t, s)
			named(c, 4)
			later := x.before(c)
			whileExposed(t, s, func() {
				c.must("d", later)
				if durable := exposedSurvives(t, fs); durable != x.durable {
					t.Errorf("it is durable: %v", durable)
				}
			})
		})
	}
	t.Run("transaction", func(t *testing.T) {
		fs := memfs.New()
		s := serverOn(t, fs)
		c := dial(t, s)
		named(c, 4)
		in := cmd("lsid", lsid, "txnNumber", int64(1), "autocommit", false)
		whileExposed(t, s, func() {
			c.must("d", append(append(cmd("find", "c"), in...), bson.E{Key: "startTransaction", Value: true}))
			c.must("d", append(cmd("update", "c", "updates", bson.A{cmd("q", cmd("_id", 3), "u", cmd("$set", cmd("text", "t")))}), in...))
			if exposedSurvives(t, fs) {
				t.Error("the transaction waits before its commit")
			}
			c.must("admin", append(cmd("commitTransaction", 1), in...))
			if !exposedSurvives(t, fs) {
				t.Error("what a transaction has read is not durable when it has committed")
			}
		})
	})
}

// A write whose own commit waits for a sync does not wait for another one.
func TestCommitThatWaitsIsEnough(t *testing.T) {
	s := serverOn(t, memfs.New())
	c := dial(t, s)
	named(c, 4)
	set := cmd("$set", cmd("n", 7))
	for _, command := range []bson.D{
		cmd("update", "c", "updates", bson.A{cmd("q", cmd("_id", 1), "u", set)}),
		cmd("findAndModify", "c", "query", cmd("_id", 2), "update", set),
		cmd("insert", "c", "documents", bson.A{cmd("_id", 100, "name", 100, "text", "t")}),
	} {
		whileExposed(t, s, func() {
			before := s.store.DB().Metrics().Syncs
			c.must("d", command)
			if got := s.store.DB().Metrics().Syncs - before; got != 1 {
				t.Errorf("%s takes %d syncs", command[0].Key, got)
			}
		})
	}
}

// When the one sync fails the command does, and so does one that is sent again or that promises that what it has seen lasts; plain reads go
// on.
func TestSyncOnceThatFails(t *testing.T) {
	faults := faultfs.New(memfs.New())
	c := dial(t, serverOn(t, faults))
	named(c, 4)
	lsid := cmd("id", bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("0123456789abcdef")})
	list := bson.A{}
	for i := range 4 {
		list = append(list, cmd("q", planned(i), "u", cmd("$set", cmd("n", 1))))
	}
	update := cmd("update", "c", "updates", list, "ordered", false, "lsid", lsid, "txnNumber", int64(1))
	faults.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync)})
	c.refused("d", update, 1)
	faults.Set()
	c.refused("d", update, 1)
	c.refused("d", cmd("find", "c", "readConcern", cmd("level", "majority")), 1)
	c.must("d", cmd("find", "c"))
}
