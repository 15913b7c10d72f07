package hash

import (
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// change is what a chunk knows of a change: its record has been written by then.
type change struct {
	hash   uint64
	expiry uint64
	key    uint32 // where the key lies in the chunk
	length uint32 // of the key
	at     segment.Piece
	apart  bool
}

// removes reports whether the change is a tombstone.
func (c *change) removes() bool { return c.at.Length == 0 }

// chunk is a number of changes, which come sorted by key and are needed sorted by hash. As many are taken at a time as fit into bounded
// memory; their records are written as they come.
type chunk struct {
	changes []change
	keys    []byte
	pieces  pieces
	ended   bool // there are no further changes

	other []change // memory to sort in
	order [2][]ranked
}

const (
	changeBytes   = 48 // memory of a change besides its key
	leastChunk    = 1 << 20
	mostChunk     = 32 << 20
	chunkOfBudget = 8 // a chunk takes this part of the page cache's budget
)

// chunkBytes is how much memory a chunk may take.
func (a *applier) chunkBytes() int {
	return int(min(max(a.root.env.Cache.Stats().Limit/chunkOfBudget, leastChunk), mostChunk))
}

func (c *chunk) key(i int) []byte {
	t := &c.changes[i]
	return c.keys[t.key : t.key+t.length]
}

// fill takes the next changes, writes their records, and sorts them by hash. It is false when there were none.
func (a *applier) fill(changes layout.Changes) (bool, error) {
	c, most := &a.chunk, a.chunkBytes()
	c.changes, c.keys = c.changes[:0], c.keys[:0]
	if changes == nil || c.ended {
		return false, nil
	}
	written := 0 // changes whose place is known
	for len(c.changes)*changeBytes+len(c.keys) < most {
		if c.ended = !changes.Next(); c.ended {
			break
		}
		if len(c.changes)%1024 == 0 && a.ctx.Err() != nil {
			return false, a.ctx.Err()
		}
		in := changes.Change()
		t := change{hash: record.Hash(a.root.keyspace, in.Key), key: uint32(len(c.keys)), length: uint32(len(in.Key))}
		c.keys = append(c.keys, in.Key...)
		if in.Record.Kind != record.Tombstone {
			t.expiry, t.apart = in.Record.Expiry, in.Record.Kind == record.Apart
			t.at.Length = uint32(c.pieces.add(in.Key, &in.Record))
		}
		c.changes = append(c.changes, t)
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

// ranked is a change on its way to its place among those sorted by hash.
type ranked struct {
	hash uint64
	at   uint32
}

// sort sorts the changes by hash: byte by byte, from the last of those that matter, which for some ten thousand evenly spread numbers takes a
// third of what comparing them does.
func (c *chunk) sort() {
	from, to := c.order[0][:0], append(c.order[1][:0], make([]ranked, len(c.changes))...)
	for i := range c.changes {
		from = append(from, ranked{c.changes[i].hash, uint32(i)})
	}
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
	c.other = c.other[:0]
	for i := range from {
		c.other = append(c.other, c.changes[from[i].at])
	}
	c.changes, c.other = c.other, c.changes
	c.order = [2][]ranked{from, to}
}

// sortBits is how many bits of a hash are sorted by: all that pages keep.
const sortBits = 40

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
	a.progress(len(p.raw))
	p.raw, p.ends = p.raw[:0], p.ends[:0]
	return first, err
}
