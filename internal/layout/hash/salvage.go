package hash

import (
	"context"
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// Salvage reads all that can be read under an encoded root, from the disk: it calls pair with each record that verifies, and lost for what
// does not: the keys whose hashes (record.Hash) lie from one on, up to another one and with it, which may have been there. Slices are valid
// during the call. An error of either ends the walk. Only env.Store is used.
func Salvage(ctx context.Context, env *layout.Environment, keyspace uint32, encoded []byte, pair func(key []byte, r record.Record) error, lost func(from, to uint64, err error) error) error {
	if len(encoded) == 0 {
		return nil
	}
	s := &salvager{ctx: ctx, r: &root{hash: New(), env: env, keyspace: keyspace}, pair: pair, lost: lost}
	if err := s.r.decode(encoded); err != nil {
		return lost(0, 1<<64-1, fmt.Errorf("root of keyspace %d: %w", keyspace, err))
	}
	for g, group := range s.r.groups {
		if err := s.group(group.ptr, uint64(g)*groupSlots); err != nil {
			return err
		}
	}
	return nil
}

// Salvageable returns how many records lie under an encoded root, expired ones included, or somewhat more than that; 0 when it does not
// verify.
func Salvageable(encoded []byte) int64 {
	r := new(root)
	if len(encoded) == 0 || r.decode(encoded) != nil {
		return 0
	}
	return r.count
}

// Records calls fn with each record in a verified blob of records, in the order in which they lie there; blobs of other kinds have none. It
// does not tell which of them were still valid.
func Records(kind segment.Kind, raw []byte, fn func(key []byte, r record.Record) error) error {
	if kind != segment.KindPieces {
		return nil
	}
	for len(raw) > 0 {
		var r record.Record
		key, rest, err := cutPiece(raw, &r)
		if err != nil {
			return fmt.Errorf("%w: %w", corrupt.Err, err)
		}
		if err := fn(key, r); err != nil {
			return err
		}
		raw = rest
	}
	return nil
}

// salvager walks over what may be damaged.
type salvager struct {
	ctx  context.Context
	r    *root
	pair func(key []byte, r record.Record) error
	lost func(from, to uint64, err error) error
	m    reader
	s    layout.Scratch
	buf  segment.Buffer
	seen map[string]bool // keys of the hash at hand
}

// unreadable passes damage on. Where the device fails to read, the bytes are lost as well; a call that was cancelled is not damage.
func (s *salvager) unreadable(from, to uint64, err error) error {
	if s.ctx.Err() != nil || errors.Is(err, segment.ErrClosed) {
		return err
	}
	return s.lost(from, to, err)
}

// bounds returns the least and the greatest hash of so many pages from one on.
func (s *salvager) bounds(page, pages uint64) (from, to uint64) {
	shift := 64 - s.r.depth
	return page << shift, (page+pages)<<shift - 1
}

// group reads a group and its pages, the first of which has a number.
func (s *salvager) group(p segment.Pointer, first uint64) error {
	b, err := s.r.readGroup(&s.buf, p)
	if err != nil {
		from, to := s.bounds(first, uint64(slotsOf(s.r.depth)))
		return s.unreadable(from, to, err)
	}
	for i := range b.slots {
		if err := s.page(b, first+uint64(i)); err != nil {
			return err
		}
	}
	return nil
}

// page hands out what a page gives. Where it cannot be read its deltas may give something all the same.
func (s *salvager) page(b *body, q uint64) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if b.slots[q%groupSlots].empty() {
		return nil
	}
	damage := s.r.readPage(&s.m, b, q)
	last := uint64(0)
	for i := range s.m.image.len() {
		e := s.m.image.entry(i)
		if e.hash != last || s.seen == nil {
			last, s.seen = e.hash, map[string]bool{}
		}
		if err := s.record(e); err != nil {
			return err
		}
	}
	if damage == nil {
		return nil
	}
	from, to := s.bounds(q, 1)
	return s.unreadable(from, to, damage)
}

// record hands out one record, unless a newer one of its key was handed out.
func (s *salvager) record(e entry) error {
	_, key, err := s.r.readEntry(&s.s, e)
	if err != nil {
		return s.unreadable(e.hash, e.hash|^uint64(keptBits), err)
	}
	if s.seen[string(key)] {
		return nil
	}
	s.seen[string(key)] = true
	return s.pair(key, s.s.Record)
}
