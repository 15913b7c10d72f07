package hash

import (
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// A stretch that is written anew is pages side by side, with all of their records. Where it begins is told by a hash, as the numbers of pages
// change with the depth.

// beginStretch finds out where the stretch that is to be written anew begins.
func (a *applier) beginStretch() error {
	if a.o.Rewrite == nil {
		return nil
	}
	a.renew = true
	switch from := a.o.Rewrite.From; len(from) {
	case 0:
	case 8:
		a.from = binary.BigEndian.Uint64(from)
	default:
		return fmt.Errorf("a stretch begins at %d bytes", len(from))
	}
	return nil
}

// renews reports whether the page with a number, or one before it, is to be written anew.
func (a *applier) renews(depth int, q uint64) bool {
	last := ^uint64(0)
	if q+1 < 1<<depth {
		last = (q+1)<<(64-depth) - 1
	}
	return a.renew && last >= a.from
}

// renewed takes note that a page was written anew, and ends the stretch behind it if it is long enough.
func (a *applier) renewed(depth int, q uint64) {
	s := a.o.Rewrite
	bytes := a.renewal
	a.renewal = 0
	if s.Enough == nil || !s.Enough(bytes) || q+1 == 1<<depth {
		return
	}
	s.Next, a.renew = binary.BigEndian.AppendUint64(nil, (q+1)<<(64-depth)), false
}

// sumUp makes the root at hand say what its slots do, now that the last stretch has ended. What it said before was true of more than there is,
// and stays where that cannot be told.
func (a *applier) sumUp() error {
	r := a.root
	open, apart, expiry := false, false, uint64(0)
	for g := range r.groups {
		b, err := r.load(&a.buf, g)
		if segment.IsUnreadable(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range b.slots {
			t := &b.slots[i]
			open, apart, expiry = open || t.open, apart || t.apart, record.Sooner(expiry, t.expiry)
		}
	}
	r.open, r.apart, r.expiry = open, apart, expiry
	return nil
}
