package codec

import "encoding/binary"

// quickRoom is how many bytes there must be at the end of what quick appends to: for the beginning of a field, and its value if that is
// of a fixed size. Then both can be stored without a look at each of their bytes.
const quickRoom = 2 * atOnce

// quick appends the elements of ops, the first of whose tails is at pos, up to one that is rare, damaged, or for which there is no room
// to spare. It returns how many it has appended, and where the next tail is.
func quick(dst []byte, ops []op, s *source, pos int) (out []byte, done, next int) {
	for i := range ops {
		o, n := &ops[i], len(dst)
		at := len(o.prefix)
		if cap(dst)-n < quickRoom || at > atOnce {
			return dst, i, pos
		}
		to := (*[quickRoom]byte)(dst[n : n+quickRoom])
		*(*[atOnce]byte)(to[:]) = o.start
		switch o.kind {
		case kindString:
			out, end := appendString(dst[:n+at], o.column, s.front[o.place], s.tails, pos)
			if end < 0 {
				return dst, i, pos
			}
			dst, pos = out, end
		case kindInt32, kindInt64, kindDate, kindDouble:
			number, end := uint64(s.front[o.place]), pos
			if number >= headTwo {
				if number, end = readNumber(byte(number), s.tails, pos); end < 0 {
					return dst, i, pos
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
						return dst, i, pos
					}
				}
			}
			binary.LittleEndian.PutUint64(to[at:], number)
			dst, pos = dst[:n+at+size], end
		case kindBool:
			to[at] = s.front[o.place] >> o.bit & 1
			dst = dst[:n+at+1]
		case kindFixed:
			dst = dst[:n+at+copy(to[at:], s.front[o.place:int(o.place)+int(o.size)])]
		case kindNothing:
			dst = dst[:n+at]
		default:
			return dst, i, pos
		}
	}
	return dst, len(ops), pos
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
