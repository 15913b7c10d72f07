package memtable

import (
	"slices"
	"sync"

	"github.com/pandodb/pando/internal/offheap"
)

// Pool hands the memory of a table that has been freed to the next one. What the system gives instead it has to clear, and where it is
// a guest its host may have to find it first: that takes longer than to write the records. The zero Pool is empty and ready for use. All
// methods are safe for concurrent use.
type Pool struct {
	mu      sync.Mutex
	block   []byte
	touched int      // how much of block, from its start, somebody has written to
	indexes [][]byte // one of each size
	closed  bool
}

// New is the function New, with memory of the pool if it has some of that size, now or at the time of the first record. When the table is
// freed, the pool may keep its memory.
func (p *Pool) New(limit int) (*Table, error) { return emptyTable(limit, p) }

// Waiting is how many bytes there are for the next table that the system has provided already.
func (p *Pool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.touched
}

// Release gives the memory back to the system.
func (p *Pool) Release() {
	p.mu.Lock()
	blocks := append(p.indexes, p.block)
	p.block, p.touched, p.indexes = nil, 0, nil
	p.mu.Unlock()
	for _, block := range blocks {
		giveBack(block)
	}
}

// giveBack frees a block. An error would mean that it is not one; then it stays where it is.
func giveBack(block []byte) { _ = offheap.Free(block) }

// Close is Release for good: what is freed later goes to the system.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Release()
}

// take returns a block of n bytes and how much of it has been touched; nil when there is none. A nil pool has none.
func (p *Pool) take(n int) (block []byte, touched int) {
	if p == nil {
		return nil, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.block) != n {
		return nil, 0
	}
	block, touched = p.block, p.touched
	p.block, p.touched = nil, 0
	return block, touched
}

// put takes a block back. Of two the one is kept that saves the system more. A nil pool keeps none.
func (p *Pool) put(block []byte, touched int) {
	if p != nil {
		p.mu.Lock()
		if touched > p.touched && !p.closed {
			block, p.block, p.touched = p.block, block, touched
		}
		p.mu.Unlock()
	}
	giveBack(block)
}

// takeIndex returns n zeroed bytes; nil when there are none of that size.
func (p *Pool) takeIndex(n int) []byte {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	i := slices.IndexFunc(p.indexes, func(b []byte) bool { return len(b) == n })
	if i < 0 {
		p.mu.Unlock()
		return nil
	}
	block := p.indexes[i]
	p.indexes = slices.Delete(p.indexes, i, i+1)
	p.mu.Unlock()
	clear(block)
	return block
}

// putIndex takes the memory of an index back. Of those of one size one is kept: a table has one of each.
func (p *Pool) putIndex(block []byte) {
	if p != nil && len(block) > 0 {
		p.mu.Lock()
		if !p.closed && !slices.ContainsFunc(p.indexes, func(b []byte) bool { return len(b) == len(block) }) {
			p.indexes = append(p.indexes, block)
			block = nil
		}
		p.mu.Unlock()
	}
	giveBack(block)
}
