package document_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// next returns the next event of a change stream, without what differs from run to run.
func next(t testing.TB, c *document.Cursor) (event string, token bson.Raw) {
	t.Helper()
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if !c.Next(wait) {
		t.Fatalf("no event: %v", c.Err())
	}
	var d bson.D
	must(t, c.Decode(&d))
	var kept bson.D
	for _, e := range d {
		switch e.Key {
		case "_id", "clusterTime", "wallTime", "collectionUUID":
		default:
			kept = append(kept, e)
		}
	}
	raw, err := bson.Marshal(kept)
	must(t, err)
	token, _ = c.Current().Lookup("_id").DocumentOK()
	return text(t, raw), append(bson.Raw(nil), token...)
}

func TestChangeStreamsTellWhatHappened(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	c := collection(t, s, "c", &document.CollectionOptions{PreImages: true})
	o := &document.WatchOptions{FullDocument: "whenAvailable", FullDocumentBeforeChange: "whenAvailable"}
	w, err := c.OpenWatch(ctx, nil, o)
	must(t, err)
	defer w.Close()

	_, err = c.Insert(ctx, document.JSON(`{"_id": 1, "a": 1, "b": {"x": 1, "y": 2}}`))
	must(t, err)
	_, err = c.Update(ctx, document.JSON(`{"_id": 1}`), document.JSON(`{"$set": {"a": 2, "b.x": 5}, "$unset": {"b.y": 1}}`), nil)
	must(t, err)
	_, err = c.Replace(ctx, document.JSON(`{"_id": 1}`), document.JSON(`{"z": 1}`), nil)
	must(t, err)
	_, err = c.Delete(ctx, document.JSON(`{"_id": 1}`), nil)
	must(t, err)
	must(t, c.Drop(ctx))

	var got []string
	var tokens []bson.Raw
	for range 6 {
		e, token := next(t, w)
		got, tokens = append(got, e), append(tokens, token)
	}
	expect(t, "events", strings.Join(got, "\n"), strings.Join([]string{
		`{"operationType":"insert","fullDocument":{"_id":1,"a":1,"b":{"x":1,"y":2}},"ns":{"db":"test","coll":"c"},"documentKey":{"_id":1}}`,
		`{"operationType":"update","fullDocument":{"_id":1,"a":2,"b":{"x":5}},"ns":{"db":"test","coll":"c"},"documentKey":{"_id":1},"updateDescription":{"updatedFields":{"a":2,"b.x":5},"removedFields":["b.y"],"truncatedArrays":[]},"fullDocumentBeforeChange":{"_id":1,"a":1,"b":{"x":1,"y":2}}}`,
		`{"operationType":"replace","fullDocument":{"_id":1,"z":1},"ns":{"db":"test","coll":"c"},"documentKey":{"_id":1},"fullDocumentBeforeChange":{"_id":1,"a":2,"b":{"x":5}}}`,
		`{"operationType":"delete","ns":{"db":"test","coll":"c"},"documentKey":{"_id":1},"fullDocumentBeforeChange":{"_id":1,"z":1}}`,
		`{"operationType":"drop","ns":{"db":"test","coll":"c"}}`,
		`{"operationType":"invalidate"}`,
	}, "\n"))
	if w.Next(ctx) || w.Err() != nil {
		t.Errorf("behind the invalidation: %v, %v", w.Current(), w.Err())
	}

	again, err := c.OpenWatch(ctx, nil, &document.WatchOptions{ResumeAfter: tokens[2], FullDocumentBeforeChange: "whenAvailable"})
	must(t, err)
	defer again.Close()
	e, _ := next(t, again)
	expect(t, "resumed", e, got[3])
	if _, err := c.OpenWatch(ctx, nil, &document.WatchOptions{ResumeAfter: tokens[5]}); document.CodeOf(err) != 260 {
		t.Errorf("resumed after an invalidation: %v", err)
	}
}

func TestChangeStreamsGoOnAfterTheStoreWasClosed(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	c := collection(t, s, "c", nil)
	w, err := c.OpenWatch(ctx, document.JSON(`[{"$match": {"operationType": "insert"}}]`), nil)
	must(t, err)
	_, err = c.Insert(ctx, document.JSON(`{"_id": 1}`))
	must(t, err)
	_, token := next(t, w)
	must(t, w.Close())
	for i := 2; i < 5; i++ {
		_, err = c.Insert(ctx, bson.D{{Key: "_id", Value: i}})
		must(t, err)
		_, err = c.Update(ctx, bson.D{{Key: "_id", Value: i}}, document.JSON(`{"$set": {"a": 1}}`), nil)
		must(t, err)
	}
	must(t, s.Close())
	s = open(t, fs)
	c = collection(t, s, "c", nil)
	if w, err = c.OpenWatch(ctx, document.JSON(`[{"$match": {"operationType": "insert"}}]`), &document.WatchOptions{ResumeAfter: token}); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := 2; i < 5; i++ {
		if e, _ := next(t, w); !strings.Contains(e, `"documentKey":{"_id":`+string(rune('0'+i))) {
			t.Errorf("event %d: %s", i, e)
		}
	}
}

// Close may end the log with a command of which no change tells. A stream that was opened then once waited for a change with its number.
func TestStreamsOfAStoreThatWasClosedDoNotWait(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	w, err := collection(t, s, "c", nil).OpenWatch(ctx, nil, nil)
	must(t, err)
	from := append(bson.Raw(nil), w.ResumeToken()...)
	must(t, w.Close())
	const docs = 400
	for i := range docs {
		_, err = collection(t, s, "c", nil).Insert(ctx, bson.D{{Key: "_id", Value: i}, {Key: "x", Value: bytes.Repeat([]byte{1}, 3000)}})
		must(t, err)
	}
	must(t, s.Close())

	s = open(t, fs)
	w, err = collection(t, s, "c", nil).OpenWatch(ctx, nil, &document.WatchOptions{ResumeAfter: from})
	must(t, err)
	defer w.Close()
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	told := 0
	for w.TryNext(limit) {
		told++
	}
	must(t, w.Err())
	if told != docs {
		t.Errorf("%d events", told)
	}
	_, err = collection(t, s, "c", nil).Insert(ctx, bson.D{{Key: "_id", Value: "new"}})
	must(t, err)
	if event, _ := next(t, w); !strings.Contains(event, `"_id":"new"`) {
		t.Errorf("the next one is %s", event)
	}
}

// A stream that had told of changes which a power cut took, as it may without a sync, once went on in silence until there were as many
// new ones, and never told of those.
func TestChangeStreamsDoNotGoOnBehindWhatIsLost(t *testing.T) {
	relaxed := func(fs *memfs.FS) *document.Store {
		storage := pando.Options{FS: fs, MemoryBytes: 8 << 20, Profile: pando.Relaxed, SyncInterval: time.Hour}
		s, err := document.Open("db", &document.Options{Storage: storage, TTLInterval: -1})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	}
	fs := memfs.New()
	s := relaxed(fs)
	c := collection(t, s, "c", nil)
	must(t, s.DB().Sync())
	stream, err := c.OpenWatch(ctx, nil, nil)
	must(t, err)
	for i := range 3 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}})
		must(t, err)
	}
	_, first := next(t, stream)
	next(t, stream)
	_, last := next(t, stream)
	must(t, stream.Close())

	c = collection(t, relaxed(fs.CrashImage(memfs.Policy{Unsynced: memfs.None})), "c", nil)
	for _, token := range []bson.Raw{first, last} {
		_, err = c.OpenWatch(ctx, nil, &document.WatchOptions{ResumeAfter: token})
		if document.CodeOf(err) != 286 { // ChangeStreamHistoryLost
			t.Errorf("behind what is lost: %v", err)
		}
	}
}

// A stream may read a commit before the transaction that made it knows.
func TestStreamsKnowWhatATransactionCreates(t *testing.T) {
	s := open(t, memfs.New())
	w, err := s.Database("test").OpenWatch(ctx, nil, nil)
	must(t, err)
	defer w.Close()
	for i := range 200 {
		name := fmt.Sprintf("c%d", i)
		err := s.Transaction(ctx, func(tx *document.Tx) error {
			_, err := tx.In(s.Database("test").Lookup(name)).Insert(ctx, document.JSON(`{"_id": 1}`))
			return err
		})
		must(t, err)
		if e, _ := next(t, w); !strings.Contains(e, `"coll":"`+name+`"`) {
			t.Fatalf("event %d: %s", i, e)
		}
	}
}

// An event that is larger than a document may be is told in fragments, and a stream goes on behind any of them.
func TestLargeEventsAreSplit(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", &document.CollectionOptions{PreImages: true})
	o := &document.WatchOptions{FullDocumentBeforeChange: "required"}
	split := document.JSON(`[{"$changeStreamSplitLargeEvent": {}}]`)
	w, err := c.OpenWatch(ctx, split, o)
	must(t, err)
	defer w.Close()
	whole, err := c.OpenWatch(ctx, nil, o)
	must(t, err)
	defer whole.Close()
	value := func(s string) bson.D { return bson.D{{Key: "v", Value: strings.Repeat(s, 10<<20)}} }
	_, err = c.Insert(ctx, append(bson.D{{Key: "_id", Value: 1}}, value("a")...))
	must(t, err)
	_, err = c.Update(ctx, document.JSON(`{"_id": 1}`), bson.D{{Key: "$set", Value: value("b")}}, nil)
	must(t, err)
	_, err = c.Delete(ctx, document.JSON(`{"_id": 1}`), nil)
	must(t, err)
	wait, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var tokens []bson.Raw
	read := func(w *document.Cursor) string {
		t.Helper()
		if !w.Next(wait) {
			t.Fatalf("no event: %v", w.Err())
		}
		tokens = append(tokens, append(bson.Raw(nil), w.Current().Lookup("_id").Document()...))
		var fields []string
		elements, err := w.Current().Elements()
		must(t, err)
		for _, e := range elements {
			fields = append(fields, e.Key())
		}
		if number, err := w.Current().LookupErr("splitEvent"); err == nil {
			return number.String() + " " + strings.Join(fields, " ")
		}
		return strings.Join(fields, " ")
	}
	first := `{"fragment": {"$numberInt":"1"},"of": {"$numberInt":"2"}} _id splitEvent wallTime clusterTime operationType documentKey ns fullDocumentBeforeChange`
	second := `{"fragment": {"$numberInt":"2"},"of": {"$numberInt":"2"}} _id splitEvent updateDescription`
	last := `_id operationType clusterTime wallTime ns documentKey fullDocumentBeforeChange`
	read(w)
	expect(t, "the first fragment", read(w), first)
	expect(t, "the second fragment", read(w), second)
	expect(t, "a whole event", read(w), last)
	again, err := c.OpenWatch(ctx, split, &document.WatchOptions{FullDocumentBeforeChange: "required", ResumeAfter: tokens[1]})
	must(t, err)
	defer again.Close()
	expect(t, "resumed behind the first fragment", read(again), second)
	expect(t, "and behind it", read(again), last)
	if whole.Next(wait); !whole.Next(wait) && document.CodeOf(whole.Err()) != 10334 {
		t.Errorf("without the stage: %v", whole.Err())
	}
	if _, err := c.OpenWatch(ctx, nil, &document.WatchOptions{ResumeAfter: tokens[1]}); document.CodeOf(err) != 280 {
		t.Errorf("resumed from a fragment without the stage: %v", err)
	}
	if _, err := c.OpenWatch(ctx, document.JSON(`[{"$changeStreamSplitLargeEvent": {}}, {"$match": {}}]`), nil); document.CodeOf(err) != 7182802 {
		t.Errorf("the stage in front: %v", err)
	}
}

// TestStreamsOfADatabase: it is told when $out puts a collection in the place of another, and of views only who asks for more.
func TestStreamsOfADatabase(t *testing.T) {
	for _, expanded := range []bool{false, true} {
		s := open(t, memfs.New())
		c := collection(t, s, "c", nil)
		_, err := c.Insert(ctx, document.JSON(`{"_id": 1}`))
		must(t, err)
		w, err := c.Database().OpenWatch(ctx, nil, &document.WatchOptions{ShowExpandedEvents: expanded})
		must(t, err)
		defer w.Close()
		must(t, collection(t, s, "view", &document.CollectionOptions{ViewOn: "c", Pipeline: document.JSON(`[]`)}).Drop(ctx))
		for _, err := range c.Aggregate(ctx, document.JSON(`[{"$out": "into"}]`), nil) {
			must(t, err)
		}
		var got []string
		for range 3 {
			e, _ := next(t, w)
			var d struct {
				OperationType string
				To            struct{ Coll string }
			}
			must(t, bson.UnmarshalExtJSON([]byte(e), false, &d))
			if got = append(got, d.OperationType+d.To.Coll); d.OperationType == "rename" {
				break
			}
		}
		if want := map[bool]string{false: "renameinto", true: "create drop renameinto"}[expanded]; strings.Join(got, " ") != want {
			t.Errorf("expanded %t: %s, want %s", expanded, got, want)
		}
	}
}

// TestStreamsThatCannotBeOpened: what asks for no stream, or for one that nobody has seen, has MongoDB's codes.
func TestStreamsThatCannotBeOpened(t *testing.T) {
	s := open(t, memfs.New())
	collection(t, s, "c", nil)
	for spec, want := range map[string]document.Code{
		`{"resumeAfter": {}}`: 40647, `{"resumeAfter": {"_data": 5}}`: 40647, `{"startAfter": {"_data": ""}}`: 40649, `{"startAfter": {"_data": "xy"}}`: 9,
		`{"resumeAfter": {"_data": "8264"}}`: 260, `{"resumeAfter": 5}`: 14, `{"fullDocument": 5}`: 14, `{"fullDocument": "all"}`: 2,
		`{"fullDocumentBeforeChange": true}`: 14, `{"showExpandedEvents": 1}`: 14, `{"allChangesForCluster": 1}`: 14, `{"allChangesForCluster": true}`: 72,
		`{"startAtOperationTime": 5}`: 14, `{"unheard": 1}`: 40415,
	} {
		stages := pipeline(t, `[{"$changeStream": `+spec+`}]`)
		if _, err := s.Database("test").OpenAggregate(ctx, stages, nil); document.CodeOf(err) != want {
			t.Errorf("%s: %v", spec, err)
		}
	}
	all, err := s.Database("admin").OpenAggregate(ctx, pipeline(t, `[{"$changeStream": {"allChangesForCluster": true}}]`), nil)
	must(t, err)
	must(t, all.Close())
}

// The _id of an event is what its stream is resumed by: one that a stage changes is an error, and not only one that is gone.
func TestStreamsKeepTheirTokens(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	for stages, fails := range map[string]bool{
		`[{"$project": {"_id": 1}}]`: false, `[{"$set": {"x": 1}}]`: false,
		`[{"$unset": "_id"}]`: true, `[{"$set": {"_id": {"x": 1}}}]`: true, `[{"$unset": "_id._data"}]`: true, `[{"$set": {"_id.more": 1}}]`: true,
	} {
		w, err := c.OpenWatch(ctx, document.JSON(stages), nil)
		must(t, err)
		_, err = c.Insert(ctx, bson.D{})
		must(t, err)
		wait, cancel := context.WithTimeout(ctx, time.Minute)
		if told := w.Next(wait); told == fails || fails && document.CodeOf(w.Err()) != 280 {
			t.Errorf("%s: %v", stages, w.Err())
		}
		cancel()
		must(t, w.Close())
	}
}

// A change stream goes by the options that it was opened with.
func TestOptionsOfAChangeStreamMayBeUsedAgain(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	o := &document.WatchOptions{FullDocument: "updateLookup"}
	w, err := c.OpenWatch(ctx, nil, o)
	must(t, err)
	defer w.Close()
	o.FullDocument, o.ShowExpandedEvents = "", true // for another one
	_, err = c.Insert(ctx, bson.D{{Key: "_id", Value: 1}})
	must(t, err)
	_, err = c.Update(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}, nil)
	must(t, err)
	next(t, w)
	got, _ := next(t, w)
	expect(t, "event", got, `{"operationType":"update","fullDocument":{"_id":1,"a":1},"ns":{"db":"test","coll":"c"},"documentKey":{"_id":1},"updateDescription":{"updatedFields":{"a":1},"removedFields":[],"truncatedArrays":[]}}`)
}
