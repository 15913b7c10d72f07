package race

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// serverActions are what clients do at once.
var serverActions = []action[func(*serverCall)]{
	{"write", 8, (*serverCall).writeOne},
	{"write many", 4, (*serverCall).writeMany},
	{"find", 5, (*serverCall).find},
	{"pipe", 4, (*serverCall).pipe},
	{"get more", 5, (*serverCall).getMore},
	{"kill a cursor", 2, (*serverCall).killCursor},
	{"tail", 2, (*serverCall).tail},
	{"in a transaction", 8, (*serverCall).inTransaction},
	{"end a transaction", 4, (*serverCall).endTransaction},
	{"end sessions", 2, (*serverCall).endSessions},
	{"kill what runs", 2, (*serverCall).killOp},
	{"administer", 4, (*serverCall).admin},
	{"change the catalogue", 3, (*serverCall).catalogue},
	{"users", 2, (*serverCall).users},
	{"hello", 1, (*serverCall).hello},
	{"go away", 2, (*serverCall).goAway},
}

func (c *serverCall) name() string { return string('a' + rune(c.rng.IntN(3))) }

// one draws one of some commands.
func one[T any](c *serverCall, list ...T) T { return list[c.rng.IntN(len(list))] }

// session draws a session; all clients have the same few.
func (c *serverCall) session() bson.D {
	id := make([]byte, 16)
	id[0] = byte(c.rng.IntN(6))
	return bson.D{{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: id}}}}}
}

// numbered draws a session with the number of a write of its, or nothing.
func (c *serverCall) numbered() bson.D {
	if c.rng.IntN(2) == 0 {
		return nil
	}
	return append(c.session(), bson.E{Key: "txnNumber", Value: time.Now().UnixNano() / int64(50*time.Millisecond)})
}

func (c *serverCall) id() bson.D { return bson.D{{Key: "_id", Value: c.rng.IntN(300)}} }

func (c *serverCall) filter() bson.D {
	return bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: c.rng.IntN(50)}}}}
}

func increment() bson.D { return bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}} }

func (c *serverCall) doc() bson.D {
	return append(c.id(), bson.E{Key: "n", Value: c.rng.IntN(50)}, bson.E{Key: "pad", Value: make([]byte, c.rng.IntN(200))})
}

// writeOf draws a command that writes one document.
func (c *serverCall) writeOf() bson.D {
	return one(c,
		bson.D{{Key: "insert", Value: c.name()}, {Key: "documents", Value: bson.A{c.doc()}}},
		bson.D{{Key: "update", Value: c.name()}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: c.id()}, {Key: "u", Value: increment()}, {Key: "upsert", Value: true}}}}},
		bson.D{{Key: "delete", Value: c.name()}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: c.id()}, {Key: "limit", Value: 1}}}}},
		bson.D{{Key: "findAndModify", Value: c.name()}, {Key: "query", Value: c.id()}, {Key: "update", Value: increment()}},
	)
}

func (c *serverCall) writeOne() { c.send("test", append(c.writeOf(), c.numbered()...)) }

func (c *serverCall) writeMany() {
	docs := bson.A{}
	for range 1 + c.rng.IntN(100) {
		docs = append(docs, c.doc()[1:])
	}
	c.send("test", append(bson.D{{Key: "insert", Value: c.name()}, {Key: "documents", Value: docs}, {Key: "ordered", Value: c.rng.IntN(2) == 0}}, c.numbered()...))
	c.send("test", bson.D{{Key: "update", Value: c.name()}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: c.filter()}, {Key: "u", Value: increment()}, {Key: "multi", Value: true}}}}})
}

// pipe reads by a pipeline, of the present or at a moment, and leaves open what there is of a cursor.
func (c *serverCall) pipe() {
	stages := one(c,
		`[{"$lookup": {"from": "b", "localField": "n", "foreignField": "n", "as": "m"}}]`,
		`[{"$lookup": {"from": "c", "let": {"n": "$n"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$n", "$$n"]}}}, {"$limit": 3}], "as": "m"}}, {"$unwind": "$m"}]`,
		`[{"$graphLookup": {"from": "a", "startWith": "$n", "connectFromField": "n", "connectToField": "_id", "as": "m", "maxDepth": 2}}]`,
		`[{"$unionWith": {"coll": "b", "pipeline": [{"$sort": {"n": -1}}]}}, {"$sort": {"pad": 1}}]`,
		`[{"$facet": {"x": [{"$sortByCount": "$n"}], "y": [{"$sample": {"size": 5}}]}}]`,
		`[{"$group": {"_id": "$n", "all": {"$push": "$pad"}}}, {"$unionWith": "c"}]`,
		`[{"$setWindowFields": {"partitionBy": "$n", "sortBy": {"_id": 1}, "output": {"s": {"$sum": "$n", "window": {"documents": [-2, 2]}}}}}]`,
		`[{"$sort": {"n": 1, "pad": -1}}, {"$limit": 100}, {"$out": "`+c.name()+`"}]`,
		`[{"$sample": {"size": 20}}]`, `[{"$indexStats": {}}]`, `[{"$collStats": {"count": {}}}]`,
	)
	var pipeline bson.A
	if err := bson.UnmarshalExtJSON([]byte(stages), false, &pipeline); err != nil {
		c.t.Errorf("%s: %v", stages, err)
	}
	command := bson.D{{Key: "aggregate", Value: c.name()}, {Key: "pipeline", Value: pipeline}, {Key: "cursor", Value: bson.D{{Key: "batchSize", Value: c.rng.IntN(3)}}}}
	if c.rng.IntN(3) == 0 {
		command = append(command, bson.E{Key: "readConcern", Value: bson.D{{Key: "level", Value: "snapshot"}}})
	}
	switch c.rng.IntN(4) {
	case 0:
		command = append(command, c.session()...)
	case 1:
		command = c.ofTransaction(command[:3:3], c.rng.IntN(2) == 0)
	case 2:
		command = bson.D{{Key: "explain", Value: command[:3:3]}, {Key: "verbosity", Value: "executionStats"}}
	}
	c.send("test", command)
}

func (c *serverCall) find() {
	command := one(c,
		bson.D{{Key: "find", Value: c.name()}, {Key: "filter", Value: c.filter()}, {Key: "batchSize", Value: 2}},
		bson.D{{Key: "find", Value: c.name()}, {Key: "sort", Value: bson.D{{Key: "n", Value: 1}}}, {Key: "batchSize", Value: 2}, {Key: "noCursorTimeout", Value: true}},
		bson.D{{Key: "aggregate", Value: c.name()}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$match", Value: c.filter()}}}}, {Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 1}}}},
		bson.D{{Key: "aggregate", Value: 1}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}}, {Key: "cursor", Value: bson.D{}}},
		bson.D{{Key: "find", Value: c.name()}, {Key: "batchSize", Value: 1}, {Key: "readConcern", Value: bson.D{{Key: "level", Value: "snapshot"}}}},
		bson.D{{Key: "listCollections", Value: 1}, {Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 1}}}},
		bson.D{{Key: "aggregate", Value: c.name()}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$limit", Value: 30}}, bson.D{{Key: "$merge", Value: c.name()}}}}, {Key: "cursor", Value: bson.D{}}},
	)
	if c.rng.IntN(2) == 0 {
		command = append(command, c.session()...)
	}
	c.send("test", command)
}

func (c *serverCall) getMore() {
	x, ok := c.cursors.any(c.rng)
	if !ok {
		return
	}
	command := append(bson.D{{Key: "getMore", Value: x.id}, {Key: "collection", Value: x.collection}, {Key: "batchSize", Value: c.rng.IntN(20)}}, x.session...)
	if len(x.session) == 0 && c.rng.IntN(2) == 0 {
		command = append(command, bson.E{Key: "maxTimeMS", Value: 1 + c.rng.IntN(5)})
	}
	if c.rng.IntN(10) > 0 {
		command[2].Value = 1 + c.rng.IntN(20)
	}
	c.send("test", command)
}

func (c *serverCall) killCursor() {
	if x, ok := c.cursors.any(c.rng); ok {
		c.send("test", append(bson.D{{Key: "killCursors", Value: x.collection}, {Key: "cursors", Value: bson.A{x.id}}}, x.session...))
	}
}

func (c *serverCall) tail() {
	c.send("test", bson.D{{Key: "create", Value: "capped"}, {Key: "capped", Value: true}, {Key: "size", Value: 10_000}})
	c.send("test", bson.D{{Key: "insert", Value: "capped"}, {Key: "documents", Value: bson.A{c.doc()[1:]}}})
	c.send("test", bson.D{{Key: "find", Value: "capped"}, {Key: "tailable", Value: true}, {Key: "awaitData", Value: true}, {Key: "batchSize", Value: 1}})
}

// inTransaction sends a command of a transaction that anybody may have begun, or ended.
func (c *serverCall) inTransaction() {
	command := one(c, c.writeOf(), bson.D{{Key: "find", Value: c.name()}, {Key: "filter", Value: c.filter()}, {Key: "batchSize", Value: 1}})
	if c.rng.IntN(20) == 0 {
		command = bson.D{{Key: "create", Value: c.name()}}
	}
	c.send("test", c.ofTransaction(command, c.rng.IntN(2) == 0))
}

func (c *serverCall) ofTransaction(command bson.D, starts bool) bson.D {
	command = append(command, c.session()...)
	command = append(command, bson.E{Key: "txnNumber", Value: time.Now().UnixNano() / int64(20*time.Millisecond)}, bson.E{Key: "autocommit", Value: false})
	if starts {
		command = append(command, bson.E{Key: "startTransaction", Value: true})
	}
	return command
}

func (c *serverCall) endTransaction() {
	c.send("admin", c.ofTransaction(bson.D{{Key: one(c, "commitTransaction", "commitTransaction", "abortTransaction"), Value: 1}}, false))
}

func (c *serverCall) endSessions() {
	id := c.session()[0].Value
	c.send("admin", one(c,
		bson.D{{Key: "endSessions", Value: bson.A{id}}}, bson.D{{Key: "killSessions", Value: bson.A{id}}},
		bson.D{{Key: "refreshSessions", Value: bson.A{id}}}, bson.D{{Key: "killAllSessions", Value: bson.A{}}},
	))
}

// killOp ends what others run.
func (c *serverCall) killOp() {
	reply := c.send("admin", bson.D{{Key: "currentOp", Value: 1}})
	if reply == nil {
		return
	}
	list, _ := reply.Lookup("inprog").ArrayOK()
	values, _ := list.Values()
	for _, v := range values {
		if id, ok := v.Document().Lookup("opid").AsInt64OK(); ok && c.rng.IntN(3) == 0 {
			c.send("admin", bson.D{{Key: "killOp", Value: 1}, {Key: "op", Value: id}})
		}
	}
}

func (c *serverCall) admin() {
	db, command := "admin", one(c,
		bson.D{{Key: "serverStatus", Value: 1}}, bson.D{{Key: "fsync", Value: 1}}, bson.D{{Key: "top", Value: 1}}, bson.D{{Key: "listDatabases", Value: 1}},
		bson.D{{Key: "setParameter", Value: 1}, {Key: "cursorTimeoutMillis", Value: 50 + c.rng.IntN(1000)}},
		bson.D{{Key: "setParameter", Value: 1}, {Key: "transactionLifetimeLimitSeconds", Value: 1 + c.rng.IntN(5)}},
		bson.D{{Key: "getParameter", Value: "*"}}, bson.D{{Key: "getDefaultRWConcern", Value: 1}},
		bson.D{{Key: "setDefaultRWConcern", Value: 1}, {Key: "defaultReadConcern", Value: bson.D{{Key: "level", Value: "local"}}}},
		bson.D{{Key: "aggregate", Value: 1}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$currentOp", Value: bson.D{{Key: "idleSessions", Value: true}}}}}}, {Key: "cursor", Value: bson.D{}}},
	)
	if c.rng.IntN(2) == 0 {
		db, command = "test", one(c,
			bson.D{{Key: "dbStats", Value: 1}}, bson.D{{Key: "collStats", Value: c.name()}}, bson.D{{Key: "validate", Value: c.name()}}, bson.D{{Key: "compact", Value: c.name()}},
			bson.D{{Key: "profile", Value: c.rng.IntN(3)}, {Key: "slowms", Value: 0}}, bson.D{{Key: "dbHash", Value: 1}}, bson.D{{Key: "ping", Value: 1}},
			bson.D{{Key: "explain", Value: bson.D{{Key: "find", Value: c.name()}, {Key: "filter", Value: c.filter()}}}},
		)
	}
	c.send(db, command)
}

func (c *serverCall) catalogue() {
	index := bson.D{{Key: "key", Value: bson.D{{Key: "n", Value: 1}}}, {Key: "name", Value: "n_1"}}
	db, command := "test", one(c,
		bson.D{{Key: "createIndexes", Value: c.name()}, {Key: "indexes", Value: bson.A{index}}}, bson.D{{Key: "createIndexes", Value: c.name()}, {Key: "indexes", Value: bson.A{index}}},
		bson.D{{Key: "dropIndexes", Value: c.name()}, {Key: "index", Value: "*"}}, bson.D{{Key: "drop", Value: c.name()}},
		bson.D{{Key: "collMod", Value: c.name()}, {Key: "validator", Value: bson.D{}}}, bson.D{{Key: "convertToCapped", Value: "d"}, {Key: "size", Value: 10_000}},
		bson.D{{Key: "cloneCollectionAsCapped", Value: c.name()}, {Key: "toCollection", Value: "d"}, {Key: "size", Value: 10_000}}, bson.D{{Key: "drop", Value: "d"}},
	)
	if c.rng.IntN(4) == 0 {
		db, command = "admin", bson.D{{Key: "renameCollection", Value: "test." + c.name()}, {Key: "to", Value: "test." + c.name()}, {Key: "dropTarget", Value: true}}
	}
	c.send(db, command)
}

func (c *serverCall) users() {
	name := one(c, "eve", "adam")
	c.send("test", one(c,
		bson.D{{Key: "createUser", Value: name}, {Key: "pwd", Value: "x"}, {Key: "roles", Value: bson.A{"read"}}, {Key: "mechanisms", Value: bson.A{"SCRAM-SHA-1"}}},
		bson.D{{Key: "dropUser", Value: name}}, bson.D{{Key: "usersInfo", Value: 1}}, bson.D{{Key: "grantRolesToUser", Value: name}, {Key: "roles", Value: bson.A{"readWrite"}}},
		bson.D{{Key: "createRole", Value: "r"}, {Key: "privileges", Value: bson.A{}}, {Key: "roles", Value: bson.A{}}}, bson.D{{Key: "dropRole", Value: "r"}},
	))
}

func (c *serverCall) hello() { c.send("admin", bson.D{{Key: "hello", Value: 1}}) }

// goAway ends the connection, now and then with a command on its way whose answer nobody takes, and comes back.
func (c *serverCall) goAway() {
	if c.rng.IntN(2) == 0 {
		c.write("test", bson.D{{Key: "find", Value: c.name()}})
	}
	c.hangUp()
	c.dial()
}
