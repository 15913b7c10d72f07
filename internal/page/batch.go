package page

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/pandodb/pando/internal/pageformat"
	"github.com/pandodb/pando/internal/record"
)

const (
	// BatchMost is how many pairs a Batch holds at most, a power of two.
	BatchMost = 16
	// batchKeys is how many bytes of keys it holds at most.
	batchKeys = 512
	word      = 8
	fewWords  = 4 // suffixes of as many words are copied by words
)

// Batch is memory for pairs that a walk comes to one after the other. To decode several entries at once takes a fraction of the
// instructions of decoding each when the walk gets there, and whoever reads a key does not wait for the two parts of it that have just
// been stored.
type Batch struct {
	Pairs [BatchMost]record.Pair
	keys  [batchKeys + fewWords*word]byte
	used  uint // bytes of keys
}

// Fill makes Pairs begin with the entries of p from number from on, before number to: up to the first of another kind than kind, Inline or
// Apart, or which expires, or which does not fit. It returns how many those are, 0 for a page of so few entries that it is not worth it. The
// values of pairs that lie apart are the references to them. The pairs are valid for as long as the page.
func (b *Batch) Fill(p Page, from, to int, kind record.Kind) int {
	b.Reset()
	return b.add(0, p, p.offsets()[from:min(to, from+BatchMost)], uint(kind-record.Inline)*pageformat.FlagApart)
}

// Reset gives up the memory of keys that Add has taken.
func (b *Batch) Reset() { b.used = 0 }

// Add is Fill with Inline for the pairs behind the first n, which stay as they are.
func (b *Batch) Add(n int, p Page, from, to int) int {
	return b.add(n, p, p.offsets()[from:min(to, from+BatchMost-n)], 0)
}

// add is Add for the entries at some offsets, up to the first that has other flags than those.
func (b *Batch) add(n int, p Page, offsets []uint32, flags uint) int {
	prefix, entries := p.Prefix(), p.entries()
	if p.Len() < fewWords {
		return 0 // there are not enough bytes behind the entries for copyWord
	}
	begin, shared := unsafe.Pointer(unsafe.SliceData(prefix)), uint(len(prefix))
	key, room := unsafe.Add(unsafe.Pointer(&b.keys), b.used), batchKeys-b.used
	for i, offset := range offsets {
		data, suffixLen, meta := decodeCommon(unsafe.Add(entries, offset))
		length := shared + suffixLen
		if suffixLen >= 0x80 || meta&(pageformat.FlagApart|pageformat.FlagExpiry|pageformat.FlagTombstone) != flags || length > room {
			b.used = batchKeys - room
			return i
		}
		if shared <= word && suffixLen <= fewWords*word {
			copyWord(key, begin)
			suffix := unsafe.Add(key, shared)
			copyWord(suffix, data)
			copyWord(unsafe.Add(suffix, word), unsafe.Add(data, word))
			if suffixLen > 2*word {
				copyWord(unsafe.Add(suffix, 2*word), unsafe.Add(data, 2*word))
				copyWord(unsafe.Add(suffix, 3*word), unsafe.Add(data, 3*word))
			}
		} else {
			copy(unsafe.Slice((*byte)(key), shared), prefix)
			copy(unsafe.Slice((*byte)(unsafe.Add(key, shared)), suffixLen), unsafe.Slice((*byte)(data), suffixLen))
		}
		pair := (*pairOf)(unsafe.Pointer(&b.Pairs[(n+i)&(BatchMost-1)]))
		pair.key = sliceOf{key, length, length}
		pair.value = sliceOf{unsafe.Add(data, suffixLen), meta >> pageformat.FlagBits, meta >> pageformat.FlagBits}
		key, room = unsafe.Add(key, length), room-length
	}
	b.used = batchKeys - room
	return len(offsets)
}

// Before returns the index of the first entry from number from on, and before number to, whose key is not below key; to if there is none.
// exact tells whether it is key itself. It is for a key that is expected nearby: it goes over the heads of the entries before it.
func (p Page) Before(key []byte, from, to int) (i int, exact bool) {
	prefix := p.Prefix()
	if len(key) < len(prefix) || string(key[:len(prefix)]) != string(prefix) {
		if string(key) < string(prefix) {
			return from, false
		}
		return to, false
	}
	suffix := key[len(prefix):]
	want := pageformat.FirstFour(suffix)
	for i, head := range p.heads()[from:to] {
		if head < want {
			continue
		}
		if head > want {
			return from + i, false
		}
		if c := bytes.Compare(p.Suffix(from+i), suffix); c >= 0 {
			return from + i, c == 0
		}
	}
	return to, false
}

// pairOf is a record.Pair as it lies in memory. To make a slice the usual way, the compiler checks what Load has checked.
type pairOf struct{ key, value sliceOf }

type sliceOf struct {
	data     unsafe.Pointer
	len, cap uint
}

// copyWord copies the eight bytes at src. Where a key ends before them they are there all the same: behind the entries of a page come a word
// for each, its offset and its head, and behind the keys of a batch is as much room. For as few bytes as most keys have, a call of memmove
// costs more.
func copyWord(dst, src unsafe.Pointer) {
	binary.LittleEndian.PutUint64((*[word]byte)(dst)[:], binary.LittleEndian.Uint64((*[word]byte)(src)[:]))
}
