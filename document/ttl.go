package document

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document/internal/index"
)

// ttl is how expired documents are looked for.
type ttl struct {
	mu       sync.Mutex
	interval time.Duration
	paused   bool
	again    context.CancelFunc // ends the wait that was begun with another interval
}

// startTTL looks for expired documents from time to time, as long as the store is open.
func (s *Store) startTTL() {
	if s.ttl.interval = s.options.TTLInterval; s.ttl.interval < 0 {
		return
	}
	s.beside.start(func() {
		for s.work.Err() == nil {
			ctx, interval := s.ttl.begin(s.work)
			if s.clock.Sleep(ctx, interval) != nil || s.ttl.isPaused() {
				continue
			}
			if _, err := s.DeleteExpired(s.work); err != nil && s.work.Err() == nil {
				s.log.Error("expired documents could not be deleted", "error", err)
			}
		}
	})
}

// begin begins a wait: as long as it returns, or until its context ends.
func (t *ttl) begin(work context.Context) (context.Context, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.again != nil {
		t.again()
	}
	ctx, cancel := context.WithCancel(work)
	t.again = cancel
	return ctx, t.interval
}

func (t *ttl) isPaused() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.paused
}

// SetTTL changes how often expired documents are looked for, and whether they are at all, until the store is closed. A store whose
// Options.TTLInterval is negative goes on looking for none.
func (s *Store) SetTTL(interval time.Duration, paused bool) {
	t := &s.ttl
	t.mu.Lock()
	defer t.mu.Unlock()
	t.interval, t.paused = max(interval, time.Millisecond), paused
	if t.again != nil {
		t.again()
	}
}

// DeleteExpired deletes the documents that have expired by now, as TTL indexes and time series say, and returns how many there were.
// It also runs by itself, every Options.TTLInterval, unless SetTTL says otherwise. A collection that fails keeps no other one.
func (s *Store) DeleteExpired(ctx context.Context) (int64, error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	now := s.clock.Now()
	var deleted int64
	var failed error
	for _, c := range s.current.Load().byName {
		if s := c.unread.stored.Load(); s != nil && !s.expires() {
			continue
		}
		n, err := c.deleteExpired(ctx, now)
		deleted += n
		if failed = errors.Join(failed, err); ctx.Err() != nil {
			break
		}
	}
	return deleted, failed
}

// deleteExpired deletes the documents of a collection that have expired.
func (c *collection) deleteExpired(ctx context.Context, now time.Time) (deleted int64, err error) {
	if err := c.open(); err != nil {
		return 0, err
	}
	if settings := c.settings.Load(); settings.expires >= 0 {
		field := "_id" // of a clustered collection
		if settings.series != nil {
			field = settings.series.timeField
		}
		deleted, err = c.deleteBefore(ctx, field, now, settings.expires, nil)
	}
	for _, x := range *c.indexes.Load() {
		if !x.ready || x.def.TTL < 0 || err != nil {
			continue
		}
		var n int64
		n, err = c.deleteBefore(ctx, x.def.Components[0].Path, now, x.def.TTL, x.def)
		deleted += n
	}
	return deleted, err
}

// deleteBefore deletes the documents with a date in a field that lies so many seconds back, of those that an index holds; nil: of all.
func (c *collection) deleteBefore(ctx context.Context, field string, now time.Time, seconds int64, of *index.Definition) (int64, error) {
	if seconds > int64(now.Unix()) {
		return 0, nil
	}
	before := bson.DateTime(now.UnixMilli() - seconds*1000) // as a time.Duration it may be more than there is
	filter := bson.D{{Key: field, Value: bson.D{{Key: "$lte", Value: before}, {Key: "$type", Value: "date"}}}}
	o := &DeleteOptions{Many: true}
	if of != nil && of.PartialSpec != nil {
		filter = bson.D{{Key: "$and", Value: bson.A{filter, bson.Raw(of.PartialSpec)}}}
		o.Collation = bson.Raw(of.Collation.Document()) // by which the index compares
	}
	return c.handle().Delete(ctx, filter, o) // by its name another one might be meant by now
}
