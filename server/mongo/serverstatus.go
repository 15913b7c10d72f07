package mongo

import (
	"math"
	"runtime"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/internal/offheap"
)

func (r *request) serverStatus() (bsoncore.Document, error) {
	s, m := r.server, r.server.store.DB().Metrics()
	stats := s.Statistics()
	up := s.clock.Now().Sub(s.started)
	var commands bson.D
	counters := map[string]int64{}
	for _, c := range stats.Commands {
		commands = append(commands, bson.E{Key: c.Name, Value: bson.D{{Key: "failed", Value: c.Failed}, {Key: "total", Value: c.Count}}})
		counters[c.Name] = c.Count
	}
	total := int64(0)
	for _, n := range counters {
		total += n
	}
	running, latencies := s.running(), s.stats.allLatencies()
	resident, virtual := memoryInUse()
	noTimeout, pinned := s.cursors.kinds()
	active := running[0].Value // each command has a connection
	d := bson.D{
		{Key: "host", Value: s.o.Address}, {Key: "version", Value: serverVersion}, {Key: "process", Value: "pando"}, {Key: "pid", Value: int64(0)},
		{Key: "uptime", Value: math.Floor(up.Seconds())}, {Key: "uptimeMillis", Value: up.Milliseconds()}, {Key: "uptimeEstimate", Value: int64(up.Seconds())},
		{Key: "localTime", Value: s.clock.Now()},
		{Key: "asserts", Value: bson.D{{Key: "regular", Value: 0}, {Key: "warning", Value: 0}, {Key: "msg", Value: 0}, {Key: "user", Value: 0}}},
		{Key: "connections", Value: bson.D{{Key: "current", Value: int32(stats.Connections)}, {Key: "available", Value: int32(1 << 20)}, {Key: "totalCreated", Value: stats.ConnectionsMade}, {Key: "active", Value: active}}},
		{Key: "logicalSessionRecordCache", Value: bson.D{{Key: "activeSessionsCount", Value: int32(stats.Sessions)}}},
		{Key: "network", Value: bson.D{{Key: "bytesIn", Value: stats.BytesIn}, {Key: "bytesOut", Value: stats.BytesOut}, {Key: "numRequests", Value: total}}},
		{Key: "globalLock", Value: bson.D{
			{Key: "totalTime", Value: up.Microseconds()},
			{Key: "currentQueue", Value: readersAndWriters(0, 0)}, // nothing waits for a lock
			{Key: "activeClients", Value: running},
		}},
		{Key: "opLatencies", Value: latencies},
		{Key: "opcounters", Value: s.stats.opcounters(counters)},
		{Key: "storageEngine", Value: bson.D{{Key: "name", Value: "pando"}, {Key: "supportsCommittedReads", Value: true}, {Key: "persistent", Value: true}, {Key: "readOnly", Value: false}}},
		{Key: "mem", Value: bson.D{{Key: "bits", Value: int32(64)}, {Key: "resident", Value: int32(resident >> 20)}, {Key: "virtual", Value: int32(virtual >> 20)}, {Key: "supported", Value: true}}},
		{Key: "metrics", Value: bson.D{
			{Key: "commands", Value: commands},
			{Key: "cursor", Value: bson.D{{Key: "timedOut", Value: stats.CursorsTimedOut}, {Key: "totalOpened", Value: stats.CursorsOpened}, {Key: "open", Value: bson.D{{Key: "total", Value: int64(stats.Cursors)}, {Key: "noTimeout", Value: noTimeout}, {Key: "pinned", Value: pinned}}}}},
		}},
		{Key: "pando", Value: bson.D{
			{Key: "commits", Value: m.Commits}, {Key: "syncs", Value: m.Syncs}, {Key: "checkpoints", Value: m.Checkpoints}, {Key: "stalls", Value: m.Stalls},
			{Key: "segmentBytes", Value: m.SegmentBytes}, {Key: "liveBytes", Value: m.LiveBytes}, {Key: "logBytes", Value: m.LogSize},
			{Key: "cacheBytes", Value: m.CacheBytes}, {Key: "cacheUsed", Value: m.CacheUsed}, {Key: "writeAmplification", Value: m.WriteAmplification},
		}},
	}
	if !s.o.Standalone {
		d = append(d, bson.E{Key: "transactions", Value: stats.transactions()}, bson.E{Key: "repl", Value: bson.D{
			{Key: "setName", Value: s.o.SetName}, {Key: "isWritablePrimary", Value: true}, {Key: "secondary", Value: false},
			{Key: "hosts", Value: bson.A{s.o.Address}}, {Key: "me", Value: s.o.Address}, {Key: "primary", Value: s.o.Address}, {Key: "electionId", Value: s.electionID()},
		}})
	}
	return encode(append(d, bson.E{Key: "ok", Value: 1.0}))
}

// opcounters are what MongoDB counts: statements of writes rather than their commands, and as commands what is counted nowhere else.
func (t *statistics) opcounters(commands map[string]int64) bson.D {
	t.mu.Lock()
	defer t.mu.Unlock()
	others := int64(0)
	for name, n := range commands {
		switch name {
		case "insert", "find", "update", "delete", "getMore", "unknown":
		default:
			others += n
		}
	}
	return bson.D{
		{Key: "insert", Value: t.statements["insert"]}, {Key: "query", Value: commands["find"]}, {Key: "update", Value: t.statements["update"]},
		{Key: "delete", Value: t.statements["delete"]}, {Key: "getmore", Value: commands["getMore"]}, {Key: "command", Value: others},
	}
}

// transactions is what serverStatus tells of them.
func (s *Statistics) transactions() bson.D {
	active := min(s.TransactionsActive, s.Transactions) // one that ends is no longer open, while the command that ends it runs
	return bson.D{
		{Key: "currentActive", Value: active}, {Key: "currentInactive", Value: s.Transactions - active}, {Key: "currentOpen", Value: s.Transactions},
		{Key: "totalAborted", Value: s.TransactionsAborted}, {Key: "totalCommitted", Value: s.TransactionsCommitted}, {Key: "totalStarted", Value: s.TransactionsStarted},
	}
}

// allLatencies is how many commands there were, and the microseconds that they took.
func (t *statistics) allLatencies() bson.D {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all.latencies()
}

// running counts the commands that run, as MongoDB counts those with a lock.
func (s *Server) running() bson.D {
	readers, writers := int32(0), int32(0)
	s.ops.mu.Lock()
	defer s.ops.mu.Unlock()
	for _, op := range s.ops.byID {
		if op.request.command != nil && op.request.command.write {
			writers++
		} else {
			readers++
		}
	}
	return readersAndWriters(readers, writers)
}

func readersAndWriters(readers, writers int32) bson.D {
	return bson.D{{Key: "total", Value: readers + writers}, {Key: "readers", Value: readers}, {Key: "writers", Value: writers}}
}

// memoryInUse returns how much memory the process has, and how many addresses. Where the system does not tell, it is what the Go runtime
// has of the system, without what lies outside of its heap.
func memoryInUse() (resident, virtual int64) {
	if resident, virtual = offheap.Usage(); resident > 0 {
		return resident, virtual
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased), int64(m.Sys)
}
