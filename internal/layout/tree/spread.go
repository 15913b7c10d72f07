package tree

import "math/bits"

// spread tells about where in the heads of a node a number lies, for nodes where that is nearly right: keys that are hashes, random, or
// counted lie evenly. To search near there takes a few lines of memory side by side, where to search all of the heads takes one after
// the other. Zero knows nothing.
type spread struct {
	first uint64 // head
	scale uint64 // heads for each step of a head, in 2^64ths
}

const (
	// spreadNear is how far from where it is expected to be a head is looked for: of the hundred heads that a node mostly has, those of
	// random keys lie farther off once in a thousand.
	spreadNear = 16
	// spreadLeast is how many heads are worth that.
	spreadLeast = 4 * spreadNear
	// Of one head in spreadSample, one in spreadFar may lie farther away.
	spreadSample = 4
	spreadFar    = 8
)

// spreadOf returns the spread of sorted heads, if they lie evenly.
func spreadOf(heads []uint64) spread {
	n := len(heads)
	if n < spreadLeast {
		return spread{}
	}
	most := heads[n-1] - heads[0]
	if most < uint64(n) {
		return spread{}
	}
	s := spread{first: heads[0]}
	s.scale, _ = bits.Div64(uint64(n-1), 0, most)
	far := 0
	for i := 0; i < n; i += spreadSample {
		if at := s.guess(heads[i], n); i <= at-spreadNear || i >= at+spreadNear {
			far++
		}
	}
	if far > n/spreadSample/spreadFar {
		return spread{}
	}
	return s
}

// guess is about how many of n heads are below x, which is not below the first.
func (s *spread) guess(x uint64, n int) int {
	at, _ := bits.Mul64(x-s.first, s.scale)
	return int(min(at, uint64(n)))
}

// lowerBound is the number of heads below x.
func (s *spread) lowerBound(heads []uint64, x uint64) int {
	if s.scale == 0 {
		return lowerBound(heads, x)
	}
	if x <= s.first {
		return 0
	}
	at := s.guess(x, len(heads))
	from, to := max(at-spreadNear, 0), min(at+spreadNear, len(heads))
	if (from > 0 && heads[from-1] >= x) || (to < len(heads) && heads[to] < x) {
		return lowerBound(heads, x)
	}
	return from + lowerBound(heads[from:to], x)
}
