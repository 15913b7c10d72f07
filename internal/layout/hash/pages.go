package hash

import (
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
)

// reader is the memory of one who reads index pages.
type reader struct {
	base   segment.Buffer
	delta  segment.Buffer
	image  image // the page read last; it may lie in base
	merged []byte
	list   []entry
	spare  []entry
	ops    []op
	found  []segment.Piece
	imager imager
	none   [imageHead]byte // the image of a page without entries, of any depth
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
	var damage error
	m.image, damage = r.readBase(m, t, q)
	if len(t.deltas) == 0 {
		return damage
	}
	m.list = m.image.appendTo(m.list[:0])
	for _, d := range t.deltas {
		if err := r.readDelta(m, d, q); err != nil {
			damage, m.list = err, m.list[:0]
			continue
		}
		m.spare = merge(m.spare[:0], m.list, m.ops)
		m.list, m.spare = m.spare, m.list
	}
	m.merged = m.imager.append(m.merged[:0], r.depth, m.list)
	m.image = m.merged
	return damage
}

// readBase reads the base of a page. When it cannot be read the image has no entries.
func (r *root) readBase(m *reader, t *slot, q uint64) (image, error) {
	if t.lost {
		return m.none[:], fmt.Errorf("keyspace %d: %w", r.keyspace, corrupt.New(segment.DirName, 0, 0, "%v", errLost))
	}
	if t.base.IsZero() {
		return m.none[:], nil
	}
	raw, err := r.readBlob(&m.base, t.base, segment.KindIndex)
	if err != nil {
		return m.none[:], err
	}
	if err := image(raw).check(r.depth, q); err != nil {
		return m.none[:], r.badBlob(t.base, err)
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

// entries makes m.list the entries of page q, out of the cache if it is there.
func (r *root) entries(m *reader, b *body, q uint64) error {
	if r.copyCached(m, b, int(q%groupSlots)) {
		return nil
	}
	err := r.readPage(m, b, q)
	m.list = m.image.appendTo(m.list[:0])
	return err
}

// copyCached is entries for a page that is in the cache.
func (r *root) copyCached(m *reader, b *body, i int) bool {
	guard := r.env.Epoch.Enter()
	defer guard.Exit()
	p, ok := r.cached(b, i)
	if ok {
		m.list = p.appendTo(m.list[:0])
	}
	return ok
}

// isUnreadable reports whether an error of reading concerns one blob only.
func isUnreadable(err error) bool {
	return errors.Is(err, corrupt.Err) || errors.Is(err, segment.ErrUnreadable)
}
