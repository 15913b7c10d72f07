package memtable

// The records of a walk lie anywhere in the arena. A cursor loads those that it is about to reach into the processor's caches,
// a batch at a time, so that their misses overlap.

const (
	warmFirst = 4  // entries of the first batch: a walk may be short
	warmMost  = 64 // entries of a batch when the walk has turned out to be long
	warmLine  = 16 // words of a line of the cache
	warmLines = 8  // of a value; beyond that the processor has noticed by itself

	// warmSlack is memory behind the last item that warmUp may read.
	warmSlack = 3 * 4 * warmLine
)

// batch is the batch of entries that was loaded last.
type batch struct {
	from int
	size uint
}

// holds reports whether entry i has been loaded.
func (w *batch) holds(i int) bool { return uint(i-w.from) < w.size }

// forward makes w the batch that begins with entry i of n, and returns where it ends.
func (w *batch) forward(i, n int) (end int) {
	size := w.next(i == w.from+int(w.size))
	end = min(i+size, n)
	w.from, w.size = i, uint(end-i)
	return end
}

// backward makes w the batch that ends before entry i, and returns where it begins.
func (w *batch) backward(i int) (from int) {
	size := w.next(i == w.from)
	from = max(0, i-size)
	w.from, w.size = from, uint(i-from)
	return from
}

// next is how large a batch to take: twice the last one, where the walk goes on.
func (w *batch) next(goesOn bool) int {
	if !goesOn {
		return warmFirst
	}
	return min(max(2*int(w.size), warmFirst), warmMost)
}

// warmUp loads what reading these entries will. The loads of the first pass depend on nothing but the entries, so that the
// processor runs ahead through all of them: it takes records to be as long as those of the batch before, up to three lines from their
// node on. Further passes load what lies elsewhere, where there is any: newer versions, of which the same holds, and the rest of long
// values.
//
// What the first pass reads may be another item, or may be about to be written. Nothing is made of it, so this is not the
// race that it looks like to the race detector.
//
//go:norace
func (c *Cursor) warmUp(entries []entry) {
	a := c.arena
	var sum uint32
	end := c.span
	if end == 0 {
		end = 2*warmLine + 2
	}
	second, third := min(1+warmLine, end-1), min(1+2*warmLine, end-1)
	for i := range entries {
		node := entries[i].node
		sum += *a.word(node, 1) + *a.word(node, second) + *a.word(node, third) + *a.word(node, end-1)
	}
	farthest, longest := ref(0), uint32(0)
	for i := range entries {
		version := a.newest(entries[i].node)
		meta := *a.word(version, 1)
		farthest, longest = max(farthest, version-entries[i].node), max(longest, meta&metaLength)
		sum += meta
	}
	c.span = min(uintptr(farthest)*2+(versionHeader+uintptr(longest)+3)/4, warmSlack/4)
	if farthest > warmSlack/8 {
		for i := range entries {
			version := a.newest(entries[i].node)
			sum += *a.word(version, 1+warmLine) + *a.word(version, 1+2*warmLine)
		}
	}
	if longest > warmSlack-versionHeader {
		sum += c.warmLong(entries)
	}
	c.warm += sum
}

// warmLong loads the values of entries to their ends.
func (c *Cursor) warmLong(entries []entry) (sum uint32) {
	a := c.arena
	for i := range entries {
		version := a.newest(entries[i].node)
		end := min(uintptr(a.writtenVersionSize(version))/4, warmLines*warmLine) - 1
		for at := uintptr(warmLine); at < end; at += warmLine {
			sum += *a.word(version, at)
		}
		sum += *a.word(version, end)
	}
	return sum
}
