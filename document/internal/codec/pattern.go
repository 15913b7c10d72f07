package codec

import "slices"

// Strings with one number in them, such as user17@example.com or INV-000017, share patterns: the text around the number. A
// pattern is a byte that says before which byte of the text the number stands, a byte that says how many digits it is filled
// up to with zeros, and the text.
const (
	patternHead = 2
	maxDigits   = 18
)

// isPattern reports whether an entry is one.
func isPattern(entry []byte) bool {
	return len(entry) >= patternHead && int(entry[0]) <= len(entry)-patternHead && entry[1] <= maxDigits
}

// patternOf appends the pattern of a text that has exactly one number, and returns the number.
func patternOf(dst []byte, text []byte) (pattern []byte, number uint64, ok bool) {
	start := 0
	for start < len(text) && !isDigit(text[start]) {
		start++
	}
	end := start
	for end < len(text) && isDigit(text[end]) {
		number = number*10 + uint64(text[end]-'0')
		end++
	}
	for _, b := range text[end:] {
		if isDigit(b) {
			return dst, 0, false
		}
	}
	width := end - start
	if width == 0 || width > maxDigits || len(text)-width+patternHead > MaxEntry {
		return dst, 0, false
	}
	if width == 1 || text[start] != '0' {
		width = 0
	}
	dst = append(dst, byte(start), byte(width))
	return append(append(dst, text[:start]...), text[end:]...), number, true
}

func isDigit(b byte) bool { return b-'0' < 10 }

// appendPattern appends the text of a pattern with a number.
func appendPattern(dst, pattern []byte, number uint64) []byte {
	hole, width, text := int(pattern[0]), int(pattern[1]), pattern[patternHead:]
	dst = appendDigits(appendShort(dst, text[:hole]), number, width)
	return appendShort(dst, text[hole:])
}

// appendDigits appends a number, with zeros in front until it has width digits.
func appendDigits(dst []byte, number uint64, width int) []byte {
	n := len(dst)
	if number >= leastTooLong || width > maxDigitsAtOnce || cap(dst)-n < maxDigitsAtOnce {
		width = max(width, digitsOf(number))
		dst = slices.Grow(dst, width)[:n+width]
		for at := len(dst) - 1; at >= n; at-- {
			dst[at] = byte('0' + number%10)
			number /= 10
		}
		return dst
	}
	return dst[:n+putDigits((*[maxDigitsAtOnce]byte)(dst[n:n+maxDigitsAtOnce]), number, width)]
}

// digitsOf returns how many decimal digits a number has.
func digitsOf(number uint64) int {
	n := 1
	for ; number >= 10; number /= 10 {
		n++
	}
	return n
}

// packPattern appends the tail of a text with a number, and returns its head. It is not ok when the text
// has no known pattern, or is as short itself.
func (col *column) packPattern(dst, text []byte) (head byte, packed []byte, ok bool, err error) {
	var room [MaxEntry + patternHead]byte
	pattern, number, ok := patternOf(room[:0], text)
	if !ok {
		return 0, dst, false, nil
	}
	n := 1
	for number>>(8*n) != 0 {
		n++
	}
	if n+patternHead >= len(text) {
		return 0, dst, false, nil
	}
	i, err := col.patterns.number(pattern)
	if i < 0 {
		return 0, dst, false, err
	}
	head = headPattern
	if i >= 256 {
		head, dst = headPattern2, append(dst, byte(i>>8))
	}
	dst = append(dst, byte(i))
	for at := n - 1; at >= 0; at-- {
		dst = append(dst, byte(number>>(8*at)))
	}
	return head + byte(n) - 1, dst, true, nil
}

// readPattern returns the pattern and the number of a string with head h, and where its tail ends, or -1.
func readPattern(col *column, h byte, src []byte, pos int) (pattern []byte, number uint64, end int) {
	body, end := readShort(src, pos, int(tailLengths[classString<<8|int(h)]))
	if end < 0 || col == nil {
		return nil, 0, -1
	}
	i := int(body[0])
	body = body[1:]
	if h >= headPattern2 {
		i, body = i<<8|int(body[0]), body[1:]
	}
	if pattern = col.patterns.entry(i); pattern == nil {
		return nil, 0, -1
	}
	for _, b := range body {
		number = number<<8 | uint64(b)
	}
	return pattern, number, end
}
