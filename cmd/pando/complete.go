package main

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/internal/clock"
)

// fieldSample is how many documents are looked at for the names of fields.
const fieldSample = 50

// fieldTime is how long they are looked for. The line editor waits, and reads no keys meanwhile, Ctrl-C among them; and a view may take for ever.
const fieldTime = time.Second

// What the shell completes besides what there is in the database.
var (
	shellCommands   = []string{"db", "exit", "help", "it", "quit", "show", "use"}
	databaseMethods = []string{"aggregate(", "createCollection(", "dropDatabase()", "getCollection(", "getCollectionNames()", "getName()"}
	cursorMethods   = []string{"collation(", "count()", "explain(", "hint(", "limit(", "max(", "min(", "pretty()", "skip(", "sort(", "toArray()"}
	operators       = []string{
		"$addFields", "$addToSet", "$all", "$and", "$avg", "$bucket", "$count", "$currentDate", "$elemMatch", "$eq", "$exists", "$expr", "$facet",
		"$first", "$graphLookup", "$group", "$gt", "$gte", "$in", "$inc", "$jsonSchema", "$last", "$limit", "$lookup", "$lt", "$lte", "$match", "$max",
		"$merge", "$min", "$mod", "$mul", "$ne", "$nin", "$nor", "$not", "$options", "$or", "$out", "$pop", "$project", "$pull", "$push", "$regex",
		"$rename", "$replaceWith", "$round", "$sample", "$set", "$setOnInsert", "$setWindowFields", "$size", "$skip", "$sort", "$sortByCount", "$sum",
		"$type", "$unionWith", "$unset", "$unwind",
	}
	onCollectionText = regexp.MustCompile(`^\s*db\.([\w$.-]+?)\.\w+\(`)
)

// complete returns the word that a line ends with, and what it may become.
func (s *session) complete(ctx context.Context, line string) (prefix string, list []string) {
	start := len(line)
	for start > 0 && (isWordByte(line[start-1])) {
		start--
	}
	before, word := line[:start], line[start:]
	for _, candidate := range s.candidates(ctx, before) {
		if strings.HasPrefix(candidate, word) && candidate == plain(candidate) {
			list = append(list, candidate)
		}
	}
	slices.Sort(list)
	return word, slices.Compact(list)
}

// isWordByte reports whether a byte belongs to a word that is completed.
func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || ('0' <= c && c <= '9') || ('a' <= c|0x20 && c|0x20 <= 'z')
}

// candidates returns what may follow a text. What cannot be read is not offered: completion has no way to fail.
func (s *session) candidates(ctx context.Context, before string) []string {
	text := strings.TrimSpace(before)
	if m := onCollectionText.FindStringSubmatch(before); m != nil {
		if strings.HasSuffix(text, ").") {
			return cursorMethods
		}
		return append(s.fields(ctx, m[1]), operators...)
	}
	switch text {
	case "":
		return shellCommands
	case "show":
		return []string{"collections", "dbs"}
	case "use":
		names, err := s.store.Databases(ctx)
		if err != nil {
			return nil
		}
		return names
	case "db.":
		names, err := s.collections(ctx)
		if err != nil {
			return databaseMethods
		}
		return append(names, databaseMethods...)
	}
	if strings.HasPrefix(text, "db.") && strings.HasSuffix(text, ".") {
		var names []string
		for name := range methods() {
			names = append(names, name+"(")
		}
		return names
	}
	return nil
}

// fields returns the names of fields in some documents of a collection: those that are found in time.
func (s *session) fields(ctx context.Context, collection string) []string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer clock.System().AfterFunc(fieldTime, cancel).Stop()
	seen := map[string]bool{}
	for doc, err := range s.open(collection).Find(ctx, nil, &document.FindOptions{Limit: fieldSample}) {
		if err != nil {
			break
		}
		elements, err := doc.Elements()
		if err != nil {
			break
		}
		for _, e := range elements {
			seen[e.Key()] = true
		}
	}
	return slices.Collect(maps.Keys(seen))
}
