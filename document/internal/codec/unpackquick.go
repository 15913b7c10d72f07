package codec

import (
	"encoding/binary"
	"math/bits"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

const (
	// quickRoom is how many bytes there must be at the end of what quick appends to: for the beginning of a field, and its value if that
	// is of a fixed size. Then both can be stored without a look at each of their bytes.
	quickRoom = 2 * atOnce
	// quickText is the longest text that is copied without a look at how long it is.
	quickText = 2 * atOnce
	// patternRoom is how many bytes there must be for a string of a pattern: length, two pieces, digits and end.
	patternRoom = 4 + 2*quickText + maxDigitsAtOnce + 1
)

// quick appends the elements of ops, the first of whose tails is at pos, up to one that is rare, damaged, or for which there is no room
// to spare. It returns how many it has appended, and where the next tail is.
func quick(dst []byte, ops []op, s *source, pos int) (out []byte, done, next int) {
	n, room := len(dst), dst[:cap(dst)]
	for i := range ops {
		o := &ops[i]
		at := n + len(o.prefix)
		if len(room)-n < quickRoom || at-n > atOnce {
			return room[:n], i, pos
		}
		*(*[atOnce]byte)(room[n:]) = o.start
		switch o.kind {
		case kindString:
			size, end := putString(room[at:], o.column, s.front[o.place], s.tails, pos)
			if end < 0 {
				return room[:n], i, pos
			}
			n, pos = at+size, end
		case kindInt32, kindInt64, kindDate, kindDouble:
			number, end := uint64(s.front[o.place]), pos
			if number >= headTwo {
				if number, end = readNumber(byte(number), s.tails, pos); end < 0 {
					return room[:n], i, pos
				}
			}
			size := 8
			switch o.kind {
			case kindDouble:
				number = doubleOf(number)
			case kindDate:
				number = uint64(s.related(o, dateOf(number)))
			default:
				value := s.related(o, unzigzag(number))
				if number = uint64(value); o.kind == kindInt32 {
					if size = 4; value != int64(int32(value)) {
						return room[:n], i, pos
					}
				}
			}
			binary.LittleEndian.PutUint64(room[at:], number)
			n, pos = at+size, end
		case kindBool:
			room[at] = s.front[o.place] >> o.bit & 1
			n = at + 1
		case kindFixed:
			n = at + copy(room[at:], s.front[o.place:int(o.place)+int(o.size)])
		case kindNothing:
			n = at
		case kindArray:
			size, end := putStrings(room[at:], o.column, s.front[o.place], s.tails, pos)
			if end < 0 {
				return room[:n], i, pos
			}
			n, pos = at+size, end
		default:
			return room[:n], i, pos
		}
	}
	return room[:n], len(ops), pos
}

// related returns the number that n is the distance to, from another one, and keeps it where others are relative to it.
func (s *source) related(o *op, n int64) int64 {
	if o.base > 0 {
		n += s.registers[o.base-1]
	} else if o.kind == kindDate {
		n += dateEpoch
	}
	if o.save > 0 {
		s.registers[o.save-1] = n
	}
	return n
}

// putString puts a string where to begins, and returns how long it is in BSON and where its tail ends: -1 when it is rare, damaged, or
// to has no room to spare.
func putString(to []byte, col *column, h byte, src []byte, pos int) (size, end int) {
	i := int(h)
	switch {
	case h < headEntry2:
	case h < headPattern && pos < len(src):
		i, pos = headEntry2+int(h-headEntry2)<<8+int(src[pos]), pos+1
	case h >= headPattern && h < headText:
		return putPattern(to, col, h, src, pos)
	default:
		return putText(to, h, src, pos)
	}
	if col == nil {
		return 0, -1
	}
	entry := col.entry(i)
	if entry == nil || len(entry) > len(to) {
		return 0, -1
	}
	if len(entry) > quickText || cap(entry) < quickText || len(to) < quickText {
		return copy(to, entry), pos
	}
	putAtOnce(to, entry[:quickText])
	return len(entry), pos
}

// putAtOnce copies quickText bytes. As one array they would be copied by a call, since they might overlap.
func putAtOnce(to, from []byte) {
	*(*[atOnce]byte)(to) = [atOnce]byte(from)
	*(*[atOnce]byte)(to[atOnce:]) = [atOnce]byte(from[atOnce:])
}

// putText is putString for a text that is its own tail.
func putText(to []byte, h byte, src []byte, pos int) (size, end int) {
	n := int(h) - headText
	if h < headText || h == headLong || n > len(src)-pos || 4+n+1 > len(to) {
		return 0, -1
	}
	binary.LittleEndian.PutUint32(to, uint32(n+1))
	copy(to[4:], src[pos:pos+n])
	to[4+n] = 0
	return 4 + n + 1, pos + n
}

// putPattern is putString for a pattern with a number.
func putPattern(to []byte, col *column, h byte, src []byte, pos int) (size, end int) {
	const byteOf, loaded = headPattern2 - headPattern, 8
	width := int(h)%byteOf + 1
	if col == nil || len(to) < patternRoom || len(src)-pos < 2+loaded {
		return 0, -1
	}
	i := int(src[pos])
	if pos++; h >= headPattern2 {
		i, pos = i<<8|int(src[pos]), pos+1
	}
	number := binary.BigEndian.Uint64(src[pos:]) >> (8 * uint(loaded-width) & 63)
	pattern := col.patterns.entry(i)
	if pattern == nil {
		return 0, -1
	}
	hole, zeros, text := int(pattern[0]), int(pattern[1]), pattern[patternHead:]
	if number >= leastTooLong || zeros > maxDigitsAtOnce || hole > quickText || len(text)-hole > quickText || cap(text) < hole+quickText {
		return 0, -1
	}
	putAtOnce(to[4:], text[:quickText])
	at := 4 + hole
	at += putDigits((*[maxDigitsAtOnce]byte)(to[at:]), number, zeros)
	putAtOnce(to[at:], text[hole:hole+quickText])
	at += len(text) - hole
	to[at] = 0
	binary.LittleEndian.PutUint32(to, uint32(at+1-4))
	return at + 1, pos + width
}

const (
	maxDigitsAtOnce = 8
	leastTooLong    = 1e8
)

// putDigits puts a number below leastTooLong where to begins, with zeros in front until it has width digits, and returns how many
// digits there are.
func putDigits(to *[maxDigitsAtOnce]byte, number uint64, width int) int {
	// All eight digits at once, the first one in the lowest byte. (P. Khuong, "How to print integers really fast", 2017)
	halves := number/10000 | number%10000<<32
	pairs := halves * 10486 >> 20 & 0x7f0000007f
	pairs |= (halves - pairs*100) << 16
	digits := pairs * 103 >> 10 & 0xf000f000f000f
	digits |= (pairs - digits*10) << 8
	zeros := min(bits.TrailingZeros64(digits|1<<56)/8, maxDigitsAtOnce-width)
	binary.LittleEndian.PutUint64(to[:], (digits|0x3030303030303030)>>(8*(zeros&7)))
	return maxDigitsAtOnce - zeros
}

// maxQuickStrings is how many strings of an array putStrings puts: the index of each is one digit.
const maxQuickStrings = 10

// putStrings is putString for an array of a few strings.
func putStrings(to []byte, col *column, h byte, src []byte, pos int) (size, end int) {
	const header, around = 3, 4 + 1 // type, index and its end; the length and the end of the array
	n := int(h)
	if h > maxShort || n > len(src)-pos || n < 1 || src[pos] != byte(bsoncore.TypeString) || len(to) < around {
		return 0, -1
	}
	body, at, from := src[pos:pos+n], 4, 1
	for i := 0; from < n; i++ {
		if i == maxQuickStrings || len(to)-at < header+1 {
			return 0, -1
		}
		to[at], to[at+1], to[at+2] = byte(bsoncore.TypeString), byte('0'+i), 0
		at += header
		size, next := putString(to[at:], col, body[from], body, from+1)
		if next < 0 {
			return 0, -1
		}
		at, from = at+size, next
	}
	if at == len(to) {
		return 0, -1
	}
	to[at] = 0
	binary.LittleEndian.PutUint32(to, uint32(at+1))
	return at + 1, pos + n
}
