package mongo

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// maxUsed is how many collections the server keeps the usage of, none of which has a name that no collection can have: names cost a client
// nothing.
const maxUsed = 10_000

// usage is how much one collection has been used.
type usage struct{ read, write, query, getmore, insert, update, remove, command tally }

// tally counts commands and the time that they took.
type tally struct {
	count int64
	total time.Duration
}

func (t *tally) add(took time.Duration) {
	t.count++
	t.total += took
}

func (t tally) document() bson.D {
	return bson.D{{Key: "time", Value: t.total.Microseconds()}, {Key: "count", Value: t.count}}
}

// use takes in a command that has ended. The statistics are locked.
func (t *statistics) use(r *request, failed bool, took time.Duration) {
	if t.byCollection == nil {
		t.byCollection = map[string]*usage{}
	}
	var buffer [128]byte // so that a look-up allocates nothing
	name := r.appendNamespace(buffer[:0])
	switch {
	case r.command.name == "dropDatabase" && !failed:
		maps.DeleteFunc(t.byCollection, func(name string, _ *usage) bool { return strings.HasPrefix(name, r.db+".") })
		return
	case r.command.name == "drop" && !failed:
		delete(t.byCollection, string(name))
		return
	case bytes.HasSuffix(name, []byte("."+noCollection)):
		return
	}
	u := t.byCollection[string(name)]
	if u == nil {
		if failed || len(t.byCollection) == maxUsed || len(name) > document.MaxNamespaceBytes || bytes.IndexByte(name, 0) >= 0 { // no field of an answer has such a name
			return
		}
		u = new(usage)
		t.byCollection[string(name)] = u
	}
	u.add(r.command.name, r.kind(), took)
}

func (u *usage) add(command, kind string, took time.Duration) {
	switch command {
	case "find", "getMore", "aggregate", "count", "distinct", "explain", "listIndexes", "collStats", "dataSize", "validate":
		u.read.add(took)
	default:
		u.write.add(took)
	}
	switch kind {
	case "query":
		u.query.add(took)
	case "getmore":
		u.getmore.add(took)
	case "insert":
		u.insert.add(took)
	case "update":
		u.update.add(took)
	case "remove":
		u.remove.add(took)
	default:
		u.command.add(took)
	}
}

// top tells how much each collection has been used since the server was started.
func (r *request) top() (bsoncore.Document, error) {
	t := &r.server.stats
	t.mu.Lock()
	defer t.mu.Unlock()
	totals := bson.D{{Key: "note", Value: "all times in microseconds"}}
	for _, name := range slices.Sorted(maps.Keys(t.byCollection)) {
		u := t.byCollection[name]
		total := tally{u.read.count + u.write.count, u.read.total + u.write.total}
		totals = append(totals, bson.E{Key: name, Value: bson.D{
			{Key: "total", Value: total.document()}, {Key: "readLock", Value: u.read.document()}, {Key: "writeLock", Value: u.write.document()},
			{Key: "queries", Value: u.query.document()}, {Key: "getmore", Value: u.getmore.document()}, {Key: "insert", Value: u.insert.document()},
			{Key: "update", Value: u.update.document()}, {Key: "remove", Value: u.remove.document()}, {Key: "commands", Value: u.command.document()},
		}})
	}
	return encode(bson.D{{Key: "totals", Value: totals}, {Key: "ok", Value: 1.0}})
}

// latencies is what $collStats tells of a collection's commands since the server was started: how many there were, and the microseconds
// that they took.
func (t *statistics) latencies(namespace string) bson.D {
	t.mu.Lock()
	defer t.mu.Unlock()
	var u usage
	if known := t.byCollection[namespace]; known != nil {
		u = *known
	}
	return u.latencies()
}

func (u *usage) latencies() bson.D {
	latency := func(x tally) bson.D {
		return bson.D{{Key: "latency", Value: x.total.Microseconds()}, {Key: "ops", Value: x.count}}
	}
	writes := tally{u.insert.count + u.update.count + u.remove.count, u.insert.total + u.update.total + u.remove.total}
	commands := tally{u.write.count - writes.count, u.write.total - writes.total}
	return bson.D{
		{Key: "reads", Value: latency(u.read)}, {Key: "writes", Value: latency(writes)}, {Key: "commands", Value: latency(commands)},
		{Key: "transactions", Value: latency(tally{})},
	}
}
