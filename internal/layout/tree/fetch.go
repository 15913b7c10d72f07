package tree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

func misplaced(p segment.Pointer, h segment.Header, kind segment.Kind) error {
	if kind == segment.KindLeaf && h.Kind == segment.KindDelta {
		return corrupt.New(segment.FilePath(p.Segment), int64(p.Offset), int64(p.Length), "stands for records that were lost to damage")
	}
	return corrupt.New(segment.FilePath(p.Segment), int64(p.Offset), int64(p.Length),
		"blob of kind %d of keyspace %d instead of kind %d", h.Kind, h.Keyspace, kind)
}

// badLeaf says in which leaf, with its deltas, the damage lies: all of it verifies and makes no sense, or is more than a page may hold.
func (r *root) badLeaf(b *body, i int, err error) error {
	p := b.slots[i].ptr
	if placed := (*corrupt.Error)(nil); !errors.As(err, &placed) && (errors.Is(err, corrupt.Err) || errors.Is(err, page.ErrFull)) {
		err = corrupt.New(segment.FilePath(p.Segment), int64(p.Offset), int64(p.Length), "leaf: %v", err)
	}
	return fmt.Errorf("keyspace %d: leaf in segment %d: %w", r.keyspace, p.Segment, err)
}

// badNode is the error for a node that verifies and makes no sense.
func (r *root) badNode(p segment.Pointer, err error) error {
	return fmt.Errorf("keyspace %d: %w", r.keyspace, corrupt.New(segment.FilePath(p.Segment), int64(p.Offset), int64(p.Length), "node: %v", err))
}

// readLeaf reads leaf i with its deltas folded in. The raw page is valid until s is used again. A count that was open is
// closed by the way.
func (r *root) readLeaf(s *layout.Scratch, b *body, i int) ([]byte, error) {
	raw, deltas, err := r.readUnfolded(s, b, i, nil)
	if err != nil {
		return nil, err
	}
	if len(deltas) > 0 {
		if raw, err = foldDeltas(s, raw, deltas); err != nil {
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

// loadLeaf is readLeaf for one who keeps the page out of the cache: its resident form is made in memory, or in more where that is too
// little. Deltas are folded in by the way.
func (r *root) loadLeaf(s *layout.Scratch, b *body, i int, memory []byte) ([]byte, error) {
	raw, deltas, err := r.readUnfolded(s, b, i, nil)
	if err != nil {
		return memory, err
	}
	return r.loadUnfolded(s, b, i, raw, deltas, memory)
}

// loadUnfolded makes the resident form of leaf i in memory, or in more where that is too little, out of what readUnfolded has read.
func (r *root) loadUnfolded(s *layout.Scratch, b *body, i int, raw []byte, deltas []segment.Request, memory []byte) (_ []byte, err error) {
	folded := false
	if len(deltas) > 0 {
		memory, folded, err = loadFolded(s, memory, raw, deltas)
		if !folded && err == nil {
			raw, err = foldDeltas(s, raw, deltas)
		}
	}
	if !folded && err == nil {
		memory, err = loadInto(memory, raw)
	}
	if err != nil {
		return memory, r.badLeaf(b, i, err)
	}
	if _, exact := b.count(i); !exact {
		b.counts[i].Store(uint64(page.At(memory).Len()))
	}
	return memory, nil
}

// readPage reads leaf i for one who goes over it in order: into the cache if it is worth that and there is room, else into memory, or
// into more where that is too little.
func (r *root) readPage(s *layout.Scratch, b *body, i int, memory []byte) (_ []byte, cached bool, err error) {
	if !r.worthKeeping(b, i) {
		memory, err = r.loadLeaf(s, b, i, memory)
		return memory, false, err
	}
	return r.keepPage(s, b, i, memory)
}

// keepPage is readPage for a leaf that is worth keeping.
func (r *root) keepPage(s *layout.Scratch, b *body, i int, memory []byte) (_ []byte, cached bool, err error) {
	raw, err := r.readLeaf(s, b, i)
	if err != nil || r.rememberOrdered(b, i, raw) {
		return memory, err == nil, err
	}
	if memory, err = loadInto(memory, raw); err != nil {
		err = r.badLeaf(b, i, err)
	}
	return memory, false, err
}

// loadFolded makes the resident form of the raw page base with deltas put over it. It is false where that takes another way.
func loadFolded(s *layout.Scratch, memory, base []byte, deltas []segment.Request) (_ []byte, ok bool, err error) {
	if ok, err := putOver(s, base, deltas); !ok || err != nil {
		return memory, false, err
	}
	memory = roomFor(memory, s.Overlay.OrderedSize())
	if err := s.Overlay.LoadOrdered(memory); err != nil {
		if errors.Is(err, page.ErrFull) {
			return memory, false, nil
		}
		return memory, false, err
	}
	return memory, true, nil
}

// loadInto makes a page to go over in order of a raw one, in memory or in more where that is too little.
func loadInto(memory, raw []byte) ([]byte, error) {
	size, err := page.OrderedSize(raw)
	if err != nil {
		return memory, err
	}
	memory = roomFor(memory, size)
	return memory, page.LoadOrdered(memory, raw)
}

// roomFor is memory for a page of size bytes.
func roomFor(memory []byte, size int) []byte {
	if cap(memory) < size {
		memory = make([]byte, size+size/4)
	}
	return memory[:cap(memory)]
}

// readUnfolded reads leaf i and its deltas, the oldest first. What it returns is valid until s is used again. With an excerpt, raw is nil
// where only the table was read: see segment.Request.
func (r *root) readUnfolded(s *layout.Scratch, b *body, i int, x *segment.Excerpt) (raw []byte, changes []segment.Request, err error) {
	deltas := b.deltasOf(i)
	if len(deltas) == 0 && x == nil {
		raw, err = r.readBlob(&s.Blob, b.slots[i].ptr, segment.KindLeaf)
		return raw, nil, err
	}
	list := requestDeltas(s, deltas, 1)
	list[0].P, list[0].Excerpt = b.slots[i].ptr, x
	if err := r.readTogether(list, segment.KindLeaf); err != nil {
		return nil, nil, err
	}
	list[0].Excerpt = nil
	return list[0].Raw, list[1:], nil
}

// requestDeltas returns requests for deltas, in the memory of s, behind as many others as there are before them.
func requestDeltas(s *layout.Scratch, deltas []delta, before int) []segment.Request {
	n := before + len(deltas)
	for len(s.Blobs) < n {
		s.Blobs = append(s.Blobs, segment.Request{})
	}
	list := s.Blobs[:n]
	for j := range deltas {
		list[before+j].P, list[before+j].Excerpt = deltas[j].Pointer, nil
	}
	return list
}

// readTogether reads what list asks for: a blob of a kind, and deltas.
func (r *root) readTogether(list []segment.Request, kind segment.Kind) error {
	r.env.Store.ReadTogether(list)
	for j := range list {
		err := list[j].Err
		if err == nil {
			err = r.expect(list[j].P, &list[j].Header, kind)
		}
		if err != nil {
			return fmt.Errorf("keyspace %d: %w", r.keyspace, err)
		}
		kind = segment.KindDelta
	}
	return nil
}

// foldDeltas merges deltas (oldest first) into raw. What comes out lies in s.Merged.
func foldDeltas(s *layout.Scratch, raw []byte, deltas []segment.Request) ([]byte, error) {
	merged, ok, err := overlay(s, raw, deltas)
	if ok || err != nil {
		return merged, err
	}
	return foldEach(s, raw, deltas, false)
}

// foldEach merges deltas (oldest first) into raw, one after the other: see fold. What comes out lies in s.Merged.
func foldEach(s *layout.Scratch, raw []byte, deltas []segment.Request, tombstones bool) ([]byte, error) {
	for i := range deltas {
		if err := fold(&s.Builder, s, raw, deltas[i].Raw, tombstones); err != nil {
			return nil, err
		}
		s.Merged = s.Builder.Append(s.Merged[:0]) // the builder has copied what it needs of raw
		raw = s.Merged
	}
	return raw, nil
}

// overlay puts deltas over the raw page base. It is false where their keys do not allow that.
func overlay(s *layout.Scratch, base []byte, deltas []segment.Request) (merged []byte, ok bool, err error) {
	if ok, err := putOver(s, base, deltas); !ok || err != nil {
		return nil, false, err
	}
	s.Merged, err = s.Overlay.Append(s.Merged[:0])
	return s.Merged, err == nil, err
}

// putOver puts deltas over the raw page base in s.Overlay. It is false where their keys do not allow that.
func putOver(s *layout.Scratch, base []byte, deltas []segment.Request) (ok bool, err error) {
	if err := s.Overlay.Reset(base); err != nil {
		return false, err
	}
	for i := range deltas {
		if ok, err := s.Overlay.Put(deltas[i].Raw); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// readJoined reads the deltas of leaf i and returns one that says the same, which is valid until s is used again. There is at least one.
func (r *root) readJoined(s *layout.Scratch, b *body, i int) ([]byte, error) {
	list := requestDeltas(s, b.deltasOf(i), 0)
	if err := r.readTogether(list, segment.KindDelta); err != nil {
		return nil, err
	}
	raw, err := foldEach(s, list[0].Raw, list[1:], true)
	if err != nil {
		return nil, r.badLeaf(b, i, err)
	}
	return raw, nil
}

// fold merges the raw page change over the raw page base into out, with tombstones or without them: with them what comes out is a delta.
func fold(out *page.Builder, s *layout.Scratch, base, change []byte, tombstones bool) error {
	if err := s.Base.Reset(base); err != nil {
		return err
	}
	if err := s.Change.Reset(change); err != nil {
		return err
	}
	out.Reset()
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
			err = out.Add(s.Base.Key(), s.Base.Record())
			inBase = s.Base.Next()
		} else {
			if tombstones || s.Change.Record().Kind != record.Tombstone {
				err = out.Add(s.Change.Key(), s.Change.Record())
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

// findIn looks a key up in leaf i on disk, without folding its deltas in: in the newest delta that may have it first, in the leaf
// last. The record is left in s.
func (r *root) findIn(s *layout.Scratch, b *body, i int, hash uint64, key []byte) (bool, error) {
	deltas := b.deltasOf(i)
	for j := len(deltas) - 1; j >= 0; j-- {
		if !deltas[j].digest.has(hash) {
			continue
		}
		raw, err := r.readBlob(&s.Delta, deltas[j].Pointer, segment.KindDelta)
		if err != nil {
			return false, err
		}
		ok, err := page.FindInto(&s.Record, raw, key)
		if err != nil {
			return false, r.badLeaf(b, i, err)
		}
		if ok {
			return s.Record.Kind != record.Tombstone, nil
		}
	}
	raw, h, err := r.env.Store.ReadExcerpt(b.slots[i].ptr, key, &s.Blob)
	if err == nil {
		err = r.expect(b.slots[i].ptr, &h, segment.KindLeaf)
	}
	if err != nil {
		return false, fmt.Errorf("keyspace %d: %w", r.keyspace, err)
	}
	ok, err := page.FindInto(&s.Record, raw, key)
	if err != nil {
		return false, r.badLeaf(b, i, err)
	}
	return ok, nil
}

// worthKeeping reports whether leaf i, which is not in the cache, should be brought there.
func (r *root) worthKeeping(b *body, i int) bool {
	// The checksum is as good as a hash of the place.
	return !b.own && r.env.Cache.Admit(b.slots[i].ptr.Sum)
}

// remember puts a leaf that was read into the cache. Where the cache has no room the leaf stays uncached.
func (r *root) remember(b *body, i int, raw []byte) bool {
	old := b.handles[i].Load()
	h, err := insertPage(r.env, raw, r.keyspace)
	if err == nil {
		r.exchange(b, i, old, h)
	}
	return err == nil
}

// rememberOrdered is remember for one who goes over the leaf in order.
func (r *root) rememberOrdered(b *body, i int, raw []byte) bool {
	old := b.handles[i].Load()
	h, err := insertOrdered(r.env, raw)
	if err == nil {
		r.exchange(b, i, old, h)
	}
	return err == nil
}

// exchange makes h the handle of leaf i in place of old. It is false where another one was quicker, whose page stays.
func (r *root) exchange(b *body, i int, old, h uint64) bool {
	if b.handles[i].CompareAndSwap(old, h) {
		return true
	}
	dropPage(r.env, h)
	return false
}

// makeRoom puts a page with room for hash slots in the place of that of leaf i, which has none: somebody asks for keys. Where the cache
// has no frame free it stays, and keys are searched for.
func (r *root) makeRoom(b *body, i int) {
	old := b.handles[i].Load()
	p, _, ok := pinPage(r.env, old)
	if !ok {
		return
	}
	defer unpinPage(r.env, old)
	h, err := insertPage(r.env, p.Raw(), r.keyspace)
	if err == nil && r.exchange(b, i, old, h) {
		dropPage(r.env, old)
	}
}
