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

// DeleteExpired deletes the documents that have expired by now, as TTL indexes say, and returns how many there were. It also runs
// by itself, every Options.TTLInterval.
func (s *Store) DeleteExpired(ctx context.Context) (int64, error) {
	now := s.clock.Now()
	var deleted int64
	for _, c := range s.current.Load().byName {
		for _, x := range *c.indexes.Load() {
			if !x.ready || x.def.TTL < 0 {
				continue
			}
			ns := c.name.Load()
			before := bson.NewDateTimeFromTime(now.Add(-time.Duration(x.def.TTL) * time.Second))
			filter := bson.D{{Key: x.def.Components[0].Path, Value: bson.D{
				{Key: "$lte", Value: before}, {Key: "$type", Value: "date"},
			}}}
			handle := s.Database(ns.database).Lookup(ns.collection)
			n, err := handle.Delete(ctx, filter, &DeleteOptions{Many: true})
			deleted += n
			if err != nil {
				return deleted, err
			}
		}
	}
	return deleted, nil
}
