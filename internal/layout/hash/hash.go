package hash

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/pandodb/pando/internal/cache"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/segment"
)

// Hash is the layout. One serves all keyspaces of a database.
type Hash struct {
	most, least int64 // entries that a page has on average when all pages are split, and when they are joined

	readers sync.Pool             // *reader
	cursors sync.Pool             // *cursorMemory
	chunk   atomic.Pointer[chunk] // memory of the last Apply
}

// New returns the layout.
func New() *Hash { return &Hash{most: 512, least: 96} }

var _ layout.Layout = (*Hash)(nil)

// Load implements layout.Layout. It reads nothing.
func (h *Hash) Load(env *layout.Environment, keyspace uint32, encoded []byte) (layout.Root, error) {
	r := &root{hash: h, env: env, keyspace: keyspace}
	if len(encoded) == 0 {
		return r, nil
	}
	if err := r.decode(encoded); err != nil {
		return nil, fmt.Errorf("load hash table of keyspace %d: %w", keyspace, err)
	}
	return r, nil
}

// Published implements layout.Layout: index pages that only the predecessor of root uses leave the cache.
func (h *Hash) Published(r layout.Root) {
	if hr, ok := r.(*root); ok {
		hr.retire()
	}
}

// Aborted implements layout.Layout. What groups take is counted when a root is published, and pages leave the cache by themselves.
func (h *Hash) Aborted(*layout.Environment, *segment.Writer) {}

// Stats implements layout.Layout.
func (h *Hash) Stats(r layout.Root) layout.Stats {
	hr := r.(*root)
	var s layout.Stats
	s.Records, s.RecordsExact = hr.Records()
	if len(hr.groups) == 0 {
		return s
	}
	s.Height = 1
	for _, g := range hr.groups {
		s.InnerNodes++
		s.InnerBytes += int64(g.ptr.Length)
		b := g.body.Load()
		if b == nil {
			s.Partial = true
			continue
		}
		s.ResidentBytes += b.memory()
		for i := range b.slots {
			t := &b.slots[i]
			if !t.base.IsZero() {
				s.Leaves++
				s.LeafBytes += int64(t.base.Length)
			}
			s.Deltas += int64(len(t.deltas))
			s.DeltaBytes += int64(t.deltaBytes())
		}
	}
	return s
}

// reader returns the memory of one who reads index pages. Give it back with h.readers.Put.
func (h *Hash) reader() *reader {
	if m, ok := h.readers.Get().(*reader); ok {
		return m
	}
	return new(reader)
}

// retire takes the pages out of the cache that the root replaced. Readers of the old root read them from the disk.
func (r *root) retire() {
	r.give(nil)
}

// give is retire, but leaves the memory of groups to be counted to an Apply which goes on with the writer that has made r: nobody has seen that
// root, nor will anybody when the round that makes several of them fails.
func (r *root) give(w *segment.Writer) (memory int64) {
	old := r.replaced.Swap(nil)
	if old == nil {
		return 0
	}
	for _, h := range old.handles {
		r.env.Cache.Drop(cache.Handle(h))
	}
	if old.by != nil && old.by == w {
		return old.memory
	}
	r.env.Inner.Add(old.memory)
	return 0
}
