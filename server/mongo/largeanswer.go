package mongo

import (
	"slices"
	"sync"
)

// An answer of many documents grows as they come. Memory that is new costs more than all that is put into it, so large answers are made
// in what earlier ones have left: of sizes that double, as an answer in memory that is much larger than itself would take more than it
// has asked its budget for.

// keptBuffer is the largest buffer that a connection keeps between answers, as long as messages come.
const keptBuffer = 1 << 20

// largeSizes are the sizes of larger buffers. Into the largest goes any batch, with a document that turns out to be too much.
func largeSizes() [4]int { return [...]int{2 << 20, 4 << 20, 8 << 20, maxBatchBytes + 256<<10} }

// largeBuffers is buffers that nobody uses.
type largeBuffers [4]sync.Pool // of *[]byte, by their sizes

// get returns an empty buffer that is larger than n bytes; nil: there are none of that size.
func (p *largeBuffers) get(n int) []byte {
	for i, size := range largeSizes() {
		if size <= n {
			continue
		}
		if b, ok := p[i].Get().(*[]byte); ok {
			return *b
		}
		return make([]byte, 0, size)
	}
	return nil
}

// put takes a buffer, if it is one of the sizes.
func (p *largeBuffers) put(b []byte) {
	sizes := largeSizes()
	if i := slices.Index(sizes[:], cap(b)); i >= 0 {
		b = b[:0]
		p[i].Put(&b)
	}
}

// larger returns an answer that is being made in twice the room, if there is to be so much. A buffer that the connection may keep is
// there for its next answer.
func (c *conn) larger(out []byte) []byte {
	if n := 2 * cap(out); n <= keptBuffer {
		return append(make([]byte, 0, n), out...) // Grow would find room for a quarter more, and nobody would keep the last one
	}
	to := c.server.large.get(cap(out))
	if to == nil {
		return out
	}
	to = append(to, out...)
	if cap(out) <= keptBuffer {
		c.kept = out[:0]
	} else {
		c.server.large.put(out)
	}
	return to
}

// giveUpLarge gives up what a large answer was made in.
func (c *conn) giveUpLarge() {
	if cap(c.out) > keptBuffer {
		c.server.large.put(c.out)
		c.out = c.kept
	}
	c.kept = nil
}

// sent gives up what is too large to be kept for the next answer.
func (c *conn) sent() {
	c.giveUpLarge()
	if cap(c.packed) > keptBuffer {
		c.packed = nil
	}
}

// trim has a connection give up its buffers when sweep comes for the second time and there was no message: there may be tens of thousands
// of connections that once had large messages, and most of them are silent.
func (c *conn) trim() {
	if !c.memory.TryLock() {
		return // it is at work
	}
	defer c.memory.Unlock()
	if c.silent++; c.silent != 2 || c.reader == nil {
		return
	}
	c.reader.Idle()
	c.out, c.kept, c.packed, c.args = nil, nil, nil, nil
}

// trim has silent connections give up their buffers.
func (t *connectionTable) trim() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.list {
		c.trim()
	}
}
