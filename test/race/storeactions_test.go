package race

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
)

// storeCall is what an action on a document store works with.
type storeCall struct {
	ctx     context.Context
	s       *document.Store
	rng     *rand.Rand
	session string
	number  int64 // of the session's newest numbered write
}

// storeActions are all that goroutines do at once with a document store.
var storeActions = []action[func(*storeCall) error]{
	{"insert", 6, func(c *storeCall) error { return second(c.some().Insert(c.ctx, c.doc())) }},
	{"insert many", 3, (*storeCall).insertMany},
	{"update", 4, (*storeCall).update},
	{"statements", 2, (*storeCall).statements},
	{"find and modify", 1, (*storeCall).findAndModify},
	{"delete", 2, (*storeCall).delete},
	{"find", 4, (*storeCall).find},
	{"aggregate", 2, (*storeCall).aggregate},
	{"count, distinct or explain", 2, (*storeCall).look},
	{"transaction", 5, (*storeCall).transaction},
	{"transaction that creates", 1, (*storeCall).creatingTransaction},
	{"index", 2, (*storeCall).index},
	{"modify", 1, (*storeCall).modify},
	{"rename", 2, func(c *storeCall) error { return c.some().Rename(c.ctx, "test", c.name(), c.rng.IntN(3) > 0) }},
	{"drop", 1, func(c *storeCall) error { return c.some().Drop(c.ctx) }},
	{"drop a database", 1, (*storeCall).dropDatabase},
	{"capped", 2, (*storeCall).capped},
	{"make capped", 1, (*storeCall).makeCapped},
	{"time series", 2, (*storeCall).series},
	{"view", 1, (*storeCall).view},
	{"watch", 1, (*storeCall).watch},
	{"oplog", 1, (*storeCall).oplog},
	{"expire", 1, func(c *storeCall) error { return second(c.s.DeleteExpired(c.ctx)) }},
	{"describe", 2, (*storeCall).describe},
	{"validate", 1, func(c *storeCall) error { return validated(c.ctx, c.some()) }},
	{"sessions", 1, (*storeCall).sessions},
	{"settle", 1, (*storeCall).settle},
}

// usual are the errors that are to be expected where everything happens at once.
var usual = []error{
	document.DuplicateKey, document.NamespaceNotFound, document.NamespaceExists, document.IndexNotFound, document.WriteConflict,
	context.DeadlineExceeded, pando.ErrNotFound, pando.ErrConflict,
	document.Code(20),    // IllegalOperation: a rename to itself, or what cannot be done with a capped collection
	document.Code(67),    // CannotCreateIndex: of what expires, on a capped collection
	document.Code(72),    // InvalidOptions: to have a capped collection expire, or an index unique that is not prepared for that
	document.Code(85),    // IndexOptionsConflict: of the same name, with other options
	document.Code(125),   // CommandFailed: the target of $out was changed
	document.Code(136),   // CappedPositionLost: a tail was too slow
	document.Code(166),   // CommandNotSupportedOnView
	document.Code(175),   // QueryPlanKilled: the collection was dropped
	document.Code(217),   // IncompleteTransactionHistory: the write asked for was a transaction
	document.Code(225),   // TransactionTooOld
	document.Code(263),   // OperationNotSupportedInTransaction: a write to a capped collection
	document.Code(276),   // IndexBuildAborted: its collection was dropped
	document.Code(286),   // ChangeStreamHistoryLost: a stream was too slow
	document.Code(359),   // CannotConvertIndexToUnique
	document.Code(12587), // BackgroundOperationInProgressForNamespace: an index is being built that is to be changed
	document.Code(17152), // $out to a capped collection
}

// anything does one of the actions. Of the errors that it meets it returns those that are not usual.
func (c *storeCall) anything() error {
	whole := c.ctx
	if c.rng.IntN(4) == 0 {
		var cancel context.CancelFunc
		c.ctx, cancel = context.WithTimeout(whole, time.Duration(c.rng.IntN(3000))*time.Microsecond)
		defer cancel()
	}
	err := carryOut(draw(c.rng, storeActions), c)
	c.ctx = whole
	if slices.ContainsFunc(usual, func(u error) bool { return errors.Is(err, u) }) {
		return nil
	}
	return err
}

func (c *storeCall) db() *document.Database { return c.s.Database("test") }

func (c *storeCall) name() string { return string('a' + rune(c.rng.IntN(4))) }

func (c *storeCall) some() *document.Collection { return c.db().Lookup(c.name()) }

// doc draws a document that may expire.
func (c *storeCall) doc() bson.D {
	at := time.Now().Add(time.Duration(c.rng.IntN(4000)-1000) * time.Millisecond)
	return bson.D{
		{Key: "_id", Value: c.rng.IntN(400)}, {Key: "n", Value: c.rng.IntN(50)}, {Key: "u", Value: c.rng.IntN(1000)},
		{Key: "arr", Value: bson.A{c.rng.IntN(9), "x"}[:1+c.rng.IntN(2)]}, {Key: "at", Value: at}, {Key: "pad", Value: make([]byte, c.rng.IntN(300))},
	}
}

// filter draws a filter by _id, or by what an index may have.
func (c *storeCall) filter() bson.D {
	key := []string{"_id", "n", "u", "arr"}[c.rng.IntN(4)]
	return bson.D{{Key: key, Value: bson.D{{Key: "$gte", Value: c.rng.IntN(400)}}}}
}

// numbered returns a context for a write of the session that is carried out once.
func (c *storeCall) numbered(statements int) context.Context {
	if c.rng.IntN(2) == 0 {
		return c.ctx
	}
	c.number++
	ids := make([]int32, statements)
	for i := range ids {
		ids[i] = int32(i)
	}
	return document.WithStatements(c.ctx, c.session, c.number, ids...)
}

func (c *storeCall) insertMany() error {
	var docs []bson.D
	for range 1 + c.rng.IntN(150) {
		docs = append(docs, append(c.doc()[1:], bson.E{Key: "by", Value: c.session}))
	}
	o := &document.InsertOptions{Ordered: c.rng.IntN(2) == 0, Unordered: c.rng.IntN(2) == 0}
	return second(c.some().InsertMany(c.numbered(len(docs)), docs, o))
}

func (c *storeCall) update() error {
	o := &document.UpdateOptions{Many: c.rng.IntN(3) == 0, Upsert: c.rng.IntN(3) == 0}
	if c.rng.IntN(4) == 0 {
		return second(c.some().Replace(c.numbered(1), bson.D{{Key: "_id", Value: c.rng.IntN(400)}}, c.doc()[1:], &document.UpdateOptions{Upsert: true}))
	}
	return second(c.some().Update(c.ctx, c.filter(), bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}, {Key: "$set", Value: bson.D{{Key: "arr", Value: bson.A{1, 2}}}}}, o))
}

func (c *storeCall) statements() (err error) {
	var list []document.Statement
	for range 1 + c.rng.IntN(8) {
		s := document.Statement{Filter: bson.D{{Key: "_id", Value: c.rng.IntN(400)}}}
		if c.rng.IntN(4) > 0 {
			s.Update = bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: c.rng.IntN(50)}}}}
			s.Options.Upsert = c.rng.IntN(2) == 0
		}
		list = append(list, s)
	}
	c.some().ApplyMany(c.numbered(len(list)), list, func(_ int, _ *document.UpdateResult, failed error) bool {
		if failed != nil {
			err = failed
		}
		return failed == nil
	})
	return err
}

func (c *storeCall) findAndModify() error {
	_, _, err := c.some().FindAndModify(c.numbered(1), c.filter(), bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, nil)
	return err
}

func (c *storeCall) delete() error {
	return second(c.some().Delete(c.numbered(1), c.filter(), &document.DeleteOptions{Many: c.rng.IntN(5) == 0}))
}

// find walks, and takes its time now and then: others drop what it reads from.
func (c *storeCall) find() error {
	o := &document.FindOptions{Limit: int64(c.rng.IntN(100))}
	if c.rng.IntN(2) == 0 {
		o.Sort = bson.D{{Key: "n", Value: 1}}
	}
	n := 0
	for _, err := range c.some().Find(c.ctx, c.filter(), o) {
		if err != nil {
			return err
		}
		if n++; n%20 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

func (c *storeCall) aggregate() error {
	pipelines := []string{
		`[{"$group": {"_id": "$n", "k": {"$sum": 1}}}, {"$sort": {"_id": 1}}]`,
		`[{"$match": {"_id": {"$lt": 20}}}, {"$lookup": {"from": "b", "localField": "n", "foreignField": "n", "as": "m"}}]`,
		`[{"$limit": 50}, {"$out": "` + c.name() + `"}]`,
		`[{"$limit": 50}, {"$merge": {"into": "` + c.name() + `"}}]`,
		`[{"$unionWith": "c"}, {"$facet": {"x": [{"$count": "n"}], "y": [{"$sample": {"size": 3}}]}}]`,
	}
	for _, err := range c.some().Aggregate(c.ctx, document.JSON(pipelines[c.rng.IntN(len(pipelines))]), nil) {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *storeCall) look() error {
	switch x := c.some(); c.rng.IntN(4) {
	case 0:
		return second(x.Count(c.ctx, c.filter(), nil))
	case 1:
		return second(x.Distinct(c.ctx, "n", c.filter(), nil))
	case 2:
		return second(x.Explain(c.ctx, c.filter(), &document.FindOptions{Verbosity: "allPlansExecution"}))
	default:
		return second(x.Get(c.ctx, c.rng.IntN(400)))
	}
}

// transaction writes to two collections in any order.
func (c *storeCall) transaction() error {
	begin := c.s.Begin
	if c.rng.IntN(2) == 0 {
		begin = c.s.BeginSnapshot
	}
	tx, err := begin(c.numbered(0))
	if err != nil {
		return err
	}
	defer tx.Abort()
	for range 1 + c.rng.IntN(4) {
		x := tx.In(c.some())
		switch c.rng.IntN(4) {
		case 0:
			_, err = x.Insert(c.ctx, c.doc())
		case 1:
			_, err = x.Update(c.ctx, c.filter(), bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, nil)
		case 2:
			_, err = x.Delete(c.ctx, c.filter(), nil)
		default:
			_, err = x.Count(c.ctx, c.filter(), nil)
		}
		if err != nil {
			return err
		}
	}
	return tx.Commit(c.ctx)
}

func (c *storeCall) creatingTransaction() error {
	return c.s.Transaction(c.ctx, func(tx *document.Tx) error {
		name := c.name()
		if err := tx.Create(c.ctx, c.db(), name, bson.D{}); err != nil {
			return err
		}
		return second(tx.In(c.db().Lookup(name)).Insert(c.ctx, c.doc()))
	})
}

func (c *storeCall) index() error {
	expires := int32(0)
	indexes := []document.Index{
		{Keys: bson.D{{Key: "n", Value: 1}}}, {Keys: bson.D{{Key: "u", Value: 1}}, Unique: true}, {Keys: bson.D{{Key: "arr", Value: 1}, {Key: "n", Value: -1}}},
		{Keys: bson.D{{Key: "at", Value: 1}}, ExpireAfterSeconds: &expires}, {Keys: bson.D{{Key: "$**", Value: 1}}}, {Keys: bson.D{{Key: "n", Value: "hashed"}}},
	}
	if x := c.some(); c.rng.IntN(3) > 0 {
		return second(x.CreateIndex(c.ctx, indexes[c.rng.IntN(len(indexes))]))
	} else if c.rng.IntN(2) == 0 {
		return x.DropIndex(c.ctx, "*")
	} else {
		return x.DropIndex(c.ctx, "n_1")
	}
}

func (c *storeCall) modify() error {
	changes := []string{
		`{"validator": {"n": {"$gte": -5}}}`, `{"validator": {}}`, `{"index": {"name": "n_1", "hidden": true}}`, `{"index": {"name": "n_1", "hidden": false}}`,
		`{"index": {"name": "n_1", "prepareUnique": true}}`, `{"index": {"name": "n_1", "prepareUnique": false}}`, `{"index": {"name": "n_1", "unique": true}}`,
		`{"changeStreamPreAndPostImages": {"enabled": true}}`, `{"index": {"name": "at_1", "expireAfterSeconds": 1}}`,
	}
	return c.some().Modify(c.ctx, document.JSON(changes[c.rng.IntN(len(changes))]))
}

func (c *storeCall) dropDatabase() error {
	db := c.s.Database("other")
	for range 3 {
		if _, err := db.Lookup(c.name()).Insert(c.ctx, bson.D{{Key: "x", Value: 1}}); err != nil {
			return err
		}
	}
	return db.Drop(c.ctx)
}

func (c *storeCall) makeCapped() error {
	if c.rng.IntN(2) == 0 {
		return c.some().CopyCapped(c.ctx, c.name(), 20_000)
	}
	return c.some().MakeCapped(c.ctx, 50_000)
}

// soon is a context that ends before long: for what waits for others.
func (c *storeCall) soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, time.Duration(c.rng.IntN(5))*time.Millisecond)
}

func (c *storeCall) capped() error {
	x, err := c.db().Collection(c.ctx, "capped", &document.CollectionOptions{Capped: true, SizeBytes: 20_000, MaxDocuments: 50})
	if err != nil {
		return err
	}
	switch c.rng.IntN(4) {
	case 0:
		return c.follow(x.Tail(c.ctx, nil, nil))
	case 1:
		return second(x.InsertMany(c.ctx, []bson.D{{{Key: "n", Value: 1}}, {{Key: "n", Value: 2}}}, nil))
	default:
		return second(x.Insert(c.ctx, bson.D{{Key: "pad", Value: make([]byte, c.rng.IntN(900))}}))
	}
}

// follow takes from a cursor that does not end.
func (c *storeCall) follow(cursor *document.Cursor, err error) error {
	if err != nil {
		return err
	}
	defer cursor.Close()
	ctx, cancel := c.soon()
	defer cancel()
	for range 20 {
		if !cursor.Next(ctx) {
			break
		}
	}
	return cursor.Err()
}

func (c *storeCall) series() error {
	x := c.db().Lookup("series")
	switch c.rng.IntN(5) {
	case 0:
		return c.db().Create(c.ctx, "series", bson.D{{Key: "timeseries", Value: bson.D{{Key: "timeField", Value: "at"}, {Key: "metaField", Value: "by"}}}, {Key: "expireAfterSeconds", Value: 1}})
	case 1:
		return second(x.Count(c.ctx, bson.D{{Key: "by", Value: c.session}}, nil))
	case 2:
		return second(x.Delete(c.ctx, bson.D{{Key: "by", Value: c.session}}, &document.DeleteOptions{Many: true}))
	default:
		return second(x.Insert(c.ctx, bson.D{{Key: "at", Value: time.Now().Add(-time.Second)}, {Key: "by", Value: c.session}, {Key: "v", Value: c.rng.Float64()}}))
	}
}

func (c *storeCall) view() error {
	switch c.rng.IntN(3) {
	case 0:
		return c.db().Create(c.ctx, "view", bson.D{{Key: "viewOn", Value: c.name()}, {Key: "pipeline", Value: bson.A{bson.D{{Key: "$limit", Value: 9}}}}})
	case 1:
		return c.db().Lookup("view").Drop(c.ctx)
	default:
		return second(c.db().Lookup("view").Count(c.ctx, c.filter(), nil))
	}
}

func (c *storeCall) watch() error {
	switch c.rng.IntN(3) {
	case 0:
		return c.follow(c.s.OpenWatch(c.ctx, nil, nil))
	case 1:
		return c.follow(c.db().OpenWatch(c.ctx, nil, nil))
	default:
		return c.follow(c.some().OpenWatch(c.ctx, nil, &document.WatchOptions{FullDocument: "updateLookup"}))
	}
}

func (c *storeCall) oplog() error {
	return c.follow(c.s.Database("local").Lookup("oplog.rs").Tail(c.ctx, nil, nil))
}

func (c *storeCall) describe() error {
	x := c.some()
	list, err := c.db().Collections(c.ctx)
	if err != nil {
		return err
	}
	if len(list) > 0 && c.rng.IntN(2) == 0 {
		x = c.db().Lookup(list[c.rng.IntN(len(list))].Name)
	}
	switch c.rng.IntN(5) {
	case 0:
		return second(x.Stats(c.ctx))
	case 1:
		return second(x.StorageStats(c.ctx, 1))
	case 2:
		return second(x.Indexes(c.ctx))
	case 3:
		return second(c.s.Databases(c.ctx))
	default:
		return second(x.Sizes(c.ctx))
	}
}

func (c *storeCall) sessions() error {
	switch c.rng.IntN(3) {
	case 0:
		return second(c.s.Outcome(c.session, c.number, 0))
	case 1:
		_, _, err := c.s.NewestNumber(c.session)
		return err
	default:
		return c.s.ForgetSession(c.session)
	}
}

func (c *storeCall) settle() error {
	switch c.rng.IntN(5) {
	case 0:
		return c.s.DB().Compact(c.ctx, pando.CompactOptions{})
	case 1:
		return c.s.SyncSeen()
	case 2:
		return c.s.SyncOnce(c.ctx, 1, func(ctx context.Context) error { return second(c.some().Insert(ctx, c.doc())) })
	case 3:
		return c.s.Noop(c.ctx, []byte{5, 0, 0, 0, 0})
	default:
		return c.s.DB().Checkpoint(c.ctx)
	}
}
