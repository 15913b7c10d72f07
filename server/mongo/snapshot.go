package mongo

import (
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/internal/clock"
)

// snapshots is the moments that clients read at again and again: a session with snapshot reads names the cluster time of its
// first read in those that follow.
type snapshots struct {
	mu     sync.Mutex
	byTime map[bson.Timestamp]*keptSnapshot
	newest *keptSnapshot // nil: it is gone
}

// keptSnapshot is a moment that is kept for some minutes after its last use.
type keptSnapshot struct {
	snap *document.Snapshot
	time bson.Timestamp
	used time.Time
	uses int // commands and cursors that read from it
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
	t := &r.server.snapshots
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, err := r.keptSnapshot()
	if err != nil {
		return nil, err
	}
	r.at, r.atTime = kept.snap, kept.time
	return t.use(kept, r.server.clock), nil
}

// holdSnapshot keeps the moment at which the command reads, if there is one, for a cursor that goes on reading there. What it returns gives
// it back.
func (r *request) holdSnapshot() func() {
	if r.at == nil {
		return func() {}
	}
	t := &r.server.snapshots
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.use(t.byTime[r.atTime], r.server.clock) // which is there, as the command uses it
}

// use notes that somebody reads from a moment, until what it returns is called. The table is locked.
func (t *snapshots) use(kept *keptSnapshot, c clock.Clock) func() {
	kept.uses++
	return func() {
		t.mu.Lock()
		kept.uses--
		kept.used = c.Now()
		t.mu.Unlock()
	}
}

// keptSnapshot returns the moment that the command names, or the present one, which is shared until something changes: else clients that only
// read would use up all that may be kept. The table is locked.
func (r *request) keptSnapshot() (*keptSnapshot, error) {
	t := &r.server.snapshots
	if seconds, counter, ok := r.readConcern.Lookup("atClusterTime").TimestampOK(); ok {
		at := bson.Timestamp{T: seconds, I: counter}
		if kept := t.byTime[at]; kept != nil {
			return kept, nil
		}
		return nil, document.NewError(codeSnapshotTooOld, "Read timestamp %v is older than the oldest available timestamp.", at)
	}
	if t.newest != nil && t.newest.snap.Newest() {
		return t.newest, nil
	}
	if len(t.byTime) >= maxSnapshots {
		if err := t.evict(); err != nil {
			return nil, err
		}
	}
	snap, err := r.server.store.Snapshot(r.ctx)
	if err != nil {
		return nil, err
	}
	if t.byTime == nil {
		t.byTime = map[bson.Timestamp]*keptSnapshot{}
	}
	t.newest = &keptSnapshot{snap: snap, time: r.server.store.Tick()}
	t.byTime[t.newest.time] = t.newest
	return t.newest, nil
}

// evict gives up the moment that was not used for longest. The table is locked.
func (t *snapshots) evict() error {
	var oldest *keptSnapshot
	for _, kept := range t.byTime {
		if kept.uses == 0 && (oldest == nil || kept.used.Before(oldest.used)) {
			oldest = kept
		}
	}
	if oldest == nil {
		return document.NewError(document.Code(246), "too many snapshots are being read from: %d", len(t.byTime))
	}
	return t.forget(oldest).Close()
}

// forget takes a moment out of the table, which is locked, and returns what is to be closed.
func (t *snapshots) forget(kept *keptSnapshot) *document.Snapshot {
	delete(t.byTime, kept.time)
	if t.newest == kept {
		t.newest = nil
	}
	return kept.snap
}

// expire gives up moments that nobody has used for some time; all of them when the server closes.
func (t *snapshots) expire(now time.Time, all bool) []*document.Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	var gone []*document.Snapshot
	for _, kept := range t.byTime {
		if all || kept.uses == 0 && now.Sub(kept.used) > snapshotWindow {
			gone = append(gone, t.forget(kept))
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
