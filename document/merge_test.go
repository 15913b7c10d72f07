package document_test

import (
	"fmt"
	"testing"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestMergeNeedsUniqueFields: what $merge is told to match by must be unique, and by the collation of the pipeline.
func TestMergeNeedsUniqueFields(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	insensitive := document.JSON(`{"locale": "en", "strength": 2}`)
	into := collection(t, s, "into", nil)
	collection(t, s, "insensitive", &document.CollectionOptions{Collation: insensitive})
	_, err := c.Insert(ctx, document.JSON(`{"_id": "a", "k": "x", "l": 2}`))
	must(t, err)
	for _, index := range []document.Index{
		{Keys: document.JSON(`{"k": 1}`), Unique: true}, {Keys: document.JSON(`{"l": 1}`)}, {Keys: document.JSON(`{"k.x": 1}`), Unique: true},
		{Keys: document.JSON(`{"k": 1, "l": -1}`), Unique: true, Collation: insensitive},
		{Keys: document.JSON(`{"m": 1}`), Unique: true, Partial: document.JSON(`{"m": {"$gt": 1}}`)},
	} {
		_, err := into.CreateIndex(ctx, index)
		must(t, err)
	}
	for _, test := range []struct {
		stage    string
		collated bool
		fails    bool
	}{
		{`{"into": "into"}`, true, false},
		{`{"into": "into", "on": "_id"}`, false, false},
		{`{"into": "into", "on": "_id"}`, true, true},
		{`{"into": "insensitive", "on": "_id"}`, false, true},
		{`{"into": "insensitive", "on": "_id"}`, true, false},
		{`{"into": "none", "on": "_id"}`, true, false},
		{`{"into": "none2", "on": "k"}`, false, true},
		{`{"into": "into", "on": "k"}`, false, false},
		{`{"into": "into", "on": "k"}`, true, true},
		{`{"into": "into", "on": "l"}`, false, true},
		{`{"into": "into", "on": ["l", "k"]}`, false, true},
		{`{"into": "into", "on": ["l", "k"]}`, true, false},
		{`{"into": "into", "on": "m"}`, false, true},
	} {
		o := &document.AggregateOptions{}
		if test.collated {
			o.Collation = insensitive
		}
		var failed error
		for _, err := range c.Aggregate(ctx, document.JSON(fmt.Sprintf(`[{"$match": {}}, {"$merge": %s}]`, test.stage)), o) {
			failed = err
		}
		if is := document.CodeOf(failed) == 51183; is != test.fails || failed != nil && !is {
			t.Errorf("%s, collated %t: %v", test.stage, test.collated, failed)
		}
	}
}

// TestMergeByOtherFields: a document without _id goes into the one that has its key, which keeps its _id.
func TestMergeByOtherFields(t *testing.T) {
	for _, test := range []struct{ stage, want string }{
		{`"whenMatched": "replace"`, `{"_id":1,"k":"a","n":5}`},
		{`"whenMatched": "merge"`, `{"_id":1,"k":"a","n":5,"old":true}`},
		{`"whenMatched": "keepExisting"`, `{"_id":1,"k":"a","n":1,"old":true}`},
		{`"whenMatched": [{"$set": {"n": {"$add": ["$n", "$$new.n"]}}}]`, `{"_id":1,"k":"a","n":6,"old":true}`},
		{`"let": {"by": 10}, "whenMatched": [{"$set": {"n": {"$add": ["$$by", "$$new.n"]}}}]`, `{"_id":1,"k":"a","n":15,"old":true}`},
		{`"let": {"new": "$$ROOT"}, "whenMatched": [{"$set": {"n": "$$new.n"}}]`, `{"_id":1,"k":"a","n":5,"old":true}`},
	} {
		s := open(t, memfs.New())
		from, into := collection(t, s, "from", nil), collection(t, s, "into", nil)
		_, err := into.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"k": 1}`), Unique: true})
		must(t, err)
		_, err = into.Insert(ctx, document.JSON(`{"_id": 1, "k": "a", "n": 1, "old": true}`))
		must(t, err)
		_, err = from.InsertMany(ctx, []any{document.JSON(`{"_id": 7, "k": "a", "n": 5}`), document.JSON(`{"_id": 8, "k": "b", "n": 2}`)}, nil)
		must(t, err)
		for _, err := range from.Aggregate(ctx, document.JSON(`[{"$unset": "_id"}, {"$merge": {"into": "into", "on": "k", `+test.stage+`}}]`), nil) {
			must(t, err)
		}
		expect(t, test.stage, find(t, into, `{"k": "a"}`, nil), test.want+"\n")
		if n, err := into.Count(ctx, document.JSON(`{"k": "b", "_id": {"$type": "objectId"}}`), nil); n != 1 || err != nil {
			t.Errorf("%s: %d documents with an _id of their own, %v", test.stage, n, err)
		}
	}
}

// TestMergeGoesOn: documents that cannot be merged are told of, and the others are merged all the same.
func TestMergeGoesOn(t *testing.T) {
	for _, test := range []struct {
		stage string
		code  document.Code
		want  string
	}{
		{`"whenMatched": "fail"`, document.DuplicateKey, `{"_id":1,"n":1}` + "\n" + `{"_id":2}` + "\n" + `{"_id":3,"n":3}` + "\n"},
		{`"whenNotMatched": "fail"`, 13113, `{"_id":2,"n":2}` + "\n"},
	} {
		s := open(t, memfs.New())
		from, into := collection(t, s, "from", nil), collection(t, s, "into", nil)
		_, err := into.Insert(ctx, document.JSON(`{"_id": 2}`))
		must(t, err)
		_, err = from.InsertMany(ctx, []any{document.JSON(`{"_id": 1, "n": 1}`), document.JSON(`{"_id": 2, "n": 2}`), document.JSON(`{"_id": 3, "n": 3}`)}, nil)
		must(t, err)
		var failed error
		for _, failed = range from.Aggregate(ctx, document.JSON(`[{"$sort": {"_id": 1}}, {"$merge": {"into": "into", `+test.stage+`}}]`), nil) {
		}
		if document.CodeOf(failed) != test.code {
			t.Errorf("%s: %v, want code %d", test.stage, failed, test.code)
		}
		expect(t, test.stage, find(t, into, `{}`, &document.FindOptions{Sort: document.JSON(`{"_id": 1}`)}), test.want)
	}
}

// TestMergeRefuses: what $merge and $out cannot do, and the codes that say so.
func TestMergeRefuses(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1}`))
	must(t, err)
	for stage, code := range map[string]document.Code{
		`{"$merge": {"into": "x", "let": {"new": "$_id"}, "whenMatched": [{"$set": {"a": "$$new"}}]}}`: 51273,
		`{"$merge": {"into": {"db": "admin", "coll": "x"}}}`:                                           31320,
		`{"$merge": {"into": "$x", "whenNotMatched": "discard"}}`:                                      73,
		`{"$merge": "system.x"}`:                 31319,
		`{"$out": {"db": "local", "coll": "x"}}`: 31321,
		`{"$out": "system.x"}`:                   17385,
	} {
		var failed error
		for _, failed = range c.Aggregate(ctx, document.JSON(`[`+stage+`]`), nil) {
		}
		if document.CodeOf(failed) != code {
			t.Errorf("%s: %v, want code %d", stage, failed, code)
		}
	}
	for _, failed := range c.Aggregate(ctx, document.JSON(`[{"$set": {"_id": [1]}}, {"$merge": "x"}]`), nil) {
		if document.CodeOf(failed) != 51185 {
			t.Errorf("an array to match by: %v", failed)
		}
	}
}

// TestMergeWithoutAValueForAVariable: a variable of a field that is not there is not there either, which is an error only where it is
// asked for.
func TestMergeWithoutAValueForAVariable(t *testing.T) {
	s := open(t, memfs.New())
	c, into := collection(t, s, "c", nil), collection(t, s, "into", nil)
	_, err := c.Insert(ctx, document.JSON(`{"_id": 1, "a": 2}`))
	must(t, err)
	_, err = into.Insert(ctx, document.JSON(`{"_id": 1}`))
	must(t, err)
	merge := func(value string) (failed error) {
		stage := `[{"$merge": {"into": "into", "let": {"v": "$none"}, "whenMatched": [{"$set": {"b": "` + value + `"}}]}}]`
		for _, failed = range c.Aggregate(ctx, document.JSON(stage), nil) {
		}
		return failed
	}
	must(t, merge("literal"))
	if err := merge("$$v"); document.CodeOf(err) != 17276 {
		t.Errorf("a variable without a value: %v", err)
	}
}

// TestMergePastTheValidator: $merge and $out heed a validator, unless told not to.
func TestMergePastTheValidator(t *testing.T) {
	for _, stage := range []string{`{"$merge": "strict"}`, `{"$merge": {"into": "strict", "whenMatched": "fail"}}`, `{"$out": "strict"}`} {
		s := open(t, memfs.New())
		c := collection(t, s, "c", nil)
		strict := collection(t, s, "strict", &document.CollectionOptions{Validator: document.JSON(`{"a": {"$type": "int"}}`)})
		_, err := c.Insert(ctx, document.JSON(`{"_id": 1, "a": "no"}`))
		must(t, err)
		for _, skip := range []bool{false, true} {
			var failed error
			for _, failed = range c.Aggregate(ctx, document.JSON(`[`+stage+`]`), &document.AggregateOptions{SkipValidation: skip}) {
			}
			n, err := strict.Count(ctx, document.JSON(`{}`), nil)
			must(t, err)
			if skip && (failed != nil || n != 1) || !skip && (document.CodeOf(failed) != 121 || n != 0) {
				t.Errorf("%s, without the validator %t: %d documents, %v", stage, skip, n, failed)
			}
		}
	}
}
