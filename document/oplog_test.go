package document_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// oplog returns the collection that is the oplog.
func oplog(s *document.Store) *document.Collection { return s.Database("local").Lookup("oplog.rs") }

// entryText is an entry without what differs from run to run; an UUID is shown as there.
func entryText(t testing.TB, raw bson.Raw) string {
	t.Helper()
	var d bson.D
	must(t, bson.Unmarshal(raw, &d))
	doc, err := bson.Marshal(stripped(d))
	must(t, err)
	return text(t, doc)
}

func stripped(d bson.D) bson.D {
	var kept bson.D
	for _, e := range d {
		switch v := e.Value.(type) {
		case bson.Timestamp, bson.DateTime:
			e.Value = "there"
		case bson.Binary:
			e.Value = "there"
		case bson.D:
			e.Value = stripped(v)
		case bson.A:
			for i := range v {
				if d, ok := v[i].(bson.D); ok {
					v[i] = stripped(d)
				}
			}
		}
		kept = append(kept, e)
	}
	return kept
}

// entries returns what a find on the oplog gives, an entry a line.
func entries(t testing.TB, s *document.Store, filter any, o *document.FindOptions) string {
	t.Helper()
	var list []string
	for doc, err := range oplog(s).Find(ctx, filter, o) {
		must(t, err)
		list = append(list, entryText(t, doc))
	}
	return strings.Join(list, "\n")
}

func TestTheOplogTellsEveryChangeAndOutlivesItsCollections(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	d := s.Database("db")
	a := d.Lookup("a")
	must2 := func(_ any, err error) { t.Helper(); must(t, err) }
	must2(a.Insert(ctx, document.JSON(`{"_id": 1, "x": 1, "l": [1, 2, {"y": 1}], "sub": {"a": 1, "b": 2}}`)))
	must2(a.Update(ctx, document.JSON(`{"_id": 1}`), document.JSON(`{"$set": {"x": 2, "n": 5, "l.2.y": 3}, "$unset": {"sub.b": 1}}`), nil))
	must2(a.Update(ctx, document.JSON(`{"_id": 1}`), document.JSON(`{"$push": {"l": 9}}`), nil))
	must2(a.Replace(ctx, document.JSON(`{"_id": 1}`), document.JSON(`{"z": "`+strings.Repeat("long", 5000)+`"}`), nil))
	must2(a.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"z": 1}`)}))
	must(t, a.DropIndex(ctx, "z_1"))
	must(t, a.Rename(ctx, "db", "b", false))
	must2(d.Lookup("b").Delete(ctx, document.JSON(`{"_id": 1}`), nil))
	must(t, s.Transaction(ctx, func(tx *document.Tx) error {
		if _, err := tx.In(d.Lookup("b")).Insert(ctx, document.JSON(`{"_id": 2}`)); err != nil {
			return err
		}
		_, err := tx.In(d.Lookup("c")).Insert(ctx, document.JSON(`{"_id": 3}`))
		return err
	}))
	must(t, d.Lookup("c").Rename(ctx, "db", "b", true))
	must(t, d.Create(ctx, "v", document.JSON(`{"viewOn": "b", "pipeline": []}`)))
	must(t, d.Drop(ctx))
	want := strings.Join([]string{
		`{"op":"c","ns":"db.$cmd","ui":"there","o":{"create":"a","idIndex":{"v":2,"key":{"_id":1},"name":"_id_"}}`,
		`{"op":"i","ns":"db.a","ui":"there","o":{"_id":1,"x":1,"l":[1,2,{"y":1}],"sub":{"a":1,"b":2}},"o2":{"_id":1}`,
		`{"op":"u","ns":"db.a","ui":"there","o":{"$v":2,"diff":{"u":{"x":2},"i":{"n":5},"sl":{"a":true,"s2":{"u":{"y":3}}},"ssub":{"d":{"b":false}}}},"o2":{"_id":1}`,
		`{"op":"u","ns":"db.a","ui":"there","o":{"$v":2,"diff":{"sl":{"a":true,"u3":9}}},"o2":{"_id":1}`,
		`{"op":"u","ns":"db.a","ui":"there","o":{"_id":1,"z":"` + strings.Repeat("long", 5000) + `"},"o2":{"_id":1}`,
		`{"op":"c","ns":"db.$cmd","ui":"there","o":{"createIndexes":"a","v":2,"key":{"z":1},"name":"z_1"}`,
		`{"op":"c","ns":"db.$cmd","ui":"there","o":{"dropIndexes":"a","index":"z_1"},"o2":{"v":2,"key":{"z":1},"name":"z_1"}`,
		`{"op":"c","ns":"db.$cmd","ui":"there","o":{"renameCollection":"db.a","to":"db.b","stayTemp":false}`,
		`{"op":"d","ns":"db.b","ui":"there","o":{"_id":1}`,
		`{"op":"c","ns":"admin.$cmd","o":{"applyOps":[{"op":"i","ns":"db.b","ui":"there","o":{"_id":2},"o2":{"_id":2}},{"op":"c","ns":"db.$cmd","ui":"there","o":{"create":"c","idIndex":{"v":2,"key":{"_id":1},"name":"_id_"}}},{"op":"i","ns":"db.c","ui":"there","o":{"_id":3},"o2":{"_id":3}}]}`,
		`{"op":"c","ns":"db.$cmd","ui":"there","o":{"renameCollection":"db.c","to":"db.b","stayTemp":false,"dropTarget":"there"},"o2":{"numRecords":1}`,
		`{"op":"i","ns":"db.system.views","o":{"_id":"db.v","viewOn":"b","pipeline":[]},"o2":{"_id":"db.v"}`,
		`{"op":"c","ns":"db.$cmd","ui":"there","o":{"drop":"b"},"o2":{"numRecords":1}`,
		`{"op":"d","ns":"db.system.views","o":{"_id":"db.v"}`,
		`{"op":"c","ns":"db.$cmd","o":{"dropDatabase":1}`,
	}, "\n")
	check := func(when string) {
		t.Helper()
		got := strings.ReplaceAll(entries(t, s, nil, nil), `,"ts":"there","t":1,"v":2,"wall":"there"}`, "")
		expect(t, when, got, want)
	}
	check("while it is open")
	must(t, s.Close())
	s = open(t, fs)
	check("opened again, all collections gone")
}

func TestTheOplogIsReadFromBothEndsAndByTime(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	for i := range 3000 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: strings.Repeat("x", 500)}})
		must(t, err)
	}
	all := func(o *document.FindOptions, filter any) (list []bson.Raw) {
		for doc, err := range oplog(s).Find(ctx, filter, o) {
			must(t, err)
			list = append(list, append(bson.Raw(nil), doc...))
		}
		return list
	}
	forward := all(nil, nil)
	backward := all(&document.FindOptions{Sort: document.JSON(`{"$natural": -1}`)}, nil)
	if len(forward) != 3001 || len(backward) != len(forward) {
		t.Fatalf("%d entries forward, %d backward", len(forward), len(backward))
	}
	for i := range forward {
		if string(forward[i]) != string(backward[len(backward)-1-i]) {
			t.Fatalf("entry %d: %s and %s", i, forward[i], backward[len(backward)-1-i])
		}
		if i > 0 && forward[i].Lookup("ts").String() == forward[i-1].Lookup("ts").String() {
			t.Fatalf("entries %d and %d have the same time", i-1, i)
		}
	}
	last := all(&document.FindOptions{Sort: document.JSON(`{"$natural": -1}`), Limit: 1}, nil)
	expect(t, "the last", string(last[0]), string(forward[3000]))
	from := all(nil, bson.D{{Key: "ts", Value: bson.D{{Key: "$gt", Value: forward[2900].Lookup("ts")}}}})
	expect(t, "from a time on", fmt.Sprint(len(from), from[0]), fmt.Sprint(100, forward[2901]))
	between := all(nil, bson.D{{Key: "ts", Value: bson.D{{Key: "$gte", Value: forward[5].Lookup("ts")}, {Key: "$lte", Value: forward[9].Lookup("ts")}}}})
	expect(t, "between times", fmt.Sprint(len(between)), "5")
	byOp := all(&document.FindOptions{Sort: document.JSON(`{"o._id": -1}`), Skip: 1, Limit: 2, Projection: document.JSON(`{"o._id": 1, "_id": 0}`)}, document.JSON(`{"op": "i"}`))
	expect(t, "in another order", fmt.Sprint(byOp), `[{"o": {"_id": {"$numberInt":"2998"}}} {"o": {"_id": {"$numberInt":"2997"}}}]`)
	n, err := oplog(s).Count(ctx, document.JSON(`{"op": "i"}`), nil)
	must(t, err)
	expect(t, "count", fmt.Sprint(n), "3000")
	stats, err := oplog(s).Stats(ctx)
	must(t, err)
	expect(t, "stats", fmt.Sprint(stats.Documents, stats.Capped, stats.Bytes > 1_500_000), "3001 true true")
	list, err := s.Database("local").Collections(ctx)
	must(t, err)
	if len(list) != 1 || list[0].Name != "oplog.rs" || !list[0].Options.Lookup("capped").Boolean() {
		t.Errorf("collections of local: %v", list)
	}
	if _, err := oplog(s).Insert(ctx, document.JSON(`{}`)); document.CodeOf(err) != 73 {
		t.Errorf("a write: %v", err)
	}
}

func TestTailsOfTheOplogWaitForWhatComes(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	tail, err := oplog(s).Tail(ctx, document.JSON(`{"op": "i", "ns": "test.c"}`), nil)
	must(t, err)
	defer tail.Close()
	if tail.TryNext(ctx) || tail.Err() != nil {
		t.Fatalf("before anything: %v, %v", tail.Current(), tail.Err())
	}
	for i := range 5 {
		go func() { _, _ = c.Insert(ctx, bson.D{{Key: "_id", Value: i}}) }()
		wait, cancel := context.WithTimeout(ctx, time.Minute)
		if !tail.Next(wait) {
			t.Fatalf("entry %d: %v", i, tail.Err())
		}
		expect(t, "entry", fmt.Sprint(tail.Current().Lookup("o", "_id").Int32()), fmt.Sprint(i))
		cancel()
	}
	if _, err := oplog(s).Tail(ctx, nil, &document.FindOptions{Sort: document.JSON(`{"$natural": -1}`)}); document.CodeOf(err) != document.BadValue {
		t.Errorf("a tail backwards: %v", err)
	}
}

// A tail whose place has been recycled ends; one that begins at a time long ago begins with what there is.
func TestTailsOfTheOplogFallOff(t *testing.T) {
	fs := memfs.New()
	storage := pando.Options{FS: fs, MemoryBytes: 16 << 20}
	s, err := document.Open("db", &document.Options{Storage: storage, FS: fs, History: 1 << 20})
	must(t, err)
	defer s.Close()
	c := collection(t, s, "c", nil)
	tail, err := oplog(s).Tail(ctx, nil, nil)
	must(t, err)
	defer tail.Close()
	pad := strings.Repeat("x", 500)
	for i := range 30 {
		var docs []bson.D
		for j := range 1000 {
			docs = append(docs, bson.D{{Key: "_id", Value: i*1000 + j}, {Key: "pad", Value: pad}})
		}
		_, err := c.InsertMany(ctx, docs, nil)
		must(t, err)
		must(t, s.DB().Checkpoint(ctx))
	}
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for tail.Next(wait) {
	}
	if document.CodeOf(tail.Err()) != 136 {
		t.Errorf("a tail that fell off: %v", tail.Err())
	}
	again, err := oplog(s).Tail(ctx, bson.D{{Key: "ts", Value: bson.D{{Key: "$gt", Value: bson.Timestamp{T: 1}}}}}, nil)
	must(t, err)
	defer again.Close()
	if !again.TryNext(ctx) {
		t.Errorf("a tail from long ago: %v", again.Err())
	}
	var e *document.Error
	if errors.As(tail.Err(), &e) && !errors.Is(e, pando.ErrChangesGone) {
		t.Errorf("its cause: %v", e)
	}
}

// A transaction that is larger than an entry may be is told in a chain of entries.
func TestLargeTransactionsAreSeveralEntries(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	pad := strings.Repeat("x", 1<<20)
	must(t, s.Transaction(ctx, func(tx *document.Tx) error {
		for i := range 30 {
			if _, err := tx.In(c).Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: pad}}); err != nil {
				return err
			}
		}
		return nil
	}))
	total, parts := 0, []string{}
	for doc, err := range oplog(s).Find(ctx, document.JSON(`{"o.applyOps": {"$exists": true}}`), nil) {
		must(t, err)
		ops, err := doc.Lookup("o", "applyOps").Array().Values()
		must(t, err)
		total += len(ops)
		partial, _ := doc.Lookup("o", "partialTxn").BooleanOK()
		count, _ := doc.Lookup("o", "count").Int64OK()
		parts = append(parts, fmt.Sprint(partial, " ", count))
		if len(doc) > 16<<20 {
			t.Errorf("an entry of %d bytes", len(doc))
		}
	}
	if total != 30 || len(parts) < 2 || parts[0] != "true 0" || parts[len(parts)-1] != "false 30" {
		t.Errorf("%d operations in %v", total, parts)
	}
}

// Large documents lie apart from the log, which refers to them: they are there as long as the log tells of them.
func TestTheOplogHasLargeDocumentsOfDroppedCollections(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	c := collection(t, s, "c", nil)
	for i := range 5 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "pad", Value: strings.Repeat("abcdefgh", 60_000+i)}})
		must(t, err)
	}
	must(t, s.DB().Checkpoint(ctx))
	must(t, c.Drop(ctx))
	must(t, s.DB().Checkpoint(ctx))
	must(t, s.Close())
	s = open(t, fs)
	n := 0
	for doc, err := range oplog(s).Find(ctx, document.JSON(`{"op": "i", "ns": "test.c"}`), nil) {
		must(t, err)
		if pad := doc.Lookup("o", "pad").StringValue(); len(pad) != 8*(60_000+n) {
			t.Errorf("document %d has %d bytes", n, len(pad))
		}
		n++
	}
	expect(t, "inserts", fmt.Sprint(n), "5")
	w, err := s.Database("test").OpenWatch(ctx, nil, &document.WatchOptions{StartAtOperationTime: &bson.Timestamp{T: 1}})
	must(t, err)
	defer w.Close()
	for i := range 5 {
		e, _ := next(t, w)
		if !strings.Contains(e, fmt.Sprintf(`"documentKey":{"_id":%d}`, i)) {
			t.Errorf("event %d: %.200s", i, e)
		}
	}
	e, _ := next(t, w)
	expect(t, "the end", e, `{"operationType":"drop","ns":{"db":"test","coll":"c"}}`)
}

// Streams tell whose a transaction was, and all of it at one time; it is not lost to one that begins while it is open.
func TestStreamsTellTransactionsWhole(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	tx, err := s.Begin(document.WithStatements(ctx, "0123456789abcdef", 7))
	must(t, err)
	_, err = tx.In(c).Insert(ctx, document.JSON(`{"_id": 1}`))
	must(t, err)
	begin := s.Tick()
	_, err = tx.In(c).Insert(ctx, document.JSON(`{"_id": 2}`))
	must(t, err)
	must(t, tx.Commit(ctx))
	w, err := c.OpenWatch(ctx, nil, &document.WatchOptions{StartAtOperationTime: &begin})
	must(t, err)
	defer w.Close()
	var times []string
	var tokens []bson.Raw
	for range 2 {
		_, token := next(t, w)
		tokens = append(tokens, token)
		times = append(times, w.Current().Lookup("clusterTime").String())
		expect(t, "number", fmt.Sprint(w.Current().Lookup("txnNumber").Int64()), "7")
	}
	expect(t, "one time", times[1], times[0])
	again, err := c.OpenWatch(ctx, nil, &document.WatchOptions{ResumeAfter: tokens[0]})
	must(t, err)
	defer again.Close()
	e, _ := next(t, again)
	if !strings.Contains(e, `"documentKey":{"_id":2}`) || !strings.Contains(e, `"txnNumber":7`) {
		t.Errorf("resumed within the transaction: %s", e)
	}
}
