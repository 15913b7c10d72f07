package page

import (
	"bytes"
	"slices"
	"unsafe"

	"github.com/pandodb/pando/internal/pageformat"
	"github.com/pandodb/pando/internal/record"
)

// Get returns the record of key, whose hash in the page's keyspace is given. It is the point look-up: two dependent cache
// misses, the slot's and the entry's. The record's value aliases the page.
func (p Page) Get(hash uint64, key []byte) (record.Record, bool) {
	e := p.locate(hash, key)
	if e == nil {
		return record.Record{}, false
	}
	data, n, meta := decodeCommon(e)
	if n >= 0x80 || meta&(pageformat.FlagExpiry|pageformat.FlagTombstone) != 0 {
		_, r := decodeTrusted(e)
		return r, true
	}
	return record.Record{
		Kind:  record.Inline + record.Kind(meta&pageformat.FlagApart),
		Value: unsafe.Slice((*byte)(unsafe.Add(data, n)), meta>>pageformat.FlagBits),
	}, true
}

// Lookup returns the index of key, whose hash in the page's keyspace is given. Who needs but the record asks Get, which
// need not find out at which index the entry lies.
func (p Page) Lookup(hash uint64, key []byte) (i int, ok bool) {
	e := p.locate(hash, key)
	if e == nil {
		return 0, false
	}
	i, _ = slices.BinarySearch(p.offsets(), uint32(uintptr(e)-uintptr(p.entries())))
	return i, true
}

// locate is the address of key's entry, nil if there is none.
func (p Page) locate(hash uint64, key []byte) unsafe.Pointer {
	if p.header().slots.Load() != slotsFilled {
		return p.locateSearching(hash, key)
	}
	mask := uint64(1)<<(p.bits&63) - 1
	for i := hash >> ((64 - p.bits) & 63); ; i = (i + 1) & mask {
		slot := *p.slot(i)
		if slot == 0 {
			return nil
		}
		if (slot^uint32(hash)<<offsetBits)>>offsetBits != 0 {
			continue
		}
		e := unsafe.Add(p.entries(), slot&offsetMask)
		suffix, prefix := suffixAt(e), p.Prefix()
		if len(key) == len(prefix)+len(suffix) &&
			string(key[len(prefix):]) == string(suffix) && string(key[:len(prefix)]) == string(prefix) {
			return e
		}
	}
}

// Search returns the index of the first key that is not less than key, Len if there is none, and whether it is key itself.
func (p Page) Search(key []byte) (i int, exact bool) {
	prefix := p.Prefix()
	if len(key) < len(prefix) || string(key[:len(prefix)]) != string(prefix) {
		if bytes.Compare(key, prefix) < 0 {
			return 0, false
		}
		return p.Len(), false
	}
	suffix := key[len(prefix):]
	want, heads := pageformat.FirstFour(suffix), p.heads()
	lo := lowerBound(heads, want)
	if lo == len(heads) || heads[lo] != want {
		return lo, false
	}
	// All entries whose head is want lie side by side. Mostly it is one; where there are more the suffixes decide.
	hi := lo + 1
	for step := 1; hi < len(heads) && heads[hi] == want; step *= 2 {
		hi = min(hi+step, len(heads))
	}
	for lo < hi {
		middle := int(uint(lo+hi) / 2)
		if heads[middle] != want {
			hi = middle
			continue
		}
		switch c := bytes.Compare(p.Suffix(middle), suffix); {
		case c == 0:
			return middle, true
		case c < 0:
			lo = middle + 1
		default:
			hi = middle
		}
	}
	return lo, false
}

// lowerBound is the index of the first of the sorted heads that is not below want.
func lowerBound(heads []uint32, want uint32) int {
	base, n := 0, len(heads)
	for n > 1 {
		half := n / 2
		if heads[base+half-1] < want {
			base += half
		}
		n -= half
	}
	if n == 1 && heads[base] < want {
		base++
	}
	return base
}
