package document

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"

	"github.com/pandodb/pando"
)

// The time of an entry of the oplog is that of its change, or later when a commit overtook another: it depends on what is in front
// of it in the log. So times are counted from the oldest change that the log has, once, and places in between are remembered from
// which a reader can begin. They also tell where a moment is in the log, and how to read it backwards.

// oplogPlace is a place in the log, between two commits.
type oplogPlace struct {
	seq     uint64 // the change before
	time    uint64 // of the entry before
	entries int64  // before
	bytes   int64  // before
}

// oplogIndex is places in the log.
type oplogIndex struct {
	mu     sync.Mutex
	places []oplogPlace // in their order
	head   oplogPlace   // how far the log has been looked at
}

// placeDistance is about how many bytes of changes are between two places.
const placeDistance = 256 << 10

// upToDate looks at what is new in the log, and returns the places, from the oldest, and the end.
func (x *oplogIndex) upToDate(ctx context.Context, s *Store) ([]oplogPlace, oplogPlace, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for attempt := 0; ; attempt++ {
		x.trim(s.db.OldestChange())
		err := x.extend(ctx, s)
		if errors.Is(err, pando.ErrChangesGone) && attempt < 3 {
			continue // what was oldest has been given up meanwhile
		}
		return slices.Clone(x.places), x.head, err
	}
}

// trim forgets places that the log does not have any more.
func (x *oplogIndex) trim(oldest uint64) {
	gone := sort.Search(len(x.places), func(i int) bool { return x.places[i].seq+1 >= oldest })
	if x.places = x.places[gone:]; len(x.places) > 0 {
		return
	}
	if x.head.seq+1 < oldest {
		x.head.seq = oldest - 1
	}
	x.places = []oplogPlace{x.head}
}

// extend looks at the log from the head on.
func (x *oplogIndex) extend(ctx context.Context, s *Store) error {
	r := &logReader{store: s, skim: true, time: x.head.time}
	r.deliver = func(_ context.Context, c *committed) error {
		n := int64(len(c.changes))
		if c.transaction {
			n = min(n, 1)
		}
		x.head.entries += n
		x.head.bytes += int64(c.size)
		if !c.last {
			return nil
		}
		x.head.seq, x.head.time = c.seq, c.time
		if x.head.bytes-x.places[len(x.places)-1].bytes >= placeDistance {
			x.places = append(x.places, x.head)
		}
		return nil
	}
	before := x.head
	for c, err := range s.db.Changes(ctx, pando.ChangesOptions{From: x.head.seq + 1}) {
		if err == nil {
			err = r.take(ctx, c)
		}
		if err != nil {
			if r.touched {
				x.head.entries, x.head.bytes = before.entries, before.bytes
			}
			return err
		}
		if c.Last {
			before = x.head
		}
	}
	return nil
}

// placeBefore returns the last place of which all entries with a time or a later one are behind.
func placeBefore(places []oplogPlace, time uint64) int {
	return max(0, sort.Search(len(places), func(i int) bool { return places[i].time >= time })-1)
}
