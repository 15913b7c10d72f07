package main

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/reeflective/readline"

	"github.com/pandodb/pando/document"
)

// TestCompletion: what the Tab key offers behind the beginnings of statements.
func TestCompletion(t *testing.T) {
	store, err := document.Open(filepath.Join(t.TempDir(), "db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, name := range []string{"flights", "airlines"} {
		if _, err := store.Database("test").Lookup(name).Insert(t.Context(), document.JSON(`{"carrier": "UA", "dep_delay": 2}`)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Database("test").Lookup("flights").Insert(t.Context(), document.JSON(`{"dep\u001b]0;": 1}`)); err != nil {
		t.Fatal(err)
	}
	s := &session{store: store, database: "test"}
	for _, c := range []struct{ line, prefix, has, hasNot string }{
		{"", "", "show", "$match"},
		{"sh", "sh", "show", "use"},
		{"show ", "", "collections", "show"},
		{"use te", "te", "test", "collections"},
		{"db.", "", "flights", "find("},
		{"db.fl", "fl", "flights", "airlines"},
		{"db.flights.fi", "fi", "find(", "aggregate("},
		{"db.flights.find({dep", "dep", "dep_delay", "carrier"},
		{"db.flights.find({dep", "dep", "dep_delay", "dep\x1b]0;"},
		{"db.flights.find({dep_delay: {$g", "$g", "$gte", "$lt"},
		{"db.flights.aggregate([{$group: {_id: '$", "$", "$group", "carrier"},
		{"db.flights.find({}).so", "so", "sort(", "skip("},
	} {
		prefix, list := s.complete(t.Context(), c.line)
		if prefix != c.prefix || !slices.Contains(list, c.has) || slices.Contains(list, c.hasNot) {
			t.Errorf("complete(%q) = %q, %q", c.line, prefix, list)
		}
	}
	// The line editor replaces all up to the last space.
	c := s.offer(t.Context(), "db.flights.find({dep")
	var values []string
	c.EachValue(func(v readline.Completion) readline.Completion {
		values = append(values, v.Value)
		return v
	})
	if c.PREFIX != "db.flights.find({dep" || !slices.Equal(values, []string{"db.flights.find({dep_delay"}) {
		t.Errorf("offered %q for %q", values, c.PREFIX)
	}
}

// TestCompletionOfACostlyView: the line editor reads no keys before it has what to offer, so that nobody could end the search for the fields of
// a view that takes for ever.
func TestCompletionOfACostlyView(t *testing.T) {
	t.Parallel() // it waits
	store, err := document.Open(filepath.Join(t.TempDir(), "db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Database("test").Lookup("c").Insert(t.Context(), document.JSON(`{"a": 1}`)); err != nil {
		t.Fatal(err)
	}
	view := `{"viewOn": "c", "pipeline": [{"$set": {"r": {"$range": [0, 10000]}, "s": {"$range": [0, 10000]}, "t": {"$range": [0, 10000]}}},
		{"$unwind": "$r"}, {"$unwind": "$s"}, {"$unwind": "$t"}, {"$match": {"$expr": {"$lt": [{"$add": ["$r", "$s", "$t"]}, 0]}}}]}`
	if err := store.Database("test").Create(t.Context(), "v", document.JSON(view)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, offered := &session{store: store, database: "test"}, make(chan []string, 1)
	go func() {
		_, list := s.complete(ctx, "db.v.find({$g")
		offered <- list
	}()
	select {
	case list := <-offered:
		if !slices.Contains(list, "$gte") {
			t.Errorf("offered: %q", list)
		}
	case <-time.After(20 * time.Second):
		t.Error("it goes on")
		cancel()
		<-offered
	}
}
