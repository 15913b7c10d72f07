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
	lists   [][]byte // of keys; one of each size
	closed  bool
}

// New is the function New, with memory of the pool if it has some of that size, now or at the time of the first record. When the table is
// freed, the pool may keep its memory.
func (p *Pool) New(limit int) (*Table, error) { return emptyTable(limit, p, p) }

// NewLater is New for a table that may wait for its first record: it takes the memory of earlier ones then, unless that has been given
// away meanwhile.
func (p *Pool) NewLater(limit int) (*Table, error) { return emptyTable(limit, nil, p) }

// Waiting is how many bytes there are for the next table that the system has provided already.
func (p *Pool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.touched
}

// Give moves to memory, of whole huge pages, as much of what waits for the next table: it has been provided already, which takes longer
// than all that the table will write to it. Where there is less, or the system cannot do that, it is false and nothing happens.
func (p *Pool) Give(memory []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := p.touched &^ (offheap.HugePage - 1)
	from := end - len(memory)
	if from < 0 || !offheap.Move(memory, p.block[from:end]) {
		return false
	}
	p.touched = from
	return true
}

// Release gives the memory back to the system.
func (p *Pool) Release() {
	p.mu.Lock()
	blocks := slices.Concat(p.indexes, p.lists, [][]byte{p.block})
	p.block, p.touched, p.indexes, p.lists = nil, 0, nil, nil
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
	block := p.takeOne(&p.indexes, n)
	clear(block)
	return block
}

// putIndex takes the memory of an index back.
func (p *Pool) putIndex(block []byte) {
	if p != nil {
		block = p.keepOne(&p.indexes, block)
	}
	giveBack(block)
}

// takeList returns n bytes, of any content; nil when there are none of that size.
func (p *Pool) takeList(n int) []byte {
	if p == nil {
		return nil
	}
	return p.takeOne(&p.lists, n)
}

// putList takes the memory of a list of keys back.
func (p *Pool) putList(block []byte) {
	if p != nil {
		block = p.keepOne(&p.lists, block)
	}
	giveBack(block)
}

// takeOne takes the block of n bytes out of some; nil if there is none.
func (p *Pool) takeOne(blocks *[][]byte, n int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(*blocks, func(b []byte) bool { return len(b) == n })
	if i < 0 {
		return nil
	}
	block := (*blocks)[i]
	*blocks = slices.Delete(*blocks, i, i+1)
	return block
}

// keepOne adds a block to some, unless there is one of its size: a table has one of each. It returns what is not kept.
func (p *Pool) keepOne(blocks *[][]byte, block []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(block) == 0 || p.closed || slices.ContainsFunc(*blocks, func(b []byte) bool { return len(b) == len(block) }) {
		return block
	}
	*blocks = append(*blocks, block)
	return nil
}
