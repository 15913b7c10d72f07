package mongo

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// uniqueIn makes a unique index of a field.
func uniqueIn(c *testClient, name, field string) {
	c.t.Helper()
	c.must("d", cmd("createIndexes", name, "indexes", bson.A{cmd("key", cmd(field, 1), "name", field, "unique", true)}))
}

// TestManyFailedStatementsMakeASmallAnswer: statements that all meet the same long key are told with their codes, and only the first ones
// with texts and keys.
func TestManyFailedStatementsMakeASmallAnswer(t *testing.T) {
	c := dial(t, newServer(t, nil))
	long := strings.Repeat("k", 60_000)
	uniqueIn(c, "c", "a")
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1, "a", long), cmd("_id", 2, "b", long)}))
	const statements = 500
	updates, inserts := bson.A{}, bson.A{}
	for range statements {
		updates = append(updates, cmd("q", cmd("_id", 2), "u", bson.A{cmd("$set", cmd("a", "$b"))}))
		inserts = append(inserts, cmd("_id", 3, "a", long))
	}
	for _, command := range []bson.D{
		cmd("update", "c", "updates", updates, "ordered", false), cmd("insert", "c", "documents", inserts, "ordered", false),
	} {
		reply := c.must("d", command)
		list, err := reply.Lookup("writeErrors").Array().Values()
		if err != nil || len(list) != statements {
			t.Fatalf("%d errors, %v", len(list), err)
		}
		if len(reply) > toldBytes+2*len(long)+100*statements {
			t.Errorf("an answer of %d bytes", len(reply))
		}
		first, last := list[0].Document(), list[statements-1].Document()
		if textIn(first, "keyValue", "a") != long || !strings.Contains(textIn(first, "errmsg"), `"`+long[:150]+`..."`) || len(textIn(first, "errmsg")) > 300 {
			t.Errorf("the first error: %.1000s", first)
		}
		if fields := fieldsOf(t, last); fields != "index code errmsg" || codeIn(last) != 11000 || textIn(last, "errmsg") != "" || last.Lookup("index").Int32() != statements-1 {
			t.Errorf("the last error: %.1000s", last)
		}
	}
}

// TestAnswersThatAreTooLargeAreErrors: what would be no message any more, or no document that a client takes, is told as an error, and
// the connection goes on.
func TestAnswersThatAreTooLargeAreErrors(t *testing.T) {
	c := dial(t, newServer(t, nil))
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("a", 1)}))
	list := bson.A{}
	for i := range 7 {
		list = append(list, strings.Repeat(string(rune('a'+i)), 1_000_000))
	}
	explain := cmd("explain", cmd("find", "c", "filter", cmd("a", cmd("$in", list))), "verbosity", "executionStats")
	c.refused("d", explain, 10334)
	long := strings.Repeat("x", 1_000_000)
	for _, x := range []struct {
		command bson.D
		code    int32
	}{
		{cmd(long, 1), 59}, {cmd("find", "c", long, 1), 40415}, {cmd("aggregate", "c", "pipeline", bson.A{cmd("$"+long, 1)}, "cursor", bson.D{}), 40324},
	} {
		if reply := c.refused("d", x.command, x.code); len(reply) > 100_000 {
			t.Errorf("an error of %d bytes", len(reply))
		}
	}
	// The _id of what was inserted cannot be left out.
	id := strings.Repeat("i", 60_000)
	uniqueIn(c, "c", "n")
	upserts := bson.A{}
	for i := range 400 {
		upserts = append(upserts, cmd("q", cmd("n", i), "u", bson.A{cmd("$set", cmd("_id", cmd("id", "$$id", "n", "$n")))}, "upsert", true))
	}
	c.refused("d", cmd("update", "c", "updates", upserts, "let", cmd("id", id)), 10334)
	c.must("d", cmd("ping", 1))
}

// TestALargestDocumentIsAnswered: the limit of answers keeps no document from being read.
func TestALargestDocumentIsAnswered(t *testing.T) {
	c := dial(t, newServer(t, nil))
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("_id", 1)}))
	const around = 4 + 1 + 4 + 4 + 1 + 2 + 4 + 1 + 1 // bytes of a document with an _id and a text, beside the text
	text := strings.Repeat("x", 16<<20-around)
	c.must("d", cmd("update", "c", "updates", bson.A{cmd("q", cmd("_id", 1), "u", cmd("s", text[:len(text)-1]))}))
	for _, command := range []bson.D{cmd("find", "c"), cmd("find", "c", "singleBatch", true), cmd("aggregate", "c", "pipeline", bson.A{}, "cursor", bson.D{})} {
		if reply := c.must("d", command); len(textIn(reply, "cursor", "firstBatch", "0", "s")) != len(text)-1 {
			t.Errorf("%v: %d bytes", command, len(reply))
		}
	}
	reply := c.must("d", cmd("findAndModify", "c", "query", cmd("_id", 1), "remove", true))
	if len(textIn(reply, "value", "s")) != len(text)-1 {
		t.Errorf("findAndModify: %d bytes", len(reply))
	}
}
