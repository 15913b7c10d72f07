package memtable

import (
	"sync"

	"github.com/pandodb/pando/internal/offheap"
)

// Pool hands the memory of a table that has been freed to the next one. What the system gives instead it has to clear, and where it is
// a guest its host may have to find it first: that takes longer than to write the records. The zero Pool is empty and ready for use. All
// methods are safe for concurrent use.
type Pool struct {
	mu      sync.Mutex
	block   []byte
	touched int // how much of block, from its start, somebody has written to
	closed  bool
}

// New is the function New, with memory of the pool if it has some of that size. When the table is freed, the pool may keep its memory.
func (p *Pool) New(limit int) (*Table, error) {
	a, err := newArena(limit, p.take)
	if err != nil {
		return nil, err
	}
	t := emptyTable(a)
	t.pool = p
	return t, nil
}

// Waiting is how many bytes there are for the next table that the system has provided already.
func (p *Pool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.touched
}

// Release gives the memory back to the system.
func (p *Pool) Release() {
	block, _ := p.take(p.size())
	// An error would mean that the block is not one; then it stays where it is.
	_ = offheap.Free(block)
}

// Close is Release for good: what is freed later goes to the system.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Release()
}

// size is the length of the block, 0 when there is none.
func (p *Pool) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.block)
}

// take returns a block of n bytes and how much of it has been touched; nil when there is none.
func (p *Pool) take(n int) (block []byte, touched int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.block) != n {
		return nil, 0
	}
	block, touched = p.block, p.touched
	p.block, p.touched = nil, 0
	return block, touched
}

// put takes a block back. Of two the one is kept that saves the system more.
func (p *Pool) put(block []byte, touched int) {
	p.mu.Lock()
	if touched > p.touched && !p.closed {
		block, p.block, p.touched = p.block, block, touched
	}
	p.mu.Unlock()
	_ = offheap.Free(block)
}
