package hash

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"github.com/pandodb/pando/internal/cache"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// root implements layout.Root.
type root struct {
	hash     *Hash
	env      *layout.Environment
	keyspace uint32
	depth    int
	groups   []*group // none: the root is empty
	count    int64    // entries
	open     bool     // there may be fewer records than entries
	apart    bool
	expiry   uint64
	replaced atomic.Pointer[replaced]
	freed    atomic.Bool // its groups are not counted any more
	// leaving is who makes another root of this one, or has: what readers of this one bring into the cache would soon be in the way.
	leaving atomic.Pointer[segment.Writer]
}

// replaced is what changes when nobody new sees the predecessor of a root.
type replaced struct {
	by      *segment.Writer // of the Apply
	handles []uint64        // of pages that only the predecessor used
	memory  int64           // that groups take more than before
}

// group is a stretch of slots. Its body is read when it is first asked for, and stays.
type group struct {
	ptr  segment.Pointer
	body atomic.Pointer[body]
}

// body is what a group has in memory. Slots do not change; handles do, as pages come into the cache.
type body struct {
	slots   []slot
	handles []atomic.Uint64
}

func newBody(slots int) *body {
	return &body{slots: make([]slot, slots), handles: make([]atomic.Uint64, slots)}
}

const slotMemory = 80 // about what a slot takes, with its handle

func (b *body) memory() int64 {
	n := int64(len(b.slots)) * slotMemory
	for i := range b.slots {
		n += int64(len(b.slots[i].deltas)) * segment.PointerSize
	}
	return n
}

// Get implements layout.Root. Records are never in memory: it tells which of them has to be read, or that there is none.
func (r *root) Get(hash uint64, _ []byte) (record.Record, layout.Place, layout.Status) {
	if len(r.groups) == 0 {
		return record.Record{}, layout.Place{}, layout.Absent
	}
	q := pageOf(hash, r.depth)
	b := r.groups[q/groupSlots].body.Load()
	if b == nil {
		return record.Record{}, layout.Place{}, layout.NotResident
	}
	i := int(q % groupSlots)
	if b.slots[i].empty() {
		return record.Record{}, layout.Place{}, layout.Absent
	}
	p, ok := r.cached(b, i)
	if !ok {
		return record.Record{}, layout.Place{}, layout.NotResident
	}
	first, end := p.find(hash)
	if first == end {
		return record.Record{}, layout.Place{}, layout.Absent
	}
	if end-first > 1 || first > maxPlace {
		return record.Record{}, layout.Place{}, layout.NotResident
	}
	r.env.Store.PrefetchPiece(p.entry(first).at)
	return record.Record{}, layout.Place{Node: b, Slot: i<<placeBits | first}, layout.NotResident
}

// A place says slot and entry: it has to fit into an int of 32 bits.
const (
	placeBits = 20
	maxPlace  = 1<<placeBits - 1
)

// cached returns the page of slot i of b from the cache. The caller is inside an epoch section.
func (r *root) cached(b *body, i int) (image, bool) {
	h := b.handles[i].Load()
	if h == 0 {
		return nil, false
	}
	p, ok := r.env.Cache.Get(cache.Handle(h))
	if !ok {
		return nil, false
	}
	return p.Raw(), true
}

// GetRead implements layout.Root.
func (r *root) GetRead(s *layout.Scratch, hash uint64, key []byte) (record.Record, bool, error) {
	ok, err := r.search(s, hash, key)
	if !ok {
		return record.Record{}, false, err
	}
	return s.Record, true, nil
}

// GetFrom implements layout.Root.
func (r *root) GetFrom(s *layout.Scratch, at layout.Place, hash uint64, key []byte) (bool, error) {
	b, ok := at.Node.(*body)
	if !ok {
		return r.search(s, hash, key)
	}
	e, ok := r.entryAt(b, at.Slot>>placeBits, at.Slot&maxPlace)
	if !ok || e.hash != hash&keptBits {
		return r.search(s, hash, key)
	}
	same, err := r.readRecord(s, e.at, key)
	if err != nil || same {
		return same && s.Record.Kind != record.Tombstone, err
	}
	return r.search(s, hash, key)
}

// entryAt returns entry j of the page of slot i while it is in the cache.
func (r *root) entryAt(b *body, i, j int) (entry, bool) {
	guard := r.env.Epoch.Enter()
	defer guard.Exit()
	p, ok := r.cached(b, i)
	if !ok || j >= p.len() {
		return entry{}, false
	}
	return p.entry(j), true
}

// search looks a key up, reading what it takes. The record is left in s.
func (r *root) search(s *layout.Scratch, hash uint64, key []byte) (bool, error) {
	if len(r.groups) == 0 {
		return false, nil
	}
	q := pageOf(hash, r.depth)
	b, err := r.load(&s.Blob, int(q/groupSlots))
	if err != nil {
		return false, err
	}
	m := r.hash.reader()
	defer r.hash.readers.Put(m)
	damage := r.candidates(m, b, q, hash)
	for i := range m.found {
		same, err := r.readRecord(s, m.found[i], key)
		if err != nil {
			return false, err // it may be the one that was asked for
		}
		if same {
			return s.Record.Kind != record.Tombstone, nil
		}
	}
	return false, damage
}

// candidates makes m.found the places of the records that may be those of a key with this hash, newest first. What err tells of could not
// be read, and may have older ones.
func (r *root) candidates(m *reader, b *body, q, hash uint64) error {
	m.found = m.found[:0]
	i := int(q % groupSlots)
	if r.findCached(m, b, i, hash) {
		return nil
	}
	if !r.worthKeeping(&b.slots[i]) {
		return r.lookUp(m, b, q, hash)
	}
	err := r.readPage(m, b, q)
	if err == nil {
		r.remember(b, i, m.image)
	}
	m.take(m.image, hash)
	return err
}

// findCached is candidates for a page that is in the cache.
func (r *root) findCached(m *reader, b *body, i int, hash uint64) bool {
	guard := r.env.Epoch.Enter()
	defer guard.Exit()
	p, ok := r.cached(b, i)
	if ok {
		m.take(p, hash)
	}
	return ok
}

// remember puts the image of slot i into the cache, if that has room.
func (r *root) remember(b *body, i int, p image) {
	old := b.handles[i].Load()
	h, err := r.env.Cache.InsertBytes(p)
	if err == nil && !b.handles[i].CompareAndSwap(old, uint64(h)) {
		r.env.Cache.Drop(h)
	}
}

// worthKeeping reports whether a page that is not in the cache should be brought there: every one as long as all of them fit, if others are
// like this one, and else those that are asked for again and again.
func (r *root) worthKeeping(t *slot) bool {
	if w := r.leaving.Load(); w != nil && !w.Aborted() {
		return false
	}
	return r.resident(t) < r.env.Cache.Limit()/10*9 || r.env.Cache.Admit(t.name())
}

// resident is about what all pages take in the cache when they are like one of them.
func (r *root) resident(t *slot) int64 {
	return r.count * int64(t.base.Length+frameBytes) / int64(max(t.count, 1))
}

// frameBytes is about what the cache has around a page.
const frameBytes = 128

// makeRoom drops the page that another one is about to replace, where the cache has no room for both versions of all pages: it would give up
// pages that stay, and readers of the old root come by but for a moment more.
func (r *root) makeRoom(t *slot, handle uint64) {
	if handle != 0 && 2*r.resident(t) > r.env.Cache.Limit() {
		r.env.Cache.Drop(cache.Handle(handle))
	}
}

// name is what the cache knows the page by when it counts how often it was asked for.
func (t *slot) name() uint64 {
	if n := len(t.deltas); n > 0 {
		return t.deltas[n-1].Sum
	}
	return t.base.Sum
}

// readRecord reads the record at a place, and reports whether it is that of key. Whatever is there has the hash of key.
func (r *root) readRecord(s *layout.Scratch, at segment.Piece, key []byte) (same bool, err error) {
	_, found, err := r.readPiece(s, at)
	if err != nil || bytes.Equal(found, key) {
		return err == nil, err
	}
	return false, r.sameHash(at, found, record.Hash(r.keyspace, key))
}

// readEntry reads the record of an entry into s, and returns its piece and its key, which lie there too.
func (r *root) readEntry(s *layout.Scratch, e entry) (piece, key []byte, err error) {
	if piece, key, err = r.readPiece(s, e.at); err == nil {
		err = r.sameHash(e.at, key, e.hash)
	}
	return piece, key, err
}

// readPiece reads the record at a place into s.
func (r *root) readPiece(s *layout.Scratch, at segment.Piece) (piece, key []byte, err error) {
	piece, err = r.env.Store.ReadPiece(at, r.keyspace, &s.Blob)
	if err != nil {
		return nil, nil, fmt.Errorf("keyspace %d: %w", r.keyspace, err)
	}
	if key, err = parsePiece(piece, &s.Record); err != nil {
		return nil, nil, r.badPiece(at, err)
	}
	return piece, key, nil
}

// sameHash tells that the record at a place, which has a key, is not one that the index can mean with a hash: what it means is lost.
func (r *root) sameHash(at segment.Piece, key []byte, hash uint64) error {
	if found := record.Hash(r.keyspace, key); (found^hash)&keptBits != 0 {
		return r.badPiece(at, fmt.Errorf("record of key %x, whose hash is %016x, the index says %016x", key, found, hash&keptBits))
	}
	return nil
}

// badPiece is the error for a record that verifies and makes no sense.
func (r *root) badPiece(at segment.Piece, err error) error {
	return fmt.Errorf("keyspace %d: %w", r.keyspace,
		corrupt.New(segment.FilePath(at.Segment), int64(at.Offset), int64(at.Length), "%v", err))
}

// load returns the body of group g, reading it when it is not in memory.
func (r *root) load(buf *segment.Buffer, g int) (*body, error) {
	group := r.groups[g]
	if b := group.body.Load(); b != nil {
		return b, nil
	}
	b, err := r.readGroup(buf, group.ptr)
	if err != nil {
		return nil, err
	}
	if !group.body.CompareAndSwap(nil, b) {
		return group.body.Load(), nil
	}
	r.env.Inner.Add(b.memory())
	return b, nil
}

// readGroup reads a group from the disk.
func (r *root) readGroup(buf *segment.Buffer, p segment.Pointer) (*body, error) {
	raw, err := r.readBlob(buf, p, segment.KindInner)
	if err != nil {
		return nil, err
	}
	b, err := decodeGroup(raw, slotsOf(r.depth))
	if err != nil {
		return nil, r.badBlob(p, err)
	}
	return b, nil
}

// readBlob reads a blob that must be of the given kind and of this keyspace.
func (r *root) readBlob(buf *segment.Buffer, p segment.Pointer, kind segment.Kind) ([]byte, error) {
	raw, h, err := r.env.Store.Read(p, buf)
	if err != nil {
		return nil, fmt.Errorf("keyspace %d: %w", r.keyspace, err)
	}
	if h.Kind != kind || h.Keyspace != r.keyspace {
		return nil, r.badBlob(p, fmt.Errorf("a blob of kind %d of keyspace %d, want kind %d", h.Kind, h.Keyspace, kind))
	}
	return raw, nil
}

// badBlob is the error for a blob that verifies and makes no sense.
func (r *root) badBlob(p segment.Pointer, err error) error {
	return fmt.Errorf("keyspace %d: %w", r.keyspace,
		corrupt.New(segment.FilePath(p.Segment), int64(p.Offset), int64(p.Length), "%v", err))
}

// Leaf implements layout.Root: there are none.
func (r *root) Leaf([]byte) (page.Page, bool) { return page.Page{}, false }

// Records implements layout.Root.
func (r *root) Records() (n int64, exact bool) { return r.count, !r.open }

// MayLieIn implements layout.Root. Records go to pages by their hashes: each page has some in nearly all segments.
func (r *root) MayLieIn(segments *segment.Set) bool { return len(r.groups) > 0 && !segments.Empty() }

// MayHide implements layout.Root.
func (r *root) MayHide(now uint64) bool { return r.expiry != 0 && r.expiry <= now }

// Empty implements layout.Root.
func (r *root) Empty() bool { return r.count == 0 && !r.open }
