package train

import (
	"encoding/binary"
	"math/bits"
)

const (
	gram    = 6  // bytes of the substrings that are counted: shorter ones are hardly worth a reference
	load    = 8  // bytes that are read for one
	maxBits = 20 // of a hash; more would only take more memory for what a dictionary is made of
	minBits = 10 // fewer would save nothing worth having
)

// place is what a cover knows of the substrings of one hash.
type place struct {
	worth  uint16 // in how many samples they are beside the first; 0 when they are in the dictionary
	within uint16 // how often they are in the window that is looked at
}

// cover chooses segments of samples that cover most of what is in several of them.
type cover struct {
	samples [][]byte
	shift   uint // of a hash
	places  []place
}

func newCover(samples [][]byte) *cover {
	n := 0
	for _, s := range samples {
		n += len(s)
	}
	b := min(max(bits.Len(uint(n))+2, minBits), maxBits)
	return &cover{samples: samples, shift: uint(64 - b), places: make([]place, 1<<b)}
}

// at returns the place of the substring that s begins with.
func (c *cover) at(s []byte) *place {
	const golden = 0x9E3779B185EBCA87 // 2^64 over the golden ratio: multiplicative hashing
	return &c.places[binary.LittleEndian.Uint64(s)<<(8*(load-gram))*golden>>c.shift]
}

// count counts the samples that each substring is in.
func (c *cover) count() {
	clear(c.places)
	for i, s := range c.samples {
		number := uint16(i + 1)
		for ; len(s) >= load; s = s[1:] {
			if p := c.at(s); p.within != number { // the last sample with it, while they are counted
				p.within = number
				p.worth++
			}
		}
	}
	for i := range c.places {
		p := &c.places[i]
		p.within = 0
		p.worth -= min(p.worth, 1)
	}
}

// choose makes content of at most size bytes from segments of at most so many substrings. It takes the best one of each of several groups of samples in
// turn, so that all of them have their part. What is worth most comes last, where references to it are shortest.
func (c *cover) choose(size, length int) []byte {
	c.count()
	groups := min(max(1, size/length), len(c.samples))
	content := make([]byte, size)
	left, without := size, 0
	for g := 0; left > 0 && without < groups; g = (g + 1) % groups {
		best := c.best(c.samples[g*len(c.samples)/groups:(g+1)*len(c.samples)/groups], length)
		if best == nil {
			without++
			continue
		}
		without = 0
		best = c.take(best)
		best = best[max(0, len(best)-left):]
		left -= copy(content[left-len(best):], best)
	}
	return content[left:]
}

// best returns the segment of some samples whose substrings, each counted once, are worth most, with what belongs to its last load; nil
// where all are worth nothing.
func (c *cover) best(samples [][]byte, length int) (segment []byte) {
	most := 0
	for _, s := range samples {
		worth, begin := 0, 0
		for end := load; end <= len(s); end++ {
			in := c.at(s[end-load:])
			if in.within == 0 {
				worth += int(in.worth)
			}
			in.within++
			if end-load-begin == length {
				out := c.at(s[begin:])
				if out.within--; out.within == 0 {
					worth -= int(out.worth)
				}
				begin++
			}
			if worth > most {
				most, segment = worth, s[begin:end]
			}
		}
		for ; begin+load <= len(s); begin++ {
			c.at(s[begin:]).within = 0
		}
	}
	return segment
}

// take says of the substrings of a segment that they are in the dictionary now, and returns it without what is worth nothing at its ends.
func (c *cover) take(segment []byte) []byte {
	for c.at(segment).worth == 0 {
		segment = segment[1:]
	}
	for c.at(segment[len(segment)-load:]).worth == 0 {
		segment = segment[:len(segment)-1]
	}
	for s := segment; len(s) >= load; s = s[1:] {
		c.at(s).worth = 0
	}
	return segment[:len(segment)-load+gram]
}
