package document

import (
	"context"
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
	s.wait.Go(func() {
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
// It also runs by itself, every Options.TTLInterval, unless SetTTL says otherwise.
func (s *Store) DeleteExpired(ctx context.Context) (int64, error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	now := s.clock.Now()
	var deleted int64
	for _, c := range s.current.Load().byName {
		if s := c.unread.stored.Load(); s != nil && !s.expires() {
			continue
		}
		if err := c.open(); err != nil {
			return deleted, err
		}
		if settings := c.settings.Load(); settings.expires >= 0 {
			field := "_id" // of a clustered collection
			if settings.series != nil {
				field = settings.series.timeField
			}
			n, err := c.deleteBefore(ctx, field, nil, now, settings.expires)
			if deleted += n; err != nil {
				return deleted, err
			}
		}
		for _, x := range *c.indexes.Load() {
			if !x.ready || x.def.TTL < 0 {
				continue
			}
			n, err := c.deleteBefore(ctx, x.def.Components[0].Path, x.def, now, x.def.TTL)
			if deleted += n; err != nil {
				return deleted, err
			}
		}
	}
	return deleted, nil
}

// deleteBefore deletes the documents with a date in a field that lies so many seconds back. Of an index only those expire that it holds.
func (c *collection) deleteBefore(ctx context.Context, field string, x *index.Definition, now time.Time, seconds int64) (int64, error) {
	if seconds > int64(now.Unix()) {
		return 0, nil
	}
	before := bson.NewDateTimeFromTime(now.Add(-time.Duration(seconds) * time.Second))
	filter := bson.D{{Key: field, Value: bson.D{{Key: "$lte", Value: before}, {Key: "$type", Value: "date"}}}}
	o := &DeleteOptions{Many: true}
	if x != nil && x.Partial != nil {
		filter = append(filter, bson.E{Key: "$and", Value: bson.A{bson.Raw(x.PartialSpec)}})
		o.Collation = bson.Raw(x.Collation.Document()) // by which the index compares
	}
	ns := c.name.Load()
	return c.store.Database(ns.database).Lookup(ns.collection).Delete(ctx, filter, o)
}
