package hash

import (
	"encoding/binary"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// change is what a chunk knows of a change: its record has been written by then.
type change struct {
	key   uint32 // where the key lies in the chunk
	flags uint32 // length of the key, and changeApart, changeExpires
	at    segment.Piece
}

const (
	changeApart   = 1 << 30 // the value lies apart
	changeExpires = 1 << 31 // the expiry stands in front of the key
	changeLength  = 1<<30 - 1
)

// removes reports whether the change is a tombstone.
func (c *change) removes() bool { return c.at.Length == 0 }

// ranked is a change in its place among those sorted by hash.
type ranked struct {
	hash uint64
	at   uint32
}

// chunk is a number of changes, which come sorted by key and are needed sorted by hash. As many are taken at a time as fit into bounded
// memory; their records are written as they come.
type chunk struct {
	order   []ranked
	changes []change
	keys    []byte
	pieces  pieces
	other   []ranked // memory to sort in
}

const (
	changeBytes   = 56 // memory of a change besides its key
	leastChunk    = 1 << 20
	mostChunk     = 32 << 20
	chunkOfBudget = 8 // a chunk takes this part of the page cache's budget
	// keptChunk is how much memory is kept for the next Apply at the least, and with a large budget half of what a chunk may take: memory
	// that nobody has used takes longer than what is done in it.
	keptChunk = 4 << 20
)

// takeChunk returns a chunk, and keepChunk takes it back.
func (h *Hash) takeChunk() *chunk {
	if c := h.chunk.Swap(nil); c != nil {
		c.pieces.raw, c.pieces.ends = c.pieces.raw[:0], c.pieces.ends[:0] // of an Apply that failed
		return c
	}
	return new(chunk)
}

func (h *Hash) keepChunk(c *chunk, env *layout.Environment) {
	if cap(c.changes)*changeBytes+cap(c.keys) <= max(keptChunk, chunkBytes(env)/2) {
		h.chunk.Store(c)
	}
}

// chunkBytes is how much memory a chunk may take.
func chunkBytes(env *layout.Environment) int {
	return int(min(max(env.Cache.Limit()/chunkOfBudget, leastChunk), mostChunk))
}

// change returns the change of rank i with its key and expiry.
func (c *chunk) change(i int) (t *change, key []byte, expiry uint64) {
	t = &c.changes[c.order[i].at]
	key = c.keys[t.key:]
	if t.flags&changeExpires != 0 {
		expiry, key = binary.LittleEndian.Uint64(key), key[8:]
	}
	return t, key[:t.flags&changeLength], expiry
}

// fill takes the next changes, writes their records, and sorts them by hash. It is false when there were none.
func (a *applier) fill(changes layout.Changes) (bool, error) {
	c, most := a.chunk, chunkBytes(a.root.env)
	c.order, c.changes, c.keys = c.order[:0], c.changes[:0], c.keys[:0]
	if changes == nil || a.ended {
		return false, nil
	}
	written := 0 // changes whose place is known
	for len(c.changes)*changeBytes+len(c.keys) < most {
		if a.ended = !changes.Next(); a.ended {
			break
		}
		if len(c.changes)%1024 == 0 && a.ctx.Err() != nil {
			return false, a.ctx.Err()
		}
		in := changes.Change()
		c.order = append(c.order, ranked{record.Hash(a.root.keyspace, in.Key), uint32(len(c.order))})
		c.add(in)
		if len(c.pieces.raw) >= piecesBytes {
			if err := a.writePieces(written); err != nil {
				return false, err
			}
			written = len(c.changes)
		}
	}
	if err := a.writePieces(written); err != nil {
		return false, err
	}
	c.sort()
	return len(c.changes) > 0, a.w.Flush() // records that one of the next changes replaces have to be readable
}

// add takes one change.
func (c *chunk) add(in *layout.Change) {
	t := change{key: uint32(len(c.keys)), flags: uint32(len(in.Key))}
	if r := &in.Record; r.Kind != record.Tombstone {
		t.at.Length = uint32(c.pieces.add(in.Key, r))
		if r.Kind == record.Apart {
			t.flags |= changeApart
		}
		if r.Expiry != 0 {
			t.flags |= changeExpires
			c.keys = binary.LittleEndian.AppendUint64(c.keys, r.Expiry)
		}
	}
	c.keys = append(c.keys, in.Key...)
	c.changes = append(c.changes, t)
}

// sort sorts the changes by hash: byte by byte, from the last of those that matter, which for some ten thousand evenly spread numbers takes a
// third of what comparing them does.
func (c *chunk) sort() {
	if cap(c.other) < len(c.order) {
		c.other = make([]ranked, len(c.order), cap(c.order))
	}
	from, to := c.order, c.other[:len(c.order)]
	for shift := 64 - sortBits; shift < 64; shift += 8 {
		var ends [257]int
		for i := range from {
			ends[int(byte(from[i].hash>>shift))+1]++
		}
		for b := range 256 {
			ends[b+1] += ends[b]
		}
		for i := range from {
			b := byte(from[i].hash >> shift)
			to[ends[b]] = from[i]
			ends[b]++
		}
		from, to = to, from
	}
	c.order, c.other = from, to
}

const (
	sortBits   = 40 // bits of a hash that are sorted by: all that pages keep
	sortedBits = (1<<sortBits - 1) << (64 - sortBits)
)

// writePieces writes the records of the changes from one on.
func (a *applier) writePieces(from int) error {
	first, err := a.appendPieces(&a.chunk.pieces)
	if err != nil {
		return err
	}
	list := a.chunk.changes[from:]
	for i := range list {
		if n := list[i].at.Length; n > 0 {
			list[i].at = segment.Piece{Segment: first.Segment, Offset: first.Offset, Length: n}
			first.Offset += n
		}
	}
	return nil
}

// pieces are records that will be written together.
type pieces struct {
	raw  []byte
	ends []int
}

// piecesBytes is how much is written together. It is far below the room that a segment has.
const piecesBytes = 128 << 10

// add adds a record and returns the length of its piece.
func (p *pieces) add(key []byte, r *record.Record) int {
	n := len(p.raw)
	p.raw = appendPiece(p.raw, key, r)
	p.ends = append(p.ends, len(p.raw))
	return len(p.raw) - n
}

// addAgain adds a piece that was read.
func (p *pieces) addAgain(piece []byte) {
	p.raw = append(p.raw, piece...)
	p.ends = append(p.ends, len(p.raw))
}

// appendPieces writes what has gathered and returns where the first piece lies.
func (a *applier) appendPieces(p *pieces) (first segment.Piece, err error) {
	if len(p.ends) == 0 {
		return segment.Piece{}, nil
	}
	first, err = a.w.AppendPieces(a.root.keyspace, p.raw, p.ends)
	p.raw, p.ends = p.raw[:0], p.ends[:0]
	return first, err
}
