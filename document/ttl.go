package document

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// startTTL looks for expired documents from time to time, as long as the store is open.
func (s *Store) startTTL() {
	if s.options.TTLInterval < 0 {
		return
	}
	s.wait.Go(func() {
		for s.clock.Sleep(s.work, s.options.TTLInterval) == nil {
			if _, err := s.DeleteExpired(s.work); err != nil && s.work.Err() == nil {
				s.log.Error("expired documents could not be deleted", "error", err)
			}
		}
	})
}

// DeleteExpired deletes the documents that have expired by now, as TTL indexes and time series say, and returns how many there were.
// It also runs by itself, every Options.TTLInterval.
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
			n, err := c.deleteBefore(ctx, field, now, settings.expires)
			if deleted += n; err != nil {
				return deleted, err
			}
		}
		for _, x := range *c.indexes.Load() {
			if !x.ready || x.def.TTL < 0 {
				continue
			}
			n, err := c.deleteBefore(ctx, x.def.Components[0].Path, now, x.def.TTL)
			if deleted += n; err != nil {
				return deleted, err
			}
		}
	}
	return deleted, nil
}

// deleteBefore deletes the documents with a date in a field that lies so many seconds back.
func (c *collection) deleteBefore(ctx context.Context, field string, now time.Time, seconds int64) (int64, error) {
	if seconds > int64(now.Unix()) {
		return 0, nil
	}
	before := bson.NewDateTimeFromTime(now.Add(-time.Duration(seconds) * time.Second))
	filter := bson.D{{Key: field, Value: bson.D{{Key: "$lte", Value: before}, {Key: "$type", Value: "date"}}}}
	ns := c.name.Load()
	return c.store.Database(ns.database).Lookup(ns.collection).Delete(ctx, filter, &DeleteOptions{Many: true})
}
