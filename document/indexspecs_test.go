package document_test

import (
	"fmt"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// specs returns specifications of indexes.
func specs(t *testing.T, list ...string) []bson.Raw {
	t.Helper()
	out := make([]bson.Raw, len(list))
	for i, text := range list {
		must(t, bson.UnmarshalExtJSON([]byte(text), false, &out[i]))
	}
	return out
}

// TestIndexesOfOneCall are all made, or none: one that cannot be leaves nothing of those in front of it, which can be made later.
func TestIndexesOfOneCall(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1, "a": 1}`))
	must(t, err)
	const good = `{"key": {"a": 1}, "name": "a_1"}`
	for bad, want := range map[string]document.Code{
		`{"key": {"b": "unheard"}, "name": "b"}`: 67, `{"key": {"b": 1}, "name": "a_1"}`: 86, `{"key": {"b": 1}, "name": "_id_"}`: 2,
		`{"key": {"a": 1}, "name": "other"}`: 85, good: 68,
	} {
		if _, err := c.CreateIndexes(ctx, specs(t, good, bad), nil); document.CodeOf(err) != want {
			t.Errorf("%s: %v", bad, err)
		}
		if list, err := c.Indexes(ctx); len(list) != 1 || err != nil {
			t.Errorf("after %s there are %d indexes, %v", bad, len(list), err)
		}
	}
	_, err = c.CreateIndexes(ctx, specs(t, good), nil)
	must(t, err)
	cursor, err := c.OpenFind(ctx, document.JSON(`{"a": 1}`), &document.FindOptions{Hint: "a_1"})
	must(t, err)
	if !cursor.Next(ctx) {
		t.Errorf("the index finds nothing: %v", cursor.Err())
	}
	must(t, cursor.Close())
}

// TestTheIndexOfIDHasItsName, whatever another one that is asked for would have, also where that is taken.
func TestTheIndexOfIDHasItsName(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	names, err := c.CreateIndexes(ctx, specs(t, `{"key": {"a": 1}, "name": "mine"}`), nil)
	must(t, err)
	more, err := c.CreateIndexes(ctx, specs(t, `{"key": {"_id": 1}, "name": "mine"}`), nil)
	must(t, err)
	if names = append(names, more...); !slices.Equal(names, []string{"mine", "_id_"}) {
		t.Errorf("the names are %q", names)
	}
}

// TestIndexesThatMakeNoCollection: what cannot be understood makes no collection either.
func TestIndexesThatMakeNoCollection(t *testing.T) {
	s := open(t, memfs.New())
	c := s.Database("test").Lookup("fresh")
	if _, err := c.CreateIndexes(ctx, specs(t, `{"key": {"a": 1}, "name": "a_1"}`, `{"key": {"b": "unheard"}, "name": "b"}`), nil); document.CodeOf(err) != 67 {
		t.Error(err)
	}
	if list, err := c.Indexes(ctx); document.CodeOf(err) != document.NamespaceNotFound {
		t.Errorf("%d indexes, %v", len(list), err)
	}
	for bad, want := range map[string]document.Code{
		`{"key": {"a": 1}, "name": "a_1"}`: 68, `{"key": {"a": 1}, "name": "other"}`: 85, `{"key": {"b": 1}, "name": "a_1"}`: 86,
	} {
		if _, err := c.CreateIndexes(ctx, specs(t, `{"key": {"a": 1}, "name": "a_1"}`, bad), nil); document.CodeOf(err) != want {
			t.Errorf("%s: %v", bad, err)
		}
		if _, err := c.Indexes(ctx); document.CodeOf(err) != document.NamespaceNotFound {
			t.Errorf("%s made the collection: %v", bad, err)
		}
	}
	const good = `{"key": {"a": 1}, "name": "a_1"}`
	_, err := c.CreateIndexes(ctx, specs(t, good), nil)
	must(t, err)
	_, err = c.CreateIndexes(ctx, specs(t, good, good), nil) // there is nothing to make
	must(t, err)
	if list, err := c.Indexes(ctx); len(list) != 2 || err != nil {
		t.Errorf("%d indexes, %v", len(list), err)
	}
}

// TestIndexesOfATransaction: what is there already is not made again, and what is in the way refused, as elsewhere.
func TestIndexesOfATransaction(t *testing.T) {
	s := open(t, memfs.New())
	d := s.Database("test")
	tx, err := s.Begin(ctx)
	must(t, err)
	c := tx.In(d.Lookup("fresh"))
	const good = `{"key": {"a": 1}, "name": "a_1"}`
	for range 2 {
		_, err = c.CreateIndexes(ctx, specs(t, good, `{"key": {"_id": 1}, "name": "_id_"}`), nil)
		must(t, err)
	}
	if _, err := c.CreateIndexes(ctx, specs(t, `{"key": {"b": 1}, "name": "a_1"}`), nil); document.CodeOf(err) != 86 {
		t.Errorf("another index of the same name: %v", err)
	}
	must(t, tx.Commit(ctx))
	if list, err := d.Lookup("fresh").Indexes(ctx); len(list) != 2 || err != nil {
		t.Errorf("%d indexes, %v", len(list), err)
	}
}

// TestIndexesBehindWritesOfATransaction: a collection that the transaction has emptied again gets indexes, and the commit knows of them.
func TestIndexesBehindWritesOfATransaction(t *testing.T) {
	s := open(t, memfs.New())
	tx, err := s.Begin(ctx)
	must(t, err)
	c := tx.In(s.Database("test").Lookup("fresh"))
	_, err = c.Insert(ctx, document.JSON(`{"_id": 1, "a": 1}`))
	must(t, err)
	_, err = c.Delete(ctx, document.JSON(`{"_id": 1}`), nil)
	must(t, err)
	_, err = c.CreateIndexes(ctx, specs(t, `{"key": {"a": 1}, "name": "a_1"}`), nil)
	must(t, err)
	_, err = c.Insert(ctx, document.JSON(`{"_id": 2, "a": 2}`))
	must(t, err)
	must(t, tx.Commit(ctx))
	v, err := s.Database("test").Lookup("fresh").Validate(ctx)
	if err != nil || v.Indexes[0].Entries != 1 || v.Indexes[0].Missing > 0 {
		t.Errorf("%+v, %v; want an entry for the document that is there", v, err)
	}
}

// TestChangesOfIndexes: what cannot be changed is refused, and not taken for done.
func TestChangesOfIndexes(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.CreateIndexes(ctx, specs(t, `{"key": {"a": 1}, "name": "a_1"}`, `{"key": {"h": "hashed"}, "name": "h"}`, `{"key": {"w.$**": 1}, "name": "w"}`), nil)
	must(t, err)
	for change, want := range map[string]document.Code{
		`{"name": "a_1", "unique": true}`: 72, `{"name": "a_1", "unique": false}`: 2, `{"name": "a_1", "prepareUnique": "yes"}`: 14, `{"name": "a_1"}`: 72,
		`{"name": "h", "prepareUnique": true}`: 67, `{"name": "w", "prepareUnique": true}`: 67, `{"name": "_id_", "unique": true}`: 0, `{"name": "a_1", "sparse": true}`: 40415,
		`{"name": "a_1", "expireAfterSeconds": -5}`: 72, `{"name": "a_1", "expireAfterSeconds": "5"}`: 14, `{"name": "_id_", "hidden": true}`: 2, `{"keyPattern": {"_id": 1}, "hidden": true}`: 2,
		`{"name": "b_1", "hidden": true}`: 27, `{"hidden": true}`: 72, `{"name": "a_1", "hidden": true, "expireAfterSeconds": 5}`: 0,
		`{"name": "a_1", "expireAfterSeconds": {"$numberDecimal": "5"}}`: 0, `{"name": "a_1", "expireAfterSeconds": {"$numberDecimal": "-5"}}`: 72,
		`{"name": "a_1", "expireAfterSeconds": {"$numberDouble": "Infinity"}}`: 67, `{"name": "a_1", "expireAfterSeconds": {"$numberDouble": "-Infinity"}}`: 72,
		`{"name": "a_1", "expireAfterSeconds": {"$numberDouble": "NaN"}}`: 0, // as good as never, as in an index that is new
	} {
		if err := c.Modify(ctx, document.JSON(`{"index": `+change+`}`)); document.CodeOf(err) != want {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// TestTooManyIndexesOfOneCall makes none of them, and nothing was begun.
func TestTooManyIndexesOfOneCall(t *testing.T) {
	db := openDB(t)
	s, err := document.New(db)
	must(t, err)
	defer func() { must(t, s.Close()) }()
	c := collection(t, s, "c", nil)
	list := make([]string, 64)
	for i := range list {
		list[i] = fmt.Sprintf(`{"key": {"f%d": 1}, "name": "f%d"}`, i, i)
	}
	last := db.LastSeq()
	if _, err := c.CreateIndexes(ctx, specs(t, list...), nil); document.CodeOf(err) != 67 {
		t.Errorf("64 indexes beside that of _id: %v", err)
	}
	if now := db.LastSeq(); now != last {
		t.Errorf("the call that was refused wrote changes %d to %d", last+1, now)
	}
	names, err := c.CreateIndexes(ctx, specs(t, list[:63]...), nil)
	if must(t, err); len(names) != 63 {
		t.Errorf("there are %d names of 63 indexes", len(names))
	}
}
