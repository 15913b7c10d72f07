package bucket

import (
	"encoding/binary"
	"math/bits"
)

// Numbers of a column are in words of 64 bits: Simple-8b (Anh and Moffat, "Index compression using 64-bit words", 2010), with MongoDB's
// additions: a slot of ones only is a value that is missing, the last selector repeats the number before it, and two selectors have
// variants in which each slot ends with how many zeros are to be put behind its number.

// wide is a number of 128 bits.
type wide struct{ hi, lo uint64 }

func (a wide) add(b wide) wide {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return wide{hi, lo}
}

func (a wide) shiftLeft(n uint) wide {
	if n >= 64 {
		return wide{a.lo << (n - 64), 0}
	}
	return wide{a.hi<<n | a.lo>>(64-n), a.lo << n}
}

// unZigzag undoes the coding that makes small negative numbers small.
func (a wide) unZigzag() wide {
	half := wide{a.hi >> 1, a.lo>>1 | a.hi<<63}
	if a.lo&1 == 0 {
		return half
	}
	return wide{^half.hi, ^half.lo}
}

// Parts of a word.
const (
	selectorBits   = 4
	repeatSelector = 15
	repeatUnit     = 120
)

// layout says how a word is divided.
type layout struct {
	bits   uint // of a number
	zeros  uint // bits behind it that count zeros
	unit   uint // how many zeros they count in
	count  int  // of slots
	header uint // bits in front of the first slot
}

// layoutOf returns the layout of a word; false if there is none.
func layoutOf(word uint64) (layout, bool) {
	selector, variant := int(word&15), int(word>>selectorBits&15)
	pick := func(l layout, first, at int, widths, counts []int) (layout, bool) {
		if at -= first; at < 0 || at >= len(widths) {
			return layout{}, false
		}
		l.bits, l.count = uint(widths[at]), counts[at]
		return l, true
	}
	plainWidths := []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 60}
	plainCounts := []int{60, 30, 20, 15, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1}
	extended := layout{zeros: 4, unit: 1, header: 2 * selectorBits}
	switch {
	case selector != 7 && selector != 8:
		return pick(layout{header: selectorBits}, 1, selector, plainWidths, plainCounts)
	case variant == 0: // these two have the variant always
		return pick(layout{header: 2 * selectorBits}, 1, selector, plainWidths, plainCounts)
	case selector == 7:
		return pick(extended, 1, variant, []int{2, 3, 4, 5, 7, 10, 14, 24, 52}, []int{9, 8, 7, 6, 5, 4, 3, 2, 1})
	case variant < 8:
		extended.unit = 4
		return pick(extended, 1, variant, []int{4, 5, 7, 10, 14, 24, 52}, []int{7, 6, 5, 4, 3, 2, 1})
	default:
		extended.unit, extended.zeros = 4, 5
		return pick(extended, 8, variant, []int{4, 6, 9, 13, 23, 51}, []int{6, 5, 4, 3, 2, 1})
	}
}

// words is numbers that are still to be read.
type words struct {
	rest   []byte // whole words
	word   uint64
	layout layout
	at     int // the slot to read next
	repeat int // how often the last number comes again
	last   wide
	missed bool // the last number was a missing one
}

// left reports whether there are numbers.
func (w *words) left() bool { return w.repeat > 0 || w.at < w.layout.count || len(w.rest) > 0 }

// next returns the next number, and false for one that is missing. It fails on a word that has no layout.
func (w *words) next() (n wide, present bool, err error) {
	for w.repeat == 0 && w.at >= w.layout.count {
		w.word, w.rest = binary.LittleEndian.Uint64(w.rest), w.rest[8:]
		w.at, w.layout = 0, layout{}
		if w.word&15 == repeatSelector {
			w.repeat = (int(w.word>>selectorBits&15) + 1) * repeatUnit
			break
		}
		var ok bool
		if w.layout, ok = layoutOf(w.word); !ok {
			return n, false, malformed("a column has a word %#x that no selector describes", w.word)
		}
	}
	if w.repeat > 0 {
		w.repeat--
		return w.last, !w.missed, nil
	}
	l := w.layout
	size := l.bits + l.zeros
	slot, mask := w.word>>(l.header+uint(w.at)*size), uint64(1)<<size-1
	slot &= mask
	w.at++
	if slot == mask {
		w.missed = true
		return n, false, nil
	}
	w.missed = false
	w.last = wide{0, slot >> l.zeros}.shiftLeft(uint(slot&(1<<l.zeros-1)) * l.unit)
	return w.last, true, nil
}
