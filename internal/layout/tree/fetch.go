package tree

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

func misplaced(p segment.Pointer, h segment.Header, kind segment.Kind) error {
	return corrupt.New(segmentName(p.Segment), int64(p.Offset), int64(p.Length),
		"blob of kind %d of keyspace %d instead of kind %d", h.Kind, h.Keyspace, kind)
}

func segmentName(id uint32) string { return segment.DirName + "/" + segment.FileName(id) }

// badLeaf says in which leaf the damage lies.
func (r *root) badLeaf(b *body, i int, err error) error {
	p := b.slots[i].ptr
	return fmt.Errorf("keyspace %d: segment %d: leaf at %d: %w", r.keyspace, p.Segment, p.Offset, err)
}

// readLeaf reads leaf i with its deltas folded in. The raw page is valid until s is used again. A count that was open is
// closed by the way.
func (r *root) readLeaf(s *layout.Scratch, b *body, i int) ([]byte, error) {
	raw, err := r.readBlob(&s.Blob, b.slots[i].ptr, segment.KindLeaf)
	if err != nil {
		return nil, err
	}
	deltas := b.deltasOf(i)
	if len(deltas) > 0 {
		if raw, err = r.foldDeltas(s, raw, deltas); err != nil {
			return nil, r.badLeaf(b, i, err)
		}
	}
	if _, exact := b.count(i); !exact {
		n, size := binary.Uvarint(raw)
		if size <= 0 || n > page.MaxRaw {
			return nil, r.badLeaf(b, i, fmt.Errorf("no count of entries: %w", corrupt.Err))
		}
		b.counts[i].Store(n)
	}
	return raw, nil
}

// foldDeltas merges deltas (oldest first) into raw. The deltas are merged with each other first, as they are small.
func (r *root) foldDeltas(s *layout.Scratch, raw []byte, deltas []segment.Pointer) ([]byte, error) {
	s.Spare = s.Spare[:0]
	for i, p := range deltas {
		d, err := r.readBlob(&s.Delta, p, segment.KindDelta)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			s.Spare = append(s.Spare, d...)
			continue
		}
		if err := fold(s, s.Spare, d, true); err != nil {
			return nil, err
		}
		s.Spare = s.Builder.Append(s.Spare[:0])
	}
	return overlay(s, raw, s.Spare)
}

// overlay puts the raw page change over the raw page base. The outcome lies in s.Merged.
func overlay(s *layout.Scratch, base, change []byte) ([]byte, error) {
	if err := s.Change.Reset(change); err != nil {
		return nil, err
	}
	merged, ok, err := page.Overlay(s.Merged[:0], base, &s.Change)
	s.Merged = merged
	if ok || err != nil {
		return merged, err
	}
	if err := fold(s, base, change, false); err != nil {
		return nil, err
	}
	s.Merged = s.Builder.Append(s.Merged[:0])
	return s.Merged, nil
}

// fold merges the raw page change over the raw page base into s.Builder.
func fold(s *layout.Scratch, base, change []byte, keepTombstones bool) error {
	if err := s.Base.Reset(base); err != nil {
		return err
	}
	if err := s.Change.Reset(change); err != nil {
		return err
	}
	s.Builder.Reset()
	inBase, inChange := s.Base.Next(), s.Change.Next()
	for inBase || inChange {
		order := -1
		if !inBase {
			order = 1
		} else if inChange {
			order = bytes.Compare(s.Base.Key(), s.Change.Key())
		}
		var err error
		if order < 0 {
			err = s.Builder.Add(s.Base.Key(), s.Base.Record())
			inBase = s.Base.Next()
		} else {
			if keepTombstones || s.Change.Record().Kind != record.Tombstone {
				err = s.Builder.Add(s.Change.Key(), s.Change.Record())
			}
			if order == 0 {
				inBase = s.Base.Next()
			}
			inChange = s.Change.Next()
		}
		if err != nil {
			return err
		}
	}
	if err := s.Base.Err(); err != nil {
		return err
	}
	return s.Change.Err()
}

// findIn looks a key up in leaf i on disk, without folding its deltas in: in the newest delta first, in the leaf last.
func (r *root) findIn(s *layout.Scratch, b *body, i int, key []byte) (record.Record, bool, error) {
	deltas := b.deltasOf(i)
	for j := len(deltas) - 1; j >= 0; j-- {
		raw, err := r.readBlob(&s.Delta, deltas[j], segment.KindDelta)
		if err != nil {
			return record.Record{}, false, err
		}
		rec, ok, err := page.Find(raw, key)
		if err != nil {
			return record.Record{}, false, r.badLeaf(b, i, err)
		}
		if ok {
			return rec, rec.Kind != record.Tombstone, nil
		}
	}
	raw, err := r.readBlob(&s.Blob, b.slots[i].ptr, segment.KindLeaf)
	if err != nil {
		return record.Record{}, false, err
	}
	rec, ok, err := page.Find(raw, key)
	if err != nil {
		return record.Record{}, false, r.badLeaf(b, i, err)
	}
	return rec, ok, nil
}

// worthKeeping reports whether leaf i, which is not in the cache, should be brought there.
func (r *root) worthKeeping(b *body, i int) bool {
	// The checksum is as good as a hash of the place.
	return r.env.Cache.Admit(b.slots[i].ptr.Sum)
}

// remember puts a leaf that was read into the cache. Where the cache has no room the leaf stays uncached.
func (r *root) remember(b *body, i int, raw []byte) bool {
	old := b.handles[i].Load()
	h, err := insertPage(r.env, raw, r.keyspace)
	if err != nil {
		return false
	}
	if !b.handles[i].CompareAndSwap(old, h) {
		dropPage(r.env, h)
	}
	return true
}
