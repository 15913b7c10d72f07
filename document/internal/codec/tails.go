package codec

import "encoding/binary"

// classes of heads: each has its own way to tell the length of the tail.
const (
	classNumber = iota
	classString
	classLength
	classNone
)

func classOf(k kind) byte {
	switch k {
	case kindInt32, kindInt64, kindDate, kindDouble:
		return classNumber
	case kindString:
		return classString
	case kindBinary, kindWhole, kindArray:
		return classLength
	}
	return classNone
}

// tailLengths gives, for each class and head, the length of the tail; longTail when the tail itself begins with it.
const (
	tailLengths = tailsOfNumbers + tailsOfStrings + tailsOfLengths + z64 + z64 + z64 + z64
	longTail    = 255

	tailsOfNumbers = z64 + z64 + z16 + z16 + z16 + one64 + "\x02\x02\x02\x02\x02\x02\x02\x02" + "\x03\x04\x05\x06\x07\x08\x08\x00"
	tailsOfStrings = z64 + z64 + z16 + z16 + one16 + one16 + patternTails + upTo16 + from16 + "\x20\x21\x22\x23\x24\x25\x26\x27\x28\x29\x2a\x2b\x2c\x2d\x2e\xff"
	patternTails   = "\x02\x03\x04\x05\x06\x07\x08\x09" + "\x03\x04\x05\x06\x07\x08\x09\x0a"
	tailsOfLengths = upTo16 + from16 +
		"\x20\x21\x22\x23\x24\x25\x26\x27\x28\x29\x2a\x2b\x2c\x2d\x2e\x2f" +
		"\x30\x31\x32\x33\x34\x35\x36\x37\x38\x39\x3a\x3b\x3c\x3d\x3e\x3f" +
		"\x40\x41\x42\x43\x44\x45\x46\x47\x48\x49\x4a\x4b\x4c\x4d\x4e\x4f" +
		"\x50\x51\x52\x53\x54\x55\x56\x57\x58\x59\x5a\x5b\x5c\x5d\x5e\x5f" +
		"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f" +
		"\x70\x71\x72\x73\x74\x75\x76\x77\x78\x79\x7a\x7b\x7c\x7d\x7e\x7f" +
		"\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f" +
		"\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f" +
		"\xa0\xa1\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xab\xac\xad\xae\xaf" +
		"\xb0\xb1\xb2\xb3\xb4\xb5\xb6\xb7\xb8\xb9\xba\xbb\xbc\xbd\xbe\xbf" +
		"\xc0\xc1\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xca\xcb\xcc\xcd\xce\xcf" +
		"\xd0\xd1\xd2\xd3\xd4\xd5\xd6\xd7\xd8\xd9\xda\xdb\xdc\xdd\xde\xdf" +
		"\xe0\xe1\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xeb\xec\xed\xee\xef" +
		"\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9\xfa\xfb\xfc\xfd" + "\x00\xff"

	z16    = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	z64    = z16 + z16 + z16 + z16
	one16  = "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"
	one64  = one16 + one16 + one16 + one16
	from16 = "\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f"
	upTo16 = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
)

// sumTails adds to sum the lengths of the tails with these heads, one behind the other in tails. It returns -1 when they
// reach behind the end.
func sumTails(sum int, classes, heads, tails []byte) int {
	heads = heads[:len(classes)]
	for i, class := range classes {
		n := int(tailLengths[int(class&3)<<8|int(heads[i])])
		if n == longTail {
			if sum > len(tails) {
				return -1
			}
			length, size := binary.Uvarint(tails[sum:])
			if size <= 0 || length > uint64(len(tails)-sum-size) {
				return -1
			}
			n = size + int(length)
		}
		sum += n
	}
	return sum
}

// readLong returns the bytes of a tail of which the head told no more than that the length is there, and where they end.
func readLong(src []byte, pos int) (body []byte, end int) {
	if pos > len(src) {
		return nil, -1
	}
	length, size := binary.Uvarint(src[pos:])
	if size <= 0 || length > uint64(len(src)-pos-size) {
		return nil, -1
	}
	pos += size
	return src[pos : pos+int(length)], pos + int(length)
}

// readShort returns the n bytes at pos.
func readShort(src []byte, pos, n int) (body []byte, end int) {
	if n > len(src)-pos {
		return nil, -1
	}
	return src[pos : pos+n], pos + n
}

// readLength returns the bytes of a tail of classLength.
func readLength(h byte, src []byte, pos int) (body []byte, end int) {
	if h == headLong {
		return readLong(src, pos)
	}
	if h > maxShort {
		return nil, -1
	}
	return readShort(src, pos, int(h))
}
