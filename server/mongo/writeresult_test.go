package mongo

import (
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// fieldsOf returns the names of the fields that an answer has for itself, in their order.
func fieldsOf(t *testing.T, reply bson.Raw) string {
	t.Helper()
	elements, err := reply.Elements()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range elements {
		if e.Key() != "$clusterTime" && e.Key() != "operationTime" {
			names = append(names, e.Key())
		}
	}
	return strings.Join(names, " ")
}

// with returns a command with more fields.
func with(command bson.D, more ...any) bson.D {
	return slices.Concat(command, cmd(more[0].(string), more[1], more[2:]...))
}

// Members of a replica set tell of a write who was elected, and when it was. A client that wants to hear of nothing, and waits all
// the same, hears how many, and no more.
func TestWhatWritesAnswer(t *testing.T) {
	insert := cmd("insert", "c", "documents", bson.A{cmd("_id", 1)})
	update := cmd("update", "c", "ordered", false, "updates", bson.A{
		cmd("q", bson.D{}, "u", cmd("$unknown", 1)), cmd("q", cmd("_id", 2), "u", cmd("$set", cmd("a", 1)), "upsert", true),
	})
	steps := []struct {
		command     bson.D
		member, own string
	}{
		{insert, "n electionId opTime ok", "n ok"},
		{insert, "n electionId opTime writeErrors ok", "n writeErrors ok"},
		{with(insert, "writeConcern", cmd("w", 0)), "n ok", "n ok"},
		{update, "n electionId opTime writeErrors upserted nModified ok", "n writeErrors upserted nModified ok"},
		{with(update, "writeConcern", cmd("w", 0)), "n ok", "n ok"},
		{cmd("delete", "c", "deletes", bson.A{cmd("q", bson.D{}, "limit", 0)}), "n electionId opTime ok", "n ok"},
	}
	for _, alone := range []bool{false, true} {
		c := dial(t, newServer(t, &Options{Standalone: alone}))
		for _, step := range steps {
			want := step.member
			if alone {
				want = step.own
			}
			if got := fieldsOf(t, c.must("d", step.command)); got != want {
				t.Errorf("alone: %v: %v answers %s, want %s", alone, step.command, got, want)
			}
		}
	}
	c := dial(t, newServer(t, nil))
	reply := c.must("d", insert)
	if at := reply.Lookup("opTime", "ts"); !at.Equal(reply.Lookup("operationTime")) {
		t.Errorf("the write was at %s, and the operation at %s", at, reply.Lookup("operationTime"))
	}
}

// A retried write says so.
func TestWhatRetriedWritesAnswer(t *testing.T) {
	c := dial(t, newServer(t, nil))
	lsid := cmd("id", bson.Binary{Subtype: bson.TypeBinaryUUID, Data: []byte("0123456789abcdef")})
	insert := cmd("insert", "c", "documents", bson.A{cmd("_id", 1)}, "lsid", lsid, "txnNumber", int64(1))
	modify := cmd("findAndModify", "c", "query", cmd("_id", 1), "update", cmd("a", 1), "lsid", lsid, "txnNumber", int64(2))
	for _, step := range []struct {
		command bson.D
		want    string
	}{
		{insert, "n electionId opTime ok"},
		{insert, "n electionId opTime retriedStmtIds ok"},
		{modify, "lastErrorObject value ok"},
		{modify, "lastErrorObject value retriedStmtId ok"},
	} {
		if got := fieldsOf(t, c.must("d", step.command)); got != step.want {
			t.Errorf("%v answers %s, want %s", step.command, got, step.want)
		}
	}
}

// TestConstantsWithoutAPipeline: a statement that has constants, and nothing that could use them, fails alone. The others are carried out, or
// with ordered those in front of it.
func TestConstantsWithoutAPipeline(t *testing.T) {
	c := filled(t, 3, &Options{})
	count := func(id int) bson.D { return cmd("q", cmd("_id", id), "u", cmd("$inc", cmd("n", 1))) }
	list := bson.A{count(0), with(count(1), "c", cmd("x", 1)), count(2)}
	for _, test := range []struct {
		ordered  bool
		modified int32
	}{{false, 2}, {true, 1}} {
		reply := c.must("d", cmd("update", "c", "updates", list, "ordered", test.ordered))
		errs, _ := reply.Lookup("writeErrors").Array().Values()
		if len(errs) != 1 || errs[0].Document().Lookup("index").Int32() != 1 || errs[0].Document().Lookup("code").Int32() != 51198 {
			t.Errorf("ordered %v: %s", test.ordered, reply)
		}
		if n := reply.Lookup("nModified").Int32(); n != test.modified {
			t.Errorf("ordered %v: %d are modified, not %d", test.ordered, n, test.modified)
		}
	}
}
