package tree

import (
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

// change is one change to the leaf at hand; its bytes lie in the batch's arena.
type change struct {
	key, value int // where they begin; the value ends where the next key begins
	end        int
	expiry     uint64
	kind       record.Kind
	idle       bool // removes what is not there
}

// batch is the changes to one leaf, copied out of the stream so that they can be looked at twice: once to decide what
// becomes of the leaf, once to do it.
type batch struct {
	arena []byte
	items []change
	dead  int // tombstones
}

// batchOverhead is what a change counts beside its bytes, so that a batch of tiny changes is bounded too.
const batchOverhead = 8

// fill takes the next changes below hi, until they reach limit bytes.
func (b *batch) fill(in *input, hi []byte, limit int) {
	b.arena, b.items, b.dead = b.arena[:0], b.items[:0], 0
	for in.below(hi) && b.size() < limit {
		c := change{key: len(b.arena), kind: in.change.Record.Kind, expiry: in.change.Record.Expiry}
		b.arena = append(b.arena, in.change.Key...)
		c.value = len(b.arena)
		b.arena = append(b.arena, in.change.Record.Value...)
		c.end = len(b.arena)
		b.items = append(b.items, c)
		if c.kind == record.Tombstone {
			b.dead++
		}
		in.next()
	}
}

func (b *batch) size() int { return len(b.arena) + batchOverhead*len(b.items) }

func (b *batch) key(i int) []byte {
	c := &b.items[i]
	return b.arena[c.key:c.value:c.value]
}

func (b *batch) record(i int) record.Record {
	c := &b.items[i]
	return record.Record{Kind: c.kind, Expiry: c.expiry, Value: b.arena[c.value:c.end:c.end]}
}

// dropAbsent removes the tombstones of keys that a filter says are absent.
func (b *batch) dropAbsent(keyspace uint32, filter []byte) {
	if len(filter) == 0 {
		return
	}
	kept := b.items[:0]
	for i, c := range b.items {
		if c.kind != record.Tombstone || filterHas(filter, record.Hash(keyspace, b.key(i))) {
			kept = append(kept, c)
		} else {
			b.dead--
		}
	}
	b.items = kept
}

// hollows reports whether the batch is likely to remove most of a leaf of so many records, as far as the filter of the leaf knows the
// keys of its tombstones. Without a filter only a batch of nothing else is believed: among other changes tombstones may well be those of
// records that came and went since.
func (b *batch) hollows(records int64, keyspace uint32, filter []byte) bool {
	if int64(b.dead)*2 <= records {
		return false
	}
	if len(filter) == 0 {
		return b.dead == len(b.items)
	}
	removed := int64(0)
	for i := range b.items {
		if b.items[i].kind == record.Tombstone && filterHas(filter, record.Hash(keyspace, b.key(i))) {
			if removed++; removed*2 > records {
				return true
			}
		}
	}
	return false
}

// appendTo adds the changes that do something to a delta.
func (b *batch) appendTo(delta *page.Builder) error {
	delta.Reset()
	for i := range b.items {
		if b.items[i].idle {
			continue
		}
		if err := delta.Add(b.key(i), b.record(i)); err != nil {
			return err
		}
	}
	return nil
}
