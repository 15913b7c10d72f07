package collation

import "bytes"

// Weights that nearly all characters have, and that no weight is lower than.
const (
	commonSecondary = "\x00\x20"
	commonTertiary  = "\x02"
)

// levels are the parts of a key that x/text makes: primary weights of two bytes, or of three when the first has its high bit set; two
// zero bytes; secondary weights of two bytes; two zero bytes; tertiary weights of one byte; a zero byte; quaternary ones. Levels that
// the strength leaves out are not there.
type levels struct{ primary, secondary, tertiary, quaternary []byte }

func split(k []byte) (l levels) {
	n := 0
	for n+1 < len(k) && k[n]|k[n+1] != 0 {
		n += weight(k[n:])
	}
	l.primary, k = k[:n], behind(k[n:], 2)
	for n = 0; n+1 < len(k) && k[n]|k[n+1] != 0; {
		n += 2
	}
	l.secondary, k = k[:n], behind(k[n:], 2)
	if n = bytes.IndexByte(k, 0); n < 0 {
		n = len(k)
	}
	l.tertiary, l.quaternary = k[:n], behind(k[n:], 1)
	return l
}

// weight returns how many bytes the primary weight at the beginning of k has.
func weight(k []byte) int { return 2 + int(k[0]>>7) }

// lowestPrimary is lower than the first byte of every primary weight but the numbers of digits that x/text puts behind a number's beginning.
const lowestPrimary = 1

// appendPrimary appends primary weights. In those of a number that is zero x/text leaves everything out but the beginning, so that what
// follows would count as its digits: here it has one, which is 0.
func (w *worker) appendPrimary(dst, k []byte) []byte {
	if len(w.number) == 0 {
		return append(dst, k...)
	}
	for len(k) >= 2 {
		n := min(weight(k), len(k))
		begins := bytes.Equal(k[:n], w.number)
		dst, k = append(dst, k[:n]...), k[n:]
		if begins && (len(k) == 0 || k[0] >= lowestPrimary) {
			dst = append(append(dst, 0, 1), w.zero...)
		}
	}
	return dst
}

// behind returns what stands behind a separator of n bytes.
func behind(k []byte, n int) []byte { return k[min(n, len(k)):] }

// trim drops the common weights at the end of a level, as all higher weights sort above the end, too.
func trim(level []byte, common string) []byte {
	for bytes.HasSuffix(level, []byte(common)) {
		level = level[:len(level)-len(common)]
	}
	return level
}

// key puts levels together: two zero bytes, lower than any weight, before each but the first, and nothing for empty ones at the end.
// Text without accents and capitals is its primary weights alone.
type key struct {
	bytes []byte
	empty int // levels that have been left out since the last one
}

func (k *key) add(level []byte) {
	if len(level) == 0 {
		k.empty++
		return
	}
	for ; k.empty >= 0; k.empty-- {
		k.bytes = append(k.bytes, 0, 0)
	}
	k.empty = 0
	k.bytes = append(k.bytes, level...)
}
