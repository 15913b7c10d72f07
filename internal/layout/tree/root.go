package tree

import (
	"fmt"
	"sync/atomic"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// root is one immutable tree.
type root struct {
	tree     *Tree
	env      *layout.Environment
	keyspace uint32
	node     *node         // nil: empty
	count    atomic.Uint64 // with openCount
	expiry   uint64        // least expiry, 0: nothing expires
	apart    bool

	// replaced is what the predecessor of this root had in memory and this one does not use.
	replaced atomic.Pointer[replaced]
}

type replaced struct {
	by     *segment.Writer // of the Apply
	leaves []leafOf
	nodes  []*node
}

// leafOf is leaf i of a node, whose body may have been given up since: it is not kept for the sake of a page that may be in the cache.
type leafOf struct {
	n *node
	i int
}

// dropPage takes the page of a leaf out of the cache, if it can be found there.
func (l leafOf) dropPage(env *layout.Environment) {
	if b := l.n.body.Load(); b != nil {
		dropPage(env, b.handles[l.i].Load())
	}
}

// retire gives up what only the predecessor used.
func (r *root) retire() { r.give(nil) }

// give is retire for an Apply, which may go on with the writer that has made r. Nobody has seen that root then, nor will anybody when the round
// that makes several of them fails: so nodes that w has not made, which the root in force has, are left to the next one.
func (r *root) give(w *segment.Writer) (kept []*node) {
	old := r.replaced.Swap(nil)
	if old == nil {
		return nil
	}
	for _, l := range old.leaves {
		l.dropPage(r.env) // readers may have brought one in since
	}
	for _, n := range old.nodes {
		if old.by == w && n.maker != w {
			kept = append(kept, n)
		} else {
			r.tree.ring.leave(r.env, n)
		}
	}
	return kept
}

// MayHide implements layout.Root.
func (r *root) MayHide(now uint64) bool { return r.expiry != 0 && r.expiry <= now }

// Empty implements layout.Root.
func (r *root) Empty() bool {
	n, _ := r.Records()
	return n == 0
}

// Records implements layout.Root.
func (r *root) Records() (n int64, exact bool) {
	if r.node == nil {
		return 0, true
	}
	return splitCount(r.count.Load())
}

// MayLieIn implements layout.Root.
func (r *root) MayLieIn(segments *segment.Set) bool {
	return r.node != nil && r.node.mayLieIn(segments)
}

// Encode implements layout.Root.
func (r *root) Encode(dst []byte) []byte {
	if r.node == nil {
		return dst
	}
	return appendRoot(dst, rootInfo{ptr: r.node.ptr, level: r.node.level, count: r.count.Load(), expiry: r.expiry, apart: r.apart})
}

// Get implements layout.Root.
func (r *root) Get(hash uint64, key []byte) (record.Record, layout.Place, layout.Status) {
	if r.node == nil {
		return record.Record{}, layout.Place{}, layout.Absent
	}
	b, i := r.resident(key)
	if b == nil {
		return record.Record{}, layout.Place{}, layout.NotResident
	}
	if h := b.handles[i].Load(); h != 0 && !isOrdered(h) {
		if p, ok := cachedPage(r.env, h); ok {
			rec, found := p.Get(hash, key)
			if !found {
				return record.Record{}, layout.Place{}, layout.Absent
			}
			return rec, layout.Place{}, layout.Found
		}
	}
	if !filterHas(b.filterOf(i), hash) {
		return record.Record{}, layout.Place{}, layout.Absent
	}
	r.prefetch(b, i, hash, key)
	return record.Record{}, layout.Place{Node: b, Slot: i}, layout.NotResident
}

// GetRead implements layout.Root.
func (r *root) GetRead(s *layout.Scratch, hash uint64, key []byte) (record.Record, bool, error) {
	ok, err := r.getRead(s, hash, key)
	if !ok {
		return record.Record{}, false, err
	}
	return s.Record, true, nil
}

// getRead is GetRead, and leaves the record in s.
func (r *root) getRead(s *layout.Scratch, hash uint64, key []byte) (bool, error) {
	b, i, fresh, err := r.descend(s, key)
	if b == nil || err != nil {
		return false, err
	}
	if fresh {
		defer r.tree.reuse(b)
	}
	if ok, hit := r.getCopy(s, b, i, hash, key); hit {
		return ok, nil
	}
	if !filterHas(b.filterOf(i), hash) {
		return false, nil
	}
	return r.getUncached(s, b, i, fresh, hash, key)
}

// GetFrom implements layout.Root. A body that Get has found in memory is nobody's to use again, so it stays as it was then.
func (r *root) GetFrom(s *layout.Scratch, at layout.Place, hash uint64, key []byte) (bool, error) {
	b, ok := at.Node.(*body)
	if !ok {
		return r.getRead(s, hash, key)
	}
	if b.handles[at.Slot].Load() != 0 { // somebody goes over it in order, or was quicker
		if ok, hit := r.getCopy(s, b, at.Slot, hash, key); hit {
			return ok, nil
		}
	}
	return r.getUncached(s, b, at.Slot, false, hash, key)
}

// getUncached looks a key that the filter does not exclude up in leaf i, which is not in the cache; fresh is what descend has said.
func (r *root) getUncached(s *layout.Scratch, b *body, i int, fresh bool, hash uint64, key []byte) (bool, error) {
	// Who asks for one record of each of many small keyspaces would fill the cache with pages that nobody asks for again, and memory
	// that is touched for the first time costs more than to unpack the leaf once more.
	if fresh || !r.worthKeeping(b, i) {
		return r.findIn(s, b, i, hash, key)
	}
	raw, err := r.readLeaf(s, b, i)
	if segment.IsUnreadable(err) {
		return r.findIn(s, b, i, hash, key) // a delta may have it
	}
	if err != nil {
		return false, err
	}
	r.remember(b, i, raw)
	ok, err := page.FindInto(&s.Record, raw, key)
	if err != nil {
		return false, r.badLeaf(b, i, err)
	}
	return ok, nil
}

// getCopy looks into the cached page of a leaf, if it has one, and copies what it finds: the page may go as soon as the epoch
// section ends.
func (r *root) getCopy(s *layout.Scratch, b *body, i int, hash uint64, key []byte) (ok, hit bool) {
	if isOrdered(b.handles[i].Load()) {
		r.makeRoom(b, i)
	}
	h := b.handles[i].Load()
	if h == 0 {
		return false, false
	}
	guard := r.env.Epoch.Enter()
	defer guard.Exit()
	p, hit := cachedPage(r.env, h)
	if !hit {
		return false, false
	}
	if s.Record, ok = p.Get(hash, key); ok {
		s.Value = append(s.Value[:0], s.Record.Value...)
	}
	s.Record.Value = s.Value // nothing of the page
	return ok, true
}

// descend finds the slot of the leaf for key, reading nodes where it has to; fresh says that the node of the leaf was read for this
// question alone: then reuse is to have it in the end. The body is nil when the tree is empty.
//
// A node of the lowest level is read for its first question alone, without its filters, and kept from the second one on: a store of many
// small keyspaces has most of its nodes asked once, and with the filters it would read half as much again, and keep all of it.
func (r *root) descend(s *layout.Scratch, key []byte) (b *body, i int, fresh bool, err error) {
	n := r.node
	if n == nil {
		return nil, 0, false, nil
	}
	for {
		if fresh = n.level == 0 && n.body.Load() == nil && (n.left.Load() || !n.asked.Swap(true)); fresh {
			b, err = r.readBriefly(s, n)
		} else {
			b, err = r.load(s, n)
		}
		if err != nil {
			return nil, 0, false, err
		}
		i = b.find(key)
		if b.level == 0 {
			return b, i, fresh, nil
		}
		n = b.children[i]
	}
}

// load returns the body of a node, reading it when it is not resident.
func (r *root) load(s *layout.Scratch, n *node) (*body, error) {
	if b := n.resident(); b != nil {
		return b, nil
	}
	b, err := r.readNode(s, n.ptr, n.level)
	if err != nil {
		return nil, err
	}
	if n.left.Load() {
		b.own = true
		return b, nil
	}
	if !n.body.CompareAndSwap(nil, b) {
		if other := n.body.Load(); other != nil {
			return other, nil
		}
		return b, nil // loaded by another and given up again already
	}
	r.tree.ring.enter(r.env, n, b)
	return b, nil
}

// readNode reads a node and its filters. A filter blob that cannot be read is left unused: it only saves work, and Check
// reports it.
func (r *root) readNode(s *layout.Scratch, p segment.Pointer, level int) (*body, error) {
	b, err := r.readEntries(s, p, level)
	if err != nil {
		return nil, err
	}
	if b.filterPtr.IsZero() {
		return b, nil
	}
	raw, err := r.readBlob(&s.Blob, b.filterPtr, segment.KindFilter)
	if err != nil {
		return b, nil
	}
	if ends, bits, err := decodeFilters(raw); err == nil {
		b.adoptFilters(ends, bits)
	}
	return b, nil
}

// readEntries reads a node without its filters.
func (r *root) readEntries(s *layout.Scratch, p segment.Pointer, level int) (*body, error) {
	b := new(body)
	return b, r.readInto(s, b, p, level)
}

// readBriefly is readEntries for one who needs the body no longer than for a question, and then gives it to reuse.
func (r *root) readBriefly(s *layout.Scratch, n *node) (*body, error) {
	b, ok := r.tree.bodies.Get().(*body)
	if !ok {
		b = new(body)
	}
	return b, r.readInto(s, b, n.ptr, n.level)
}

// readInto reads a node, without its filters, into a body that nobody else has.
func (r *root) readInto(s *layout.Scratch, b *body, p segment.Pointer, level int) error {
	raw, err := r.readBlob(&s.Blob, p, segment.KindInner)
	if err != nil {
		return err
	}
	if err := b.decode(raw, level); err != nil {
		return r.badNode(p, err)
	}
	return nil
}

// readBlob reads a blob that must be of the given kind and of this keyspace.
func (r *root) readBlob(buf *segment.Buffer, p segment.Pointer, kind segment.Kind) ([]byte, error) {
	raw, h, err := r.env.Store.Read(p, buf)
	if err == nil {
		err = r.expect(p, &h, kind)
	}
	if err != nil {
		return nil, fmt.Errorf("keyspace %d: %w", r.keyspace, err)
	}
	return raw, nil
}

// expect checks that a blob is of the given kind and of this keyspace.
func (r *root) expect(p segment.Pointer, h *segment.Header, kind segment.Kind) error {
	if h.Kind != kind || h.Keyspace != r.keyspace {
		return misplaced(p, *h, kind)
	}
	return nil
}
