package columns

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/fse"
	"github.com/klauspost/compress/huff0"
)

// slower: package fse takes twice the time of package huff0, so it has to save this part.
const slower = 6

// minCoded is how many bytes a column has that is worth a table of codes.
const minCoded = 16

// appendColumn appends a column in the shortest form.
func (c *Coder) appendColumn(dst, column []byte) []byte {
	n := len(column)
	if n < 2 || isConstant(column) {
		return append(dst, kindConstant, column[0])
	}
	c.difference(column)
	if isConstant(c.deltas) {
		return append(dst, kindConstant|deltaBit, column[0], c.deltas[0])
	}
	if n < minCoded {
		return append(append(dst, kindPlain), column...)
	}
	plain, deltas := cost(column), cost(c.deltas)
	if min(plain, deltas) >= n-max(n/leastShare, leastGain) {
		return append(append(dst, kindPlain), column...)
	}
	at := len(dst)
	if deltas < plain {
		dst = c.appendCoded(append(dst, deltaBit, column[0]), at, c.deltas)
	} else {
		dst = c.appendCoded(append(dst, 0), at, column)
	}
	if len(dst)-at > n-leastGain {
		return append(append(dst[:at], kindPlain), column...)
	}
	return dst
}

const (
	// leastGain is what coding a column has to save: it takes as long to read the table of the code as some hundred bytes of the column.
	leastGain = 32
	// leastShare: coding a column has to save one byte in so many, too, since to read a code takes forty times as long as to copy bytes.
	leastShare = 3
	// codedColumn is about what a coded column takes beside its bytes, its time counted in.
	codedColumn = 32
)

// estimate returns about how many bytes a column takes.
func (c *Coder) estimate(page []byte, places []uint32, p int) int {
	if c.gather(page, places, p) {
		return 1
	}
	n := len(c.column)
	c.difference(c.column)
	if isConstant(c.deltas) {
		return 3
	}
	return min(cost(c.column)+codedColumn, cost(c.deltas)+codedColumn, n)
}

// difference makes c.deltas the differences from each byte to the next.
func (c *Coder) difference(column []byte) {
	c.deltas = slices.Grow(c.deltas[:0], len(column)-1)[:len(column)-1]
	for i := range c.deltas {
		c.deltas[i] = column[i+1] - column[i]
	}
}

// appendCoded appends bytes by the code that makes them shortest, and notes it in dst[at].
func (c *Coder) appendCoded(dst []byte, at int, b []byte) []byte {
	c.huff.Reuse = huff0.ReusePolicyNone
	best, kind := b, byte(kindPlain)
	if coded, _, err := huff0.Compress1X(b, &c.huff); err == nil && len(coded)+2 < len(best) {
		best, kind = coded, kindHuffman
	}
	if len(best) < len(b)/2 || kind == kindPlain {
		if coded, err := fse.Compress(b, &c.fse); err == nil && len(coded)+2 < len(best)-len(best)/slower {
			best, kind = coded, kindFSE
		}
	}
	if sparse, ok := c.appendSparse(len(best)+sparseLonger, b); ok {
		best, kind = sparse, kindSparse
	}
	dst[at] |= kind
	if kind == kindHuffman || kind == kindFSE {
		dst = binary.AppendUvarint(dst, uint64(len(best)))
	}
	return append(dst, best...)
}

// sparseLonger is how many bytes more than a code a column may take that lists its exceptions, which are read in no time.
const sparseLonger = 16

// appendSparse returns which bytes are not what most are, unless that takes more than most bytes.
func (c *Coder) appendSparse(most int, b []byte) ([]byte, bool) {
	var seen [256]int
	usual := byte(0)
	for _, x := range b {
		if seen[x]++; seen[x] > seen[usual] {
			usual = x
		}
	}
	others := len(b) - seen[usual]
	if 2*others+2 > most {
		return nil, false
	}
	c.sparse = append(binary.AppendUvarint(c.sparse[:0], uint64(others)), usual)
	from := 0
	for i, x := range b {
		if x != usual {
			c.sparse = append(binary.AppendUvarint(c.sparse, uint64(i-from)), x)
			from = i + 1
		}
	}
	return c.sparse, len(c.sparse) <= most
}

func isConstant(b []byte) bool {
	for _, x := range b {
		if x != b[0] {
			return false
		}
	}
	return true
}

// cost estimates the bytes that an entropy coder makes of b: those of Shannon's entropy, and of a table.
func cost(b []byte) int {
	var seen [256]int
	for _, x := range b {
		seen[x]++
	}
	n := uint64(len(b))
	var sum, used uint64
	for _, s := range seen {
		if s > 0 {
			sum += uint64(s) * (log2(n) - log2(uint64(s)))
			used++
		}
	}
	return int((sum>>logBits + 7*used/2) / 8)
}

// logBits is how many binary digits behind the point log2 has.
const logBits = 8

// log2 returns about the binary logarithm of n, which is above 0: between powers of two as if it were linear, less the worst of
// what that is wrong by, 0.086, in the middle.
func log2(n uint64) uint64 {
	k := bits.Len64(n) - 1
	f := (n << (63 - k) << 1) >> (64 - logBits)
	return uint64(k)<<logBits + f + (f*((1<<logBits)-f)*88)>>(2*logBits)
}

// readColumn reads a column of len(dst) bytes and returns what follows it.
func (c *Coder) readColumn(dst, b []byte) ([]byte, error) {
	if len(b) < 2 {
		return nil, damaged("a column ends early")
	}
	kind := b[0]
	b = b[1:]
	if kind>>runShift != 0 && kind&^deltaBit != kindSparse {
		return nil, damaged("an unknown kind of column")
	}
	if kind&deltaBit == 0 {
		return c.readCoded(dst, b, kind)
	}
	if len(dst) < 2 {
		return nil, damaged("differences of one byte")
	}
	dst[0] = b[0]
	b, err := c.readCoded(dst[1:], b[1:], kind&^deltaBit)
	if err != nil {
		return nil, err
	}
	last := dst[0]
	for i, d := range dst[1:] {
		last += d
		dst[i+1] = last
	}
	return b, nil
}

// readCoded reads len(dst) bytes that were written in one of the ways and returns what follows.
func (c *Coder) readCoded(dst, b []byte, kind byte) ([]byte, error) {
	switch kind {
	case kindConstant:
		if len(b) == 0 {
			return nil, damaged("a column ends early")
		}
		for i := range dst {
			dst[i] = b[0]
		}
		return b[1:], nil
	case kindPlain:
		if len(b) < len(dst) {
			return nil, damaged("a column ends early")
		}
		copy(dst, b)
		return b[len(dst):], nil
	case kindSparse:
		return readSparse(dst, b)
	}
	length, n := uvarint(b)
	if n == 0 || length > uint64(len(b)-n) {
		return nil, damaged("a column ends early")
	}
	coded, b := b[n:n+int(length)], b[n+int(length):]
	var out []byte
	var err error
	if kind == kindHuffman {
		out, err = c.readHuffman(dst, coded)
	} else {
		c.fse.DecompressLimit, c.fse.Out = len(dst)+1, dst[:0:len(dst)] // the limit is one that is not reached
		out, err = fse.Decompress(coded, &c.fse)
		c.fse.Out = nil
	}
	if err != nil {
		return nil, damaged(err.Error())
	}
	if len(out) != len(dst) {
		return nil, damaged("a column of another length")
	}
	if len(dst) > 0 && &out[0] != &dst[0] {
		copy(dst, out)
	}
	return b, nil
}

// readSparse reads len(dst) bytes of which most are the same.
func readSparse(dst, b []byte) ([]byte, error) {
	others, n := uvarint(b)
	if n == 0 || n == len(b) || others > uint64(len(dst)) {
		return nil, damaged("a column ends early")
	}
	usual := b[n]
	b = b[n+1:]
	for i := range dst {
		dst[i] = usual
	}
	for range others {
		gap, n := uvarint(b)
		if n == 0 || n == len(b) || gap >= uint64(len(dst)) {
			return nil, damaged("an exception that is not in the column")
		}
		dst[gap] = b[n]
		dst, b = dst[gap+1:], b[n+1:]
	}
	return b, nil
}

func (c *Coder) readHuffman(dst, coded []byte) ([]byte, error) {
	_, coded, err := huff0.ReadTable(coded, &c.huff)
	if err != nil {
		return nil, err
	}
	return c.huff.Decoder().Decompress1X(dst[:0:len(dst)], coded)
}
