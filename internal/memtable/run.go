package memtable

import (
	"bytes"
	"encoding/binary"
	"math"
)

// entry is a key in a run: the first 8 bytes of what follows the run's prefix, as a big-endian integer padded with
// zeros, and the key's node.
type entry struct {
	head uint64
	node ref
}

const entryBytes = 16

// run is a sorted, immutable list of distinct keys of one keyspace, at least one. All keys begin with the same prefix
// bytes, so that keys with a long common beginning are still told apart by their heads, without a look at the keys.
type run struct {
	entries []entry
	samples []uint64 // the head of every sampleSpacing-th entry, so that a search stays within the processor's caches at first
	prefix  int
	outside bool // the entries lie in a list, which stays
}

// sampleSpacing makes the entries between two samples fill four cache lines.
const sampleSpacing = 16

func makeRun(entries []entry, prefix int) *run {
	return &run{entries: entries, prefix: prefix, samples: appendSamples(make([]uint64, 0, (len(entries)+sampleSpacing-1)/sampleSpacing), entries)}
}

// appendSamples goes on with the samples of entries.
func appendSamples(samples []uint64, entries []entry) []uint64 {
	for i := len(samples) * sampleSpacing; i < len(entries); i += sampleSpacing {
		samples = append(samples, entries[i].head)
	}
	return samples
}

// headAt returns the 8 bytes of key from offset on as a big-endian integer, padded with zeros.
func headAt(key []byte, offset int) uint64 {
	if len(key) >= offset+8 {
		return binary.BigEndian.Uint64(key[offset:])
	}
	var head uint64
	for i := offset; i < len(key); i++ {
		head |= uint64(key[i]) << (56 - 8*(i-offset))
	}
	return head
}

// commonPrefix returns the length of the common beginning of two keys.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for i+8 <= n && binary.LittleEndian.Uint64(a[i:]) == binary.LittleEndian.Uint64(b[i:]) {
		i += 8
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// firstKey is the least key of the run.
func (r *run) firstKey(a *arena) []byte { return a.key(r.entries[0].node) }

func (r *run) lastKey(a *arena) []byte { return a.key(r.entries[len(r.entries)-1].node) }

// search returns the number of keys in the run that are below key.
func (r *run) search(a *arena, key []byte) int {
	prefix := r.firstKey(a)[:r.prefix]
	if c := bytes.Compare(key[:min(len(key), r.prefix)], prefix); c < 0 {
		return 0
	} else if c > 0 {
		return len(r.entries)
	}
	rest := key[r.prefix:]
	head := headAt(rest, 0)
	low, high := r.around(head)
	for low < high {
		mid := int(uint(low+high) >> 1)
		e := r.entries[mid]
		if e.head < head || e.head == head && bytes.Compare(a.key(e.node)[r.prefix:], rest) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// around returns bounds between which the first entry lies that has this head or a higher one, and all that have it.
func (r *run) around(head uint64) (low, high int) {
	i := lowerBound(r.samples, head)
	low, high = max(0, (i-1)*sampleSpacing), i*sampleSpacing
	if i < len(r.samples) && r.samples[i] == head {
		i += lowerBound(r.samples[i:], head+1)
		high = i * sampleSpacing
		if head == math.MaxUint64 {
			high = len(r.entries)
		}
	}
	return low, min(high, len(r.entries))
}

// lowerBound returns the number of sorted values that are below x. It halves without branches, which nobody could predict.
func lowerBound(values []uint64, x uint64) int {
	base, n := 0, len(values)
	for n > 1 {
		half := n >> 1
		next := base
		if values[base+half-1] < x {
			next = base + half
		}
		base, n = next, n-half
	}
	if n == 1 && values[base] < x {
		base++
	}
	return base
}

// lens shows the heads of a run as they would be with a shorter prefix, so that runs with different prefixes can be
// compared. It works out of the run's own prefix and heads, without a look at the keys.
type lens struct {
	top   uint64 // the part of the run's prefix that belongs to each head
	shift uint   // how far the run's heads move down to make room for it, in bits
}

func (r *run) through(a *arena, prefix int) lens {
	return lens{top: headAt(r.firstKey(a)[:r.prefix], prefix), shift: 8 * uint(r.prefix-prefix)}
}

// head returns a head through the lens. A shift of 64 or more leaves nothing of it.
func (l lens) head(head uint64) uint64 { return l.top | head>>l.shift }

// sharedPrefix returns the length of the prefix that all keys of all the runs have in common.
func sharedPrefix(a *arena, runs []*run) int {
	first := runs[0].firstKey(a)
	prefix := runs[0].prefix
	for _, r := range runs[1:] {
		prefix = min(r.prefix, commonPrefix(first[:prefix], r.firstKey(a)))
	}
	return prefix
}

// merged returns one run of the keys of two, the older of which nobody else will merge: where keys come in order it goes on in the same
// array, in which those who have the older run do not look so far.
func merged(a *arena, x, y *run) *run {
	prefix := sharedPrefix(a, []*run{x, y})
	if prefix == x.prefix && bytes.Compare(x.lastKey(a), y.firstKey(a)) < 0 {
		entries := appendThrough(x.entries, y.entries, y.through(a, prefix))
		return &run{entries: entries, samples: appendSamples(x.samples, entries), prefix: prefix}
	}
	out := make([]entry, 0, len(x.entries)+len(y.entries))
	lx, ly := x.through(a, prefix), y.through(a, prefix)
	if bytes.Compare(x.lastKey(a), y.firstKey(a)) > 0 {
		if bytes.Compare(y.lastKey(a), x.firstKey(a)) < 0 {
			x, y, lx, ly = y, x, ly, lx
		} else {
			return makeRun(mergeEntries(a, out, x.entries, y.entries, lx, ly, prefix), prefix)
		}
	}
	return makeRun(appendThrough(appendThrough(out, x.entries, lx), y.entries, ly), prefix)
}

func mergeEntries(a *arena, out, x, y []entry, lx, ly lens, prefix int) []entry {
	hx, hy := lx.head(x[0].head), ly.head(y[0].head)
	for {
		before := hx < hy
		if hx == hy {
			before = bytes.Compare(a.key(x[0].node)[prefix:], a.key(y[0].node)[prefix:]) < 0
		}
		if before {
			out = append(out, entry{hx, x[0].node})
			if x = x[1:]; len(x) == 0 {
				return appendThrough(out, y, ly)
			}
			hx = lx.head(x[0].head)
			continue
		}
		out = append(out, entry{hy, y[0].node})
		if y = y[1:]; len(y) == 0 {
			return appendThrough(out, x, lx)
		}
		hy = ly.head(y[0].head)
	}
}

func appendThrough(out, entries []entry, l lens) []entry {
	if l == (lens{}) {
		return append(out, entries...)
	}
	for _, e := range entries {
		out = append(out, entry{l.head(e.head), e.node})
	}
	return out
}
