package mongo

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// ejson reads a document as a test writes it.
func ejson(t testing.TB, text string) (d bson.D) {
	t.Helper()
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

const anID = `{"$binary": {"base64": "AAECAwQFRweIAAAAAAAAAA==", "subType": "04"}}`

// stateOf lists the collections of the database d, with their documents and views.
func stateOf(t testing.TB, c *testClient) string {
	t.Helper()
	var parts []string
	list, err := c.must("d", cmd("listCollections", 1)).Lookup("cursor", "firstBatch").Array().Values()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		name := v.Document().Lookup("name").StringValue()
		docs, err := c.must("d", cmd("find", name, "sort", bson.D{{Key: "_id", Value: 1}})).Lookup("cursor", "firstBatch").Array().Values()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "tmp") {
			name = "aside"
		}
		for _, doc := range docs {
			text, err := bson.MarshalExtJSON(doc.Document(), false, false)
			if err != nil {
				t.Fatal(err)
			}
			name += " " + string(text)
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, "; ")
}

// The answers are those of a mongod 6.0.5 for the same entries.
func TestApplyOps(t *testing.T) {
	c := dial(t, newServer(t, nil))
	for _, step := range []struct{ ops, reply, state string }{
		{`[]`, `0 [] 0`, ``},
		{`[{"op": "i", "ns": "d.c", "o": {"_id": 1}}]`, `1 [false] 26`, ``},
		{`[{"op": "c", "ns": "d.$cmd", "o": {"create": "c", "idIndex": {"v": 2, "key": {"_id": 1}, "name": "_id_"}}}]`, `1 [true] 0`, `c`},
		{`[{"op": "c", "ns": "d.$cmd", "o": {"create": "c", "capped": true, "size": 1000}}]`, `1 [true] 0`, `c`},
		{`[{"op": "i", "ns": "d.c", "o": {"_id": 1, "a": 1}}, {"op": "n", "ns": "", "o": {}}, {"op": "i", "ns": "d.c", "o": {"_id": 2}}]`, `2 [true,true] 0`,
			`c {"_id":1,"a":1} {"_id":2}`},
		{`[{"op": "i", "ns": "d.c", "o": {"_id": 2, "b": 1}}]`, `1 [true] 0`, `c {"_id":1,"a":1} {"_id":2,"b":1}`},
		{`[{"op": "i", "ns": "d.c", "o": {"x": 2}}]`, `1 [false] 4`, `c {"_id":1,"a":1} {"_id":2,"b":1}`},
		{`[{"op": "u", "ns": "d.c", "o2": {"_id": 2}, "o": {"$v": 2, "diff": {"u": {"b": 2}, "i": {"l": [1, 2]}}}}]`, `1 [true] 0`, `c {"_id":1,"a":1} {"_id":2,"b":2,"l":[1,2]}`},
		{`[{"op": "u", "ns": "d.c", "o2": {"_id": 2}, "o": {"$v": 2, "diff": {"sl": {"a": true, "l": 1}}}}]`, `1 [true] 0`, `c {"_id":1,"a":1} {"_id":2,"b":2,"l":[1]}`},
		{`[{"op": "u", "ns": "d.c", "o2": {"_id": 2}, "o": {"$v": 1, "$unset": {"l": ""}}}, {"op": "u", "ns": "d.c", "o2": {"_id": 1}, "o": {"_id": 1, "z": 1}}]`,
			`2 [true,true] 0`, `c {"_id":1,"z":1} {"_id":2,"b":2}`},
		{`[{"op": "u", "ns": "d.c", "o2": {"_id": 1}, "o": {"$v": 3}}]`, `1 [false] 4772600`, `c {"_id":1,"z":1} {"_id":2,"b":2}`},
		{`[{"op": "u", "ns": "d.c", "o2": {"_id": 1}, "o": {"r": 3}}]`, `1 [false] 9`, `c {"_id":1,"z":1} {"_id":2,"b":2}`},
		{`[{"op": "u", "ns": "d.c", "o2": {"_id": 7}, "o": {"$v": 2, "diff": {"u": {"q": 1}}}}]`, `1 [true] 0`, `c {"_id":1,"z":1} {"_id":2,"b":2} {"_id":7,"q":1}`},
		{`[{"op": "u", "ns": "d.c", "b": false, "o2": {"_id": 8}, "o": {"$v": 2, "diff": {"u": {"q": 1}}}}]`, `1 [false] 218`, `c {"_id":1,"z":1} {"_id":2,"b":2} {"_id":7,"q":1}`},
		{`[{"op": "d", "ns": "d.c", "o": {"_id": 7}}, {"op": "d", "ns": "d.c", "o": {"_id": 70}}, {"op": "d", "ns": "d.none", "o": {"_id": 7}}]`, `3 [true,true,true] 0`,
			`c {"_id":1,"z":1} {"_id":2,"b":2}`},
		{`[{"op": "c", "ns": "admin.$cmd", "o": {"applyOps": [{"op": "d", "ns": "d.c", "o": {"_id": 2}}, {"op": "u", "ns": "d.c", "o2": {"_id": 1}, "o": {"_id": 1}}]}}]`,
			`1 [true] 0`, `c {"_id":1}`},
		{`[{"op": "c", "ns": "d.$cmd", "o": {"createIndexes": "c", "v": 2, "key": {"a": 1}, "name": "a_1"}}]`, `1 [false] 115`, `c {"_id":1}`},
		{`[{"op": "c", "ns": "d.$cmd", "o": {"dropIndexes": "c", "index": "a_1"}}, {"op": "c", "ns": "d.$cmd", "o": {"drop": "none"}}]`, `2 [true,true] 0`, `c {"_id":1}`},
		{`[{"op": "c", "ns": "d.$cmd", "o": {"drop": "c"}}, {"op": "c", "ns": "d.$cmd", "o": {"foo": "c"}}]`, `refused 2`, `c {"_id":1}`},
		{`[{"ns": "d.c"}]`, `refused 4`, `c {"_id":1}`}, {`[{"op": "i"}]`, `refused 20`, `c {"_id":1}`}, {`[5]`, `refused 14`, `c {"_id":1}`},
		{`[{"op": "x", "ns": "d.c", "o": {}}]`, `1 [false] 2`, `c {"_id":1}`}, {`[{"op": "i", "ns": "d", "o": {"_id": 1}}]`, `1 [false] 73`, `c {"_id":1}`},
		{`[{"op": "i", "ns": "local.oplog.rs", "o": {"_id": 1}}]`, `1 [false] 73`, `c {"_id":1}`},
		// Entries about documents are carried out together, or not at all; unless a collection is missing, or there are others.
		{`[{"op": "i", "ns": "d.c", "o": {"_id": 7}}, {"op": "i", "ns": "d.c", "o": {"a": 1}}]`, `2 [false,false] 4`, `c {"_id":1}`},
		{`[{"op": "d", "ns": "d.c", "o": {"_id": 1}}, {"op": "n", "ns": "", "o": {}}, {"op": "u", "ns": "d.c", "b": false, "o2": {"_id": 8}, "o": {"$v": 2, "diff": {"u": {"q": 1}}}}]`,
			`2 [false,false] 218`, `c {"_id":1}`},
		{`[{"op": "i", "ns": "d.c", "o": {"_id": 7}}, {"op": "i", "ns": "d.none", "o": {"_id": 1}}, {"op": "d", "ns": "d.c", "o": {"_id": 1}}]`, `2 [true,false] 26`,
			`c {"_id":1} {"_id":7}`},
		{`[{"op": "d", "ns": "d.c", "o": {"_id": 7}}, {"op": "x", "ns": "d.c", "o": {"_id": 7}}]`, `2 [true,false] 2`, `c {"_id":1}`},
		{`[{"op": "i", "ns": "d.c", "o": {"_id": 7}}, {"op": "i", "ns": "d.c", "o": {"_id": 7, "b": 1}}, {"op": "d", "ns": "d.c", "o": {"_id": 7}}]`, `3 [true,true,true] 0`,
			`c {"_id":1}`},
		// By UUID.
		{`[{"op": "i", "ns": "d.c", "ui": ` + anID + `, "o": {"_id": 1}}]`, `1 [false] 26`, `c {"_id":1}`},
		{`[{"op": "c", "ns": "d.$cmd", "ui": ` + anID + `, "o": {"drop": "c"}}]`, `1 [true] 0`, `c {"_id":1}`},
		{`[{"op": "c", "ns": "d.$cmd", "ui": ` + anID + `, "o": {"create": "c"}}]`, `1 [true] 0`, `c; aside {"_id":1}`},
		{`[{"op": "i", "ns": "d.other", "ui": ` + anID + `, "o": {"_id": 3}}, {"op": "c", "ns": "d.$cmd", "ui": ` + anID + `, "o": {"create": "e"}}]`, `2 [true,true] 0`,
			`e {"_id":3}; aside {"_id":1}`},
		// Names.
		{`[{"op": "c", "ns": "d.$cmd", "o": {"renameCollection": "d.e", "to": "d.f", "stayTemp": false}}, {"op": "c", "ns": "d.$cmd", "o": {"renameCollection": "d.e", "to": "d.f"}}]`,
			`2 [true,true] 0`, `f {"_id":3}; aside {"_id":1}`},
		{`[{"op": "c", "ns": "d.$cmd", "o": {"create": "g"}}, {"op": "c", "ns": "d.$cmd", "o": {"renameCollection": "d.f", "to": "d.g", "dropTarget": ` + anID + `}}]`,
			`2 [true,true] 0`, `g {"_id":3}; aside {"_id":1}`},
		// Views.
		{`[{"op": "c", "ns": "d.$cmd", "o": {"create": "system.views"}}, {"op": "i", "ns": "d.system.views", "o": {"_id": "d.v", "viewOn": "g", "pipeline": []}}]`,
			`2 [true,true] 0`, `g {"_id":3}; aside {"_id":1}; v {"_id":3}`},
		{`[{"op": "u", "ns": "d.system.views", "o2": {"_id": "d.v"}, "o": {"_id": "d.v", "viewOn": "g", "pipeline": [{"$match": {"_id": 1}}]}}]`, `1 [true] 0`,
			`g {"_id":3}; aside {"_id":1}; v`},
		{`[{"op": "d", "ns": "d.system.views", "o": {"_id": "d.v"}}]`, `1 [true] 0`, `g {"_id":3}; aside {"_id":1}`},
		{`[{"op": "c", "ns": "d.$cmd", "o": {"dropDatabase": 1}}]`, `1 [true] 0`, ``},
	} {
		reply := c.run("admin", ejson(t, `{"applyOps": `+step.ops+`}`))
		if got := applied(reply); got != step.reply {
			t.Errorf("%s: %s, want %s: %s", step.ops, got, step.reply, reply)
		}
		if got := stateOf(t, c); got != step.state {
			t.Fatalf("%s makes\n%s, want\n%s\n%s", step.ops, got, step.state, reply)
		}
	}
}

// applied says what an answer of applyOps is.
func applied(reply bson.Raw) string {
	code := reply.Lookup("code")
	if reply.Lookup("applied").Type == 0 {
		return "refused " + itoa(int(code.Int32()))
	}
	var results []string
	values, _ := reply.Lookup("results").Array().Values()
	for _, v := range values {
		results = append(results, v.String())
	}
	n, _ := code.Int32OK()
	return itoa(int(reply.Lookup("applied").Int32())) + " [" + strings.Join(results, ",") + "] " + itoa(int(n))
}

func TestApplyOpsAsksForThePrivilegesOfItsEntries(t *testing.T) {
	s, root := guarded(t)
	root.must("d", cmd("create", "c"))
	root.must("admin", cmd("createUser", "some", "pwd", "x", "roles", bson.A{"dbAdminAnyDatabase"}))
	root.must("admin", cmd("createUser", "more", "pwd", "x", "roles", bson.A{"dbAdminAnyDatabase", "readWriteAnyDatabase", "restore"}))
	insert := `{"applyOps": [{"op": "i", "ns": "d.c", "o": {"_id": 1}}]}`
	nested := `{"applyOps": [{"op": "c", "ns": "admin.$cmd", "o": {"applyOps": [{"op": "i", "ns": "d.c", "o": {"_id": 1}}]}}]}`
	drop := `{"applyOps": [{"op": "c", "ns": "d.$cmd", "o": {"drop": "none"}}]}`
	create := `{"applyOps": [{"op": "c", "ns": "d.$cmd", "ui": ` + anID + `, "o": {"create": "made"}}]}`
	for _, user := range []string{"some", "more"} {
		c := dial(t, s)
		c.login("admin", user, "x", scramSHA256)
		c.must("admin", ejson(t, drop))
		for _, command := range []string{insert, nested, create} {
			if reply := c.run("admin", ejson(t, command)); (codeIn(reply) == 13) != (user == "some") {
				t.Errorf("%s for %s: %s", command, user, reply)
			}
		}
	}
}

// applyOps looks at what preCondition asks for before it does anything.
func TestApplyOpsWithACondition(t *testing.T) {
	c := dial(t, newServer(t, nil))
	c.must("d", cmd("insert", "c", "documents", bson.A{bson.D{{Key: "_id", Value: 1}}}))
	ops := bson.A{ejson(t, `{"op": "i", "ns": "d.c", "o": {"_id": 2}}`)}
	condition := func(id int) bson.A {
		return bson.A{bson.D{{Key: "ns", Value: "d.c"}, {Key: "q", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "res", Value: bson.D{{Key: "_id", Value: id}}}}}
	}
	c.refused("admin", cmd("applyOps", ops, "preCondition", condition(2)), 2)
	if got := stateOf(t, c); got != `c {"_id":1}` {
		t.Errorf("after a condition that does not hold: %s", got)
	}
	c.must("admin", cmd("applyOps", ops, "preCondition", condition(1)))
	if got := stateOf(t, c); got != `c {"_id":1} {"_id":2}` {
		t.Errorf("after a condition that holds: %s", got)
	}
}
