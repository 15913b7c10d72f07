package train

import (
	"math"

	"github.com/klauspost/compress/zstd"
)

// Which length of segments is best, and how many of them, depends on the data. Of texts and records that differ from page to page long segments
// are best, and as many as there may be; where each page is alike in itself, what is near is found with a shorter reference than what is far
// away in a dictionary, so that few short segments are best, which help where a page begins. A trial on some of the samples tells.

const (
	trialSamples = 16 // samples that are compressed with each dictionary, and as many, others, that its tables are made of
	leastShare   = 64 // of what is compressed without a dictionary, that one has to save: it takes memory, and time of each reader
	shrinks      = 2  // what a dictionary is divided by when it is stored, about
)

// candidate is a length of segments, in substrings, with the parts of the largest size that are tried of them.
type candidate struct {
	length int
	shares [2]int
}

func candidates() [3]candidate {
	return [...]candidate{{16, [...]int{8, 32}}, {64, [...]int{1, 8}}, {160, [...]int{1, 8}}}
}

// bestContent returns the content with which the dictionary and so many payloads take least, nil where they take hardly less than without. It
// is tried on samples that it is not made of: in a dictionary each finds itself again.
func bestContent(samples [][]byte, size, payloads int) (best []byte) {
	tried, others := split(samples, min(trialSamples, len(samples)/2))
	others = cut(others)
	tables := every(others, trialSamples)
	c := newCover(others)
	least := compressed(tried)
	least -= least / leastShare
	for _, try := range candidates() {
		all := c.choose(size/try.shares[0], try.length)
		for _, share := range try.shares {
			content := all[len(all)-len(all)*try.shares[0]/share:]
			dictionary := build(content, tables)
			if dictionary == nil {
				continue
			}
			stored := int(int64(len(dictionary)) * int64(len(tried)) / int64(payloads) / shrinks)
			if n := compressed(tried, zstd.WithEncoderDict(dictionary)); n < least-stored {
				least, best = n+stored, content
			}
		}
	}
	return best
}

// every returns about n of the samples, at equal distances.
func every(samples [][]byte, n int) [][]byte {
	some, _ := split(samples, n)
	return some
}

// cut returns the beginnings of samples.
func cut(samples [][]byte) (short [][]byte) {
	for _, s := range samples {
		short = append(short, s[:min(len(s), sampleBytes)])
	}
	return short
}

// split returns about n of the samples, at equal distances, and the others.
func split(samples [][]byte, n int) (some, others [][]byte) {
	step := max(1, len(samples)/max(n, 1))
	for i, s := range samples {
		if i%step == 0 {
			some = append(some, s)
		} else {
			others = append(others, s)
		}
	}
	return some, others
}

// compressed returns how many bytes samples take when each is compressed by itself.
func compressed(samples [][]byte, o ...zstd.EOption) int {
	o = append(o, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	encoder, err := zstd.NewWriter(nil, o...)
	if err != nil {
		return math.MaxInt // a dictionary that cannot be compressed with helps nobody
	}
	n := 0
	var buf []byte
	for _, s := range samples {
		buf = encoder.EncodeAll(s, buf[:0])
		n += len(buf)
	}
	return n
}
