package tree

import (
	"encoding/binary"
	"slices"
)

// A filter says of a key that it is certainly not in a leaf, or that it may be. It is a split block Bloom filter (Putze,
// Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", 2007; the block of eight words of 32 bits is the
// one of Apache Parquet): a key sets one bit in each of the eight words of one block of 32 bytes, so that a question costs
// one cache line. At ten bits a key about one absent key in a hundred is let through.
//
// An empty filter knows nothing and lets everything through.

const (
	filterBlock   = 32
	filterBitsKey = 10
	// maxFilter bounds the filter of one leaf: beyond it a filter is merely less sharp.
	maxFilter = 1 << 16
)

// filterSalt holds the odd multipliers that pick one bit in each word.
var filterSalt = [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}

// filterSize returns the bytes of a filter for n keys.
func filterSize(n int) int {
	blocks := (n*filterBitsKey + filterBlock*8 - 1) / (filterBlock * 8)
	return min(max(blocks, 1)*filterBlock, maxFilter)
}

// filterAt returns the block for a hash.
func filterAt(f []byte, hash uint64) []byte {
	blocks := uint64(len(f) / filterBlock)
	at := int((hash >> 32) * blocks >> 32 * filterBlock)
	return f[at : at+filterBlock : at+filterBlock]
}

func filterAdd(f []byte, hash uint64) {
	if len(f) == 0 {
		return
	}
	block := (*[filterBlock]byte)(filterAt(f, hash))
	for i := 0; i < filterBlock; i += 8 { // two words at once
		low, high := uint32(hash)*filterSalt[i/4]>>27, uint32(hash)*filterSalt[i/4+1]>>27
		w := block[i : i+8 : i+8]
		binary.LittleEndian.PutUint64(w, binary.LittleEndian.Uint64(w)|1<<low|1<<(32+high))
	}
}

// filterHas reports whether a key with this hash may be there.
func filterHas(f []byte, hash uint64) bool {
	if len(f) == 0 {
		return true
	}
	block := filterAt(f, hash)
	for i, salt := range filterSalt {
		if binary.LittleEndian.Uint32(block[i*4:])>>(uint32(hash)*salt>>27)&1 == 0 {
			return false
		}
	}
	return true
}

// appendFilters appends the stored form of the filters of a node: all of them, in the order of its leaves.
func appendFilters(dst []byte, b *body) []byte {
	dst = append(dst, filterVersion)
	dst = binary.AppendUvarint(dst, uint64(len(b.slots)))
	for i := range b.slots {
		dst = binary.AppendUvarint(dst, uint64(len(b.filterOf(i))/filterBlock))
	}
	return append(dst, b.filters...)
}

// decodeFilters reads a filter blob: the filters one after the other in bits, and where each of them ends.
func decodeFilters(raw []byte) (ends []uint32, bits []byte, err error) {
	r := &reader{raw: raw}
	if v := r.byte(); v != filterVersion {
		r.fail("version %d of the filter format is not known", v)
	}
	n := r.length(min(maxChildren, len(raw)))
	ends = make([]uint32, n)
	total := 0
	for i := range ends {
		total += r.length(maxFilter/filterBlock) * filterBlock
		ends[i] = uint32(total)
		if r.err != nil {
			return nil, nil, r.err
		}
	}
	if r.err == nil && total != len(raw)-r.at {
		r.fail("filters of %d bytes in %d", total, len(raw)-r.at)
	}
	return ends, raw[r.at:], r.err
}

// adoptFilters gives each leaf of b the filter that its slot names.
func (b *body) adoptFilters(ends []uint32, bits []byte) {
	b.filters = slices.Grow(b.filters[:0], len(bits))
	for i := range b.slots {
		if at := b.slots[i].filter; at != noFilter && int(at) < len(ends) {
			from := uint32(0)
			if at > 0 {
				from = ends[at-1]
			}
			b.filters = append(b.filters, bits[from:ends[at]]...)
		}
		b.filterEnds[i] = uint32(len(b.filters))
	}
}
