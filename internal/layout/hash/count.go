package hash

import (
	"fmt"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
)

// Count implements layout.Root, for the whole keyspace. It reads the records of pages in which something may have expired, or of which it is
// not known how many there are.
func (r *root) Count(lo, hi []byte, now uint64) (int64, error) {
	if len(lo) > 0 || hi != nil {
		return 0, fmt.Errorf("count a range in a hash table: %w", layout.ErrNoOrder)
	}
	if !r.open && !r.MayHide(now) {
		return r.count, nil
	}
	total := int64(0)
	w := &windows{r: r}
	for g := range r.groups {
		b, err := r.load(&w.buf, g)
		if err != nil {
			return 0, err
		}
		for i := range b.slots {
			t := &b.slots[i]
			if !t.open && (t.expiry == 0 || t.expiry > now) {
				total += int64(t.count)
				continue
			}
			n, err := w.count(uint64(g*groupSlots+i), now)
			if err != nil {
				return 0, err
			}
			total += n
		}
	}
	return total, nil
}

// count counts the records of an index page by reading them.
func (w *windows) count(q, now uint64) (total int64, err error) {
	if err := w.open(q); err != nil {
		return 0, err
	}
	for i := range w.ends {
		if err := w.read(i); err != nil {
			return 0, err
		}
		for j := range w.items {
			if !w.items[j].record.Expired(now) {
				total++
			}
		}
	}
	return total, nil
}

// Nth implements layout.Root: without an order there is no n-th record.
func (r *root) Nth(_, _ []byte, _ int64, _ uint64) ([]byte, record.Record, error) {
	return nil, record.Record{}, fmt.Errorf("n-th record of a hash table: %w", layout.ErrNoOrder)
}
