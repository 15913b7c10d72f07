package hash

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
)

// reader is the memory of one who reads index pages.
type reader struct {
	base   segment.Buffer
	delta  segment.Buffer
	image  image // the page read last; it may lie in base
	merged [2][]byte
	empty  []byte
	list   []entry
	ops    []op
	found  []segment.Piece
	imager imager
}

// take appends the places of the entries with this hash to m.found.
func (m *reader) take(p image, hash uint64) {
	first, end := p.find(hash)
	for ; first < end; first++ {
		m.found = append(m.found, p.entry(first).at)
	}
}

// errLost says that the base of a page went with the group that it was in.
var errLost = errors.New("the index page was lost with its group")

// readPage reads page q, whose slot is in b, from the disk, and merges its deltas into it: m.image is valid until m is used again. Where
// err tells of what could not be read, m.image is what the deltas behind it say.
func (r *root) readPage(m *reader, b *body, q uint64) error {
	t := &b.slots[q%groupSlots]
	r.prefetchPage(t)
	var damage error
	m.image, damage = r.readBase(m, t, q)
	if err := m.image.check(); err != nil {
		m.image, damage = m.none(r.depth, q), r.badBlob(t.base, err)
	}
	if len(t.deltas) == 0 {
		return damage
	}
	for i, d := range t.deltas {
		if err := r.readDelta(m, d, q); err != nil {
			damage, m.image = err, m.none(r.depth, q)
			continue
		}
		out := &m.merged[i%2] // the other one has the image
		*out = m.imager.merge((*out)[:0], m.image, m.ops)
		m.image = *out
	}
	return damage
}

// none is the image of a page without entries.
func (m *reader) none(depth int, q uint64) image {
	m.empty = m.imager.append(m.empty[:0], depth, q, nil)
	return m.empty
}

// prefetchPage asks the processor for all blobs of a page, one behind the other of which will be read.
func (r *root) prefetchPage(t *slot) {
	for i := range t.deltas {
		r.env.Store.PrefetchAll(t.deltas[i])
	}
	r.env.Store.PrefetchAll(t.base)
}

// readBase reads the base of a page. When it cannot be read the image has no entries.
func (r *root) readBase(m *reader, t *slot, q uint64) (image, error) {
	if t.lost {
		return m.none(r.depth, q), fmt.Errorf("keyspace %d: %w", r.keyspace, corrupt.New(segment.DirName, 0, 0, "%v", errLost))
	}
	if t.base.IsZero() {
		return m.none(r.depth, q), nil
	}
	raw, err := r.readBlob(&m.base, t.base, segment.KindIndex)
	if err != nil {
		return m.none(r.depth, q), err
	}
	if err := image(raw).checkHead(r.depth, q); err != nil {
		return m.none(r.depth, q), r.badBlob(t.base, err)
	}
	return raw, nil
}

// readDelta reads a delta into m.ops.
func (r *root) readDelta(m *reader, p segment.Pointer, q uint64) error {
	raw, err := r.readBlob(&m.delta, p, segment.KindIndexDelta)
	if err != nil {
		return err
	}
	if m.ops, err = decodeDelta(m.ops[:0], raw, r.depth, q); err != nil {
		return r.badBlob(p, err)
	}
	return nil
}

// image makes m.image page q, out of the cache if it is there. It is valid until m is used again.
func (r *root) image(m *reader, b *body, q uint64) error {
	if r.copyCached(m, b, int(q%groupSlots)) {
		return nil
	}
	return r.readPage(m, b, q)
}

// copyCached is image for a page that is in the cache.
func (r *root) copyCached(m *reader, b *body, i int) bool {
	guard := r.env.Epoch.Enter()
	defer guard.Exit()
	p, ok := r.cached(b, i)
	if ok {
		m.merged[0] = append(m.merged[0][:0], p...)
		m.image = m.merged[0]
	}
	return ok
}

// entries makes m.list the entries of page q.
func (r *root) entries(m *reader, b *body, q uint64) error {
	err := r.image(m, b, q)
	m.list = m.image.appendTo(m.list[:0])
	return err
}

// lookUp appends the places of the entries of page q with this hash to m.found, newest first, without making all of the page. What err
// tells of could not be read, and may have older ones.
func (r *root) lookUp(m *reader, b *body, q, hash uint64) error {
	t := &b.slots[q%groupSlots]
	r.prefetchPage(t)
	for i := len(t.deltas) - 1; i >= 0; i-- {
		raw, err := r.readBlob(&m.delta, t.deltas[i], segment.KindIndexDelta)
		if err != nil {
			return err
		}
		all, err := m.takeDelta(raw, hash)
		if err != nil {
			return r.badBlob(t.deltas[i], err)
		}
		if all {
			return r.foundApart(m, t.deltas[i])
		}
	}
	p, err := r.readBase(m, t, q)
	m.take(p, hash)
	if err == nil {
		err = r.foundApart(m, t.base)
	}
	return err
}

// foundApart tells which of m.found lie in the same place, or returns nil: see fewAlike. p is the oldest blob that said where they lie.
func (r *root) foundApart(m *reader, p segment.Pointer) error {
	if len(m.found) <= fewAlike {
		return nil
	}
	if damage := apart(slices.Clone(m.found)); damage != nil {
		m.found = m.found[:0]
		return r.badBlob(p, damage)
	}
	return nil
}
