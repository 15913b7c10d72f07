package mongo

import (
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// snapshots is the moments that clients read at again and again: a session with snapshot reads names the cluster time of its
// first read in those that follow.
type snapshots struct {
	mu     sync.Mutex
	byTime map[bson.Timestamp]*keptSnapshot
}

// keptSnapshot is a moment that is kept for some minutes after its last use.
type keptSnapshot struct {
	snap *document.Snapshot
	used time.Time
	uses int // commands that read from it
}

const (
	snapshotWindow = 5 * time.Minute // as MongoDB keeps its history
	maxSnapshots   = 1000
)

// useSnapshot finds the moment at which the command reads, if its read concern asks for one. What it returns gives it back.
func (r *request) useSnapshot() (func(), error) {
	if r.readConcern == nil { // of most: to look for something in vain costs an error
		return func() {}, nil
	}
	level, _ := r.readConcern.Lookup("level").StringValueOK()
	if level != "snapshot" || r.has("autocommit") {
		return func() {}, nil
	}
	switch r.command.name {
	case "find", "aggregate", "distinct", "getMore":
	default:
		return nil, document.NewError(codeInvalidOptions, "Command %s does not support { readConcern: { level: \"snapshot\", provenance: \"clientSupplied\" } } :: caused by :: read concern not supported", r.name)
	}
	t := &r.server.snapshots
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, err := r.keptSnapshot()
	if err != nil {
		return nil, err
	}
	kept.uses++
	r.at = kept.snap
	return func() {
		t.mu.Lock()
		kept.uses--
		kept.used = r.server.clock.Now()
		t.mu.Unlock()
	}, nil
}

// keptSnapshot returns the moment that the command names, or the present one. The table is locked.
func (r *request) keptSnapshot() (*keptSnapshot, error) {
	t := &r.server.snapshots
	if seconds, counter, ok := r.readConcern.Lookup("atClusterTime").TimestampOK(); ok {
		r.atTime = bson.Timestamp{T: seconds, I: counter}
		if kept := t.byTime[r.atTime]; kept != nil {
			return kept, nil
		}
		return nil, document.NewError(document.Code(239), "Read timestamp %v is older than the oldest available timestamp.", r.atTime)
	}
	if len(t.byTime) >= maxSnapshots {
		return nil, document.NewError(document.Code(246), "too many snapshots are being read from: %d", len(t.byTime))
	}
	snap, err := r.server.store.Snapshot(r.ctx)
	if err != nil {
		return nil, err
	}
	r.atTime = r.server.store.Tick()
	if t.byTime == nil {
		t.byTime = map[bson.Timestamp]*keptSnapshot{}
	}
	kept := &keptSnapshot{snap: snap}
	t.byTime[r.atTime] = kept
	return kept, nil
}

// expire gives up moments that nobody has used for some time; all of them when the server closes.
func (t *snapshots) expire(now time.Time, all bool) []*document.Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	var gone []*document.Snapshot
	for at, kept := range t.byTime {
		if all || kept.uses == 0 && now.Sub(kept.used) > snapshotWindow {
			delete(t.byTime, at)
			gone = append(gone, kept.snap)
		}
	}
	return gone
}

// endSnapshots closes moments that are not needed any more.
func (s *Server) endSnapshots(all bool) {
	for _, snap := range s.snapshots.expire(s.clock.Now(), all) {
		if err := snap.Close(); err != nil {
			s.log.Error("snapshot could not be closed", "error", err)
		}
	}
}

// appendAtClusterTime tells the client at which moment it has read.
func (r *request) appendAtClusterTime(b *bsoncore.DocumentBuilder) {
	if r.at != nil {
		b.AppendTimestamp("atClusterTime", r.atTime.T, r.atTime.I)
	}
}
