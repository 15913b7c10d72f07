package cache

import (
	"math/bits"
	"sync/atomic"
)

// askedBytes is how much of the cache one word of Admit's memory stands for, so that there are about half as many as pages. More
// would let in more that is not asked for again: what is read at random costs several times as much when it is brought in.
const askedBytes = 32 << 10

// newAsked makes the memory of Admit.
func newAsked(bytes int64) []atomic.Uint32 {
	n := uint64(min(max(bytes, 0), maxChunks<<maxShift) / askedBytes)
	return make([]atomic.Uint32, 1<<max(bits.Len64(n), minAskedBits))
}

const minAskedBits = 6

// crowd notes that pages are evicted to make room: from now on Admit chooses. c.mu is held.
func (c *Cache) crowd() {
	if c.asked == nil {
		c.asked = newAsked(c.bytes)
	}
	c.crowded.Store(true)
}

// admitAt is the question at which a page is let in: the third. What is asked for twice by chance among far more than fits would
// cost an insertion, which takes as long as several reads of single records from the disk, and evict what is as good.
const admitAt = 3

// askedBits is the part of a word that counts questions; the rest names the page.
const askedBits = 2

// Admit reports whether a page that was just read from disk should be inserted, given a hash that names it. While there is room
// every page should; after that only one that was asked for several times, each about half as many questions ago as the cache
// has pages, or less. So pages that are read once, by a walk or at random from far more than fits, neither cost an insertion each
// nor evict what is read again and again (the doorkeeper of G. Einziger, R. Friedman and B. Manes, "TinyLFU", 2017, in a plain
// form).
func (c *Cache) Admit(name uint64) bool {
	if !c.crowded.Load() {
		return true
	}
	word := &c.asked[name&uint64(len(c.asked)-1)]
	page := uint32(name>>32) &^ (1<<askedBits - 1)
	asked := uint32(1)
	if was := word.Load(); was&^(1<<askedBits-1) == page {
		asked += was - page
	}
	if asked >= admitAt {
		return true
	}
	word.Store(page | asked)
	return false
}
