package view

import (
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

// The pair that an iterator stands on, and those that follow it, lie in its batch. To decode several of a page or of a memtable at once
// takes a part of the instructions of a step for each, and a caller who reads a key does not wait for what has just been stored of it.

// firstBatch is how many pairs the first batch of a walk has: a walk may be short.
const firstBatch = 4

// grow is how many pairs to decode: twice as many as last time, where the walk goes on.
func (it *Iterator) grow() int {
	it.grown = min(max(2*it.grown, firstBatch), page.BatchMost)
	return it.grown
}

// here is the pair that the iterator stands on.
func (it *Iterator) here() *record.Pair { return &it.batch.Pairs[it.n&(page.BatchMost-1)] }

// decodeForward shows the entry of the settled page to which a fast step has led, and decodes some of those behind it.
func (it *Iterator) decodeForward() bool {
	s := &it.settled
	to := min(s.at+it.grow(), it.run)
	for kind := record.Inline; kind <= record.Apart; kind++ {
		if n := it.batch.Fill(s.page, s.at, to, kind); n > 0 {
			it.begin, it.n = s.at, 0
			it.holds(n, kind)
			return true
		}
	}
	it.loadEntry()
	return it.plain && it.expiry == 0 || it.takeRare()
}

// decodeBackward is decodeForward for the walk backward. What the batch cannot have in the midst of the entries is before it.
func (it *Iterator) decodeBackward() bool {
	s := &it.settled
	from := max(s.at+1-it.grow(), it.floor)
	for kind := record.Inline; kind <= record.Apart; kind++ {
		if n := it.fillBackward(from, kind); n > 0 {
			it.holds(n, kind)
			return true
		}
	}
	it.loadEntry()
	return it.plain && it.expiry == 0 || it.takeBackward(true)
}

// fillBackward fills the batch with entries of a kind up to that which the settled source stands on, none of them before from, and
// returns how many those are; 0: that one is of another kind.
func (it *Iterator) fillBackward(from int, kind record.Kind) int {
	s := &it.settled
	for ; from <= s.at; from++ {
		n := it.batch.Fill(s.page, from, s.at+1, kind)
		if from+n > s.at {
			it.begin, it.n = from, n-1
			return n
		}
		from += n
	}
	return 0
}

// holds notes that the batch has n pairs of a kind: Inline, or settled ones that are Apart.
func (it *Iterator) holds(n int, kind record.Kind) {
	it.ready, it.plain, it.kind, it.expiry, it.read = n, it.fast && kind == record.Inline && !it.o.KeysOnly, kind, 0, noPair
}

// alone leaves nothing in the batch but the pair that the iterator stands on.
func (it *Iterator) alone() {
	p := *it.here()
	it.begin, it.n, it.ready, it.read = it.begin+it.n, 0, 0, noPair
	it.batch.Pairs[0] = p
}

// loadEntry decodes the entry of the settled page under the cursor alone, and shows it.
func (it *Iterator) loadEntry() {
	it.settled.load()
	it.showEntry()
}

// showEntry shows what the settled source stands on, from where fast steps go on.
func (it *Iterator) showEntry() {
	it.begin, it.n, it.ready = it.settled.at, 0, 0
	it.showSettled()
}

// show shows a pair to which merged sources lead. It is alone in the batch, where n and ready are 0.
func (it *Iterator) show(key []byte, r record.Record) {
	it.plain, it.read, it.at, it.kind, it.expiry = false, noPair, onPair, r.Kind, r.Expiry
	p := &it.batch.Pairs[0]
	p.Key, p.Value = key, r.Value
}

// showInline and showSettled are show for what most pairs are: field by field, since a record that is put together and copied at once
// stalls the processor longer than all the rest of the step.

func (it *Iterator) showInline(key, value []byte) bool {
	it.plain, it.read, it.at, it.kind, it.expiry = false, noPair, onPair, record.Inline, 0
	p := &it.batch.Pairs[0]
	p.Key, p.Value = key, value
	return true
}

func (it *Iterator) showSettled() {
	s := &it.settled
	it.plain = s.kind == record.Inline && !it.o.KeysOnly
	it.read, it.at, it.kind, it.expiry = noPair, onPair, s.kind, s.expiry
	p := &it.batch.Pairs[0]
	p.Key, p.Value = s.key, s.value
}
