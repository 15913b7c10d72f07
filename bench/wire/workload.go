package wire

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	data "github.com/pandodb/pando/bench/workload"
)

// workload is one thing that all servers are asked to do.
type workload struct {
	name    string
	about   string
	batch   int // documents of an operation; 0: one
	wants   feature
	ops     func(Sizes) int
	prepare func(c *client, ops int) func(ctx context.Context, t *thread, i int) error
	check   func(ctx context.Context, c *client) error // afterwards, and not measured
}

func (w workload) documents() int { return max(w.batch, 1) }

// feature is what a workload wants that some servers lack.
type feature int

const (
	_            feature = iota
	ranges               // of an index: without its order, each is a walk through the whole collection, and a cell takes an hour
	transactions         // which only replica sets have
)

// batchDocuments is how many documents a batch has.
const batchDocuments = 1000

// workloads lists them in the order in which they run; later ones build on what earlier ones have stored.
func workloads() []workload {
	single := func(s Sizes) int { return s.Ops }
	tenth := func(s Sizes) int { return max(s.Ops/10, 1) } // where an operation is some hundred documents
	users := singleUsers
	return []workload{
		{name: "load, batches of 1,000", about: "YCSB's records: ten fields of 100 bytes", batch: batchDocuments,
			ops: func(s Sizes) int { return s.Records / batchDocuments }, prepare: loadRecords, check: countRecords},
		{name: "YCSB A", about: "half reads, half updates of one field, Zipfian", ops: single, prepare: ycsb(mix{update: 50})},
		{name: "YCSB B", about: "95 % reads, 5 % updates", ops: single, prepare: ycsb(mix{update: 5})},
		{name: "YCSB C", about: "reads", ops: single, prepare: ycsb(mix{})},
		{name: "YCSB F", about: "half reads, half a read and an update of what was read", ops: single, prepare: ycsb(mix{modify: 50})},
		{name: "YCSB D", about: "95 % reads of the latest, 5 % inserts", ops: single, prepare: ycsb(mix{insert: 5, latest: true}), check: countRecords},
		{name: "YCSB E", about: "95 % scans of 1 to 100 records, 5 % inserts", wants: ranges, ops: tenth,
			prepare: ycsb(mix{insert: 5, scan: 95}), check: countRecords},
		{name: "insert, two indexes, batches of 1,000", about: "users with a unique index of the email and one of the city", batch: batchDocuments,
			ops: func(s Sizes) int { return (s.Records - users(s)) / batchDocuments }, prepare: insertBatches},
		{name: "insert, two indexes", about: "one user at a time", ops: users, prepare: insertUsers, check: countUsers},
		{name: "read by _id", about: "users, all equally popular", ops: single, prepare: readUsers(false)},
		{name: "read by an index", about: "users by their email", ops: single, prepare: readUsers(true)},
		{name: "read 100 by _id", about: "a hundred users with one find of a list", ops: tenth, prepare: readLists},
		{name: "update by _id, batches of 1,000", about: "a field of users, all equally popular", batch: batchDocuments,
			ops: func(s Sizes) int { return max(s.Ops/batchDocuments, 1) }, prepare: updateBatches},
		{name: "update by an index, batches of 100", about: "two fields of users by their email, all equally popular", batch: listed,
			ops: tenth, prepare: updateByEmail},
		{name: "update many by a range", about: "two fields of the hundred users in a range of the emails, with one statement", wants: ranges,
			ops: tenth, prepare: updateRanges},
		{name: "aggregate: match, group", about: "the users of each age, counted, and their score on average, of the thousand in a range of the emails",
			wants: ranges, ops: tenth, prepare: groupRanges},
		{name: "delete many by a range, insert them again", about: "the hundred users in a range of the emails with one statement, then with another",
			wants: ranges, ops: tenth, prepare: replaceRanges, check: countUsers},
		{name: "transaction: two updates", about: "one user is read, that one and another are updated by _id, and the transaction is committed",
			wants: transactions, ops: single, prepare: transferPayments, check: checkBalances},
	}
}

// singleUsers is how many users are inserted one by one; the others come before them, in batches.
func singleUsers(s Sizes) int { return min(s.Ops, s.Records/2) }

// mix is a workload of YCSB (Cooper et al., SoCC 2010): shares in per cent; the rest are reads.
type mix struct {
	update, modify, insert, scan int
	latest                       bool
}

// longestScan is the longest scan of workload E.
const longestScan = 100

func ycsb(m mix) func(*client, int) func(context.Context, *thread, int) error {
	return func(c *client, ops int) func(context.Context, *thread, int) error {
		draw := data.Popular
		if m.latest {
			draw = data.Ranks
		}
		list := draw(c.sizes.Records, ops, 1)
		return func(ctx context.Context, t *thread, at int) error {
			i := int(list[at])
			if m.latest {
				i = t.c.there.count() - 1 - i
			}
			dice := t.rng.IntN(100)
			switch {
			case dice < m.update:
				return t.update(ctx, i, at)
			case dice < m.modify:
				if err := t.read(ctx, i); err != nil {
					return err
				}
				return t.update(ctx, i, at)
			case dice < m.insert:
				i := t.c.there.next()
				if _, err := t.c.records.InsertOne(ctx, bson.Raw(t.record(i))); err != nil {
					return err
				}
				t.c.there.done(i)
				return nil
			case dice < m.insert+m.scan:
				return t.scan(ctx, i, 1+t.rng.IntN(longestScan))
			}
			return t.read(ctx, i)
		}
	}
}

const (
	fields     = 10
	fieldBytes = 100
)

// key is the _id of a record: YCSB scatters them over the key space too.
func key(dst []byte, i int) []byte {
	h := uint64(i+1) * 0x9e3779b97f4a7c15
	return strconv.AppendUint(append(dst, "user"...), h, 10)
}

func keyOf(i int) string { return string(key(nil, i)) }

func fieldName(n int) string { return "field" + strconv.Itoa(n) }

// content is a field of a record: it says of which record, which field and which version it is.
func content(i, field, version int) string {
	b := fmt.Appendf(nil, "%010d.%d.%010d.", i, field, version)
	for n := uint64(i*fields+field)*31 + uint64(version); len(b) < fieldBytes; {
		n = n*6364136223846793005 + 1442695040888963407
		b = append(b, ' '+byte(n>>58)) // 64 characters of ASCII
	}
	return string(b)
}

// record makes a record.
func (t *thread) record(i int) bsoncore.Document {
	at, b := bsoncore.AppendDocumentStart(nil)
	b = bsoncore.AppendStringElement(b, "_id", keyOf(i))
	for n := range fields {
		b = bsoncore.AppendStringElement(b, fieldName(n), content(i, n, 0))
	}
	b, _ = bsoncore.AppendDocumentEnd(b, at) // fails only for a wrong start
	return b
}

// checkRecord says what is wrong with a record.
func checkRecord(doc bson.Raw, i int) error {
	elements, err := doc.Elements()
	if err != nil || len(elements) != 1+fields {
		return fmt.Errorf("record %d: %d elements, %w", i, len(elements), err)
	}
	if id, _ := elements[0].Value().StringValueOK(); id != keyOf(i) {
		return fmt.Errorf("record %d: _id %v, want %s", i, elements[0].Value(), keyOf(i))
	}
	for n, e := range elements[1:] {
		s, _ := e.Value().StringValueOK()
		var record, field, version int
		if _, err := fmt.Sscanf(s[:min(len(s), 24)], "%d.%d.%d.", &record, &field, &version); err != nil || s != content(i, n, version) {
			return fmt.Errorf("record %d, %s: %q", i, e.Key(), s)
		}
	}
	return nil
}

// checked is how many records are read for one that is compared byte by byte: the client's time is not what is measured.
const checked = 16

func (t *thread) read(ctx context.Context, i int) error {
	doc, err := t.c.records.FindOne(ctx, bson.D{{Key: "_id", Value: keyOf(i)}}).Raw()
	if err != nil {
		return fmt.Errorf("read of record %d: %w", i, err)
	}
	if t.rng.IntN(checked) == 0 {
		return checkRecord(doc, i)
	}
	if id, _ := doc.Lookup("_id").StringValueOK(); id != keyOf(i) {
		return fmt.Errorf("record %d: _id %q", i, id)
	}
	return nil
}

func (t *thread) update(ctx context.Context, i, version int) error {
	n := t.rng.IntN(fields)
	set := bson.D{{Key: "$set", Value: bson.D{{Key: fieldName(n), Value: content(i, n, version)}}}}
	result, err := t.c.records.UpdateOne(ctx, bson.D{{Key: "_id", Value: keyOf(i)}}, set)
	if err == nil && result.MatchedCount != 1 {
		err = fmt.Errorf("record %d: %d updated", i, result.MatchedCount)
	}
	return err
}

func (t *thread) scan(ctx context.Context, i, limit int) error {
	from := keyOf(i)
	cursor, err := t.c.records.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: from}}}},
		options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(int64(limit)))
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	last, n := []byte(nil), 0
	for ; cursor.Next(ctx); n++ {
		id := cursor.Current.Lookup("_id").Value
		if n == 0 && cursor.Current.Lookup("_id").StringValue() != from || n > 0 && bytes.Compare(last[4:], id[4:]) >= 0 {
			return fmt.Errorf("scan from %s: record %d is %q, after %q", from, n, id, last)
		}
		last = append(last[:0], id...)
	}
	if n == 0 || n > limit {
		return fmt.Errorf("scan from %s: %d records of %d", from, n, limit)
	}
	return cursor.Err()
}

func loadRecords(*client, int) func(context.Context, *thread, int) error {
	return func(ctx context.Context, t *thread, at int) error {
		docs := make([]any, batchDocuments)
		for k := range docs {
			docs[k] = bson.Raw(t.record(at*batchDocuments + k))
		}
		_, err := t.c.records.InsertMany(ctx, docs)
		return err
	}
}

// countRecords checks how many records there are.
func countRecords(ctx context.Context, c *client) error {
	if c.there.begun == 0 {
		c.there.begun, c.there.upTo = c.sizes.Records, c.sizes.Records
	}
	return count(ctx, c.records, c.there.count())
}

func count(ctx context.Context, in *mongo.Collection, want int) error {
	n, err := in.CountDocuments(ctx, bson.D{})
	if err == nil && n != int64(want) {
		err = fmt.Errorf("%d documents in %s, %d were acknowledged", n, in.Name(), want)
	}
	return err
}

func insertBatches(*client, int) func(context.Context, *thread, int) error {
	return func(ctx context.Context, t *thread, at int) error {
		docs := make([]any, batchDocuments)
		list := data.Users(at*batchDocuments, (at+1)*batchDocuments)
		for k := range list {
			docs[k] = list[k].AppendBSON(nil)
		}
		_, err := t.c.users.InsertMany(ctx, docs)
		return err
	}
}

func insertUsers(c *client, _ int) func(context.Context, *thread, int) error {
	from := (c.sizes.Records - singleUsers(c.sizes)) / batchDocuments * batchDocuments
	return func(ctx context.Context, t *thread, at int) error {
		u := data.Users(from+at, from+at+1)
		_, err := t.c.users.InsertOne(ctx, u[0].AppendBSON(nil))
		return err
	}
}

// countUsers checks how many users there are.
func countUsers(ctx context.Context, c *client) error { return count(ctx, c.users, userCount(c.sizes)) }

func userCount(s Sizes) int {
	return (s.Records-singleUsers(s))/batchDocuments*batchDocuments + singleUsers(s)
}

func readUsers(byEmail bool) func(*client, int) func(context.Context, *thread, int) error {
	return func(c *client, _ int) func(context.Context, *thread, int) error {
		n := userCount(c.sizes)
		return func(ctx context.Context, t *thread, _ int) error {
			i := t.rng.IntN(n)
			u := data.Users(i, i+1)
			filter := bson.D{{Key: "_id", Value: u[0].ID}}
			if byEmail {
				filter = bson.D{{Key: "email", Value: u[0].Email}}
			}
			doc, err := t.c.users.FindOne(ctx, filter).Raw()
			if err == nil && !bytes.Equal(doc, u[0].AppendBSON(nil)) {
				err = fmt.Errorf("user %d: %v", i, doc)
			}
			return err
		}
	}
}

// listed is how many users a list asks for.
const listed = 100

func readLists(c *client, _ int) func(context.Context, *thread, int) error {
	n := userCount(c.sizes)
	return func(ctx context.Context, t *thread, _ int) error {
		list := make(bson.A, listed)
		first := t.rng.IntN(n)
		for k := range list {
			list[k] = int64((first + k*n/listed) % n)
		}
		cursor, err := t.c.users.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: list}}}})
		if err != nil {
			return err
		}
		found := 0
		for ; cursor.Next(ctx); found++ {
			i := int(cursor.Current.Lookup("_id").AsInt64())
			if u := data.Users(i, i+1); !bytes.Equal(cursor.Current, u[0].AppendBSON(nil)) {
				return fmt.Errorf("user %d: %v", i, cursor.Current)
			}
		}
		if err := cursor.Err(); err != nil || found != listed {
			return fmt.Errorf("%d users of %d, %w", found, listed, err)
		}
		return nil
	}
}

func updateBatches(c *client, _ int) func(context.Context, *thread, int) error {
	n := userCount(c.sizes)
	visit := bson.D{{Key: "$inc", Value: bson.D{{Key: "visits", Value: 1}}}}
	return func(ctx context.Context, t *thread, _ int) error {
		list := make([]mongo.WriteModel, batchDocuments)
		for k := range list {
			list[k] = mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: int64(t.rng.IntN(n))}}).SetUpdate(visit)
		}
		return t.updateUsers(ctx, list)
	}
}
