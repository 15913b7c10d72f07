package segment

import "sync"

// habits remembers how the payloads of the keyspace at hand have shrunk, so that a Writer does not compress in vain. Compressing takes
// more time than everything else that it does.
type habits struct {
	keyspace  uint32
	dull      droughts
	light     bool  // zstd would save too little for its time
	lightly   Codec // and this is taken instead: S2, or None where that would save too little too
	unweighed int   // payloads until that is found out again
	settled   int   // and how many it will be then, if the finding is the same
}

// droughts is, for each sort of payload, how many more were not worth compressing, or not tried, than were: each that shrank makes up for
// a few that did not. The sorts are apart because they differ: nodes shrink, and deltas of a few records may, where leaves of the same
// records do not.
type droughts [sorts]int

// The sorts of payloads.
const (
	leaves = iota
	deltas
	others
	sorts
)

// of returns the count of a sort.
func (d *droughts) of(kind Kind) *int {
	switch kind {
	case KindLeaf:
		return &d[leaves]
	case KindDelta:
		return &d[deltas]
	}
	return &d[others]
}

const (
	// dullAfter is how many payloads more than were made up for must not shrink before only one in as many is tried.
	dullAfter = 16
	// madeUpFor is for how many that did not shrink one that did makes up. Where less than one in as many and one shrinks, it is by chance:
	// what saves little on a few is not worth the time that all of them take.
	madeUpFor = 4
	// weighEvery is how many payloads go by between two comparisons of S2 with zstd: twice as many after each that finds what the one
	// before it did, up to weighMost.
	weighEvery = 64
	weighMost  = 512
	// weighedBytes: a shorter payload says little about the others, and takes little time.
	weighedBytes = 1 << 10
)

// codecFor returns how the next payload is to be compressed, and whether the other codec is to be tried on it too.
func (h *habits) codecFor(kind Kind, codec Codec, e effort, length int) (wanted Codec, weigh bool) {
	if dull := *h.dull.of(kind); dull >= dullAfter && dull%dullAfter != 0 {
		return None, false
	}
	if e != quick || (codec != Zstd && codec != ZstdDictionary) || length < weighedBytes {
		return codec, false
	}
	h.unweighed--
	if h.unweighed < 0 {
		return codec, true
	}
	if h.light {
		return h.lightly, false
	}
	return codec, false
}

// doubts reports whether the next payload had better be sampled before all of it is compressed.
func (h *habits) doubts(kind Kind) bool { return *h.dull.of(kind) > 0 }

// note takes in how a payload was stored.
func (h *habits) note(kind Kind, used Codec) {
	dull := h.dull.of(kind)
	switch {
	case used != None:
		*dull = max(min(*dull, dullAfter)-madeUpFor, 0)
	case !h.light || h.lightly != None: // else it was not tried
		*dull++
	}
}

// weigh takes in how many bytes a payload takes by S2 and by zstd. Zstd takes several times as long as S2, on both ends. That is too
// long where it takes less than a fifth off what S2 leaves; and where S2 saves less than a quarter, and zstd less than another third.
// (Random text is of that kind: it takes six or seven of eight bits, and hardly anything comes twice.) S2 in turn is not worth its time
// where it saves less than a fifth; what is stored as it is can be read in parts besides.
func (h *habits) weigh(raw, byS2, byZstd int) {
	light, lightly := 5*byZstd > 4*byS2 || 4*byS2 > 3*raw && 3*(byS2-byZstd) < raw, S2
	if 5*byS2 > 4*raw {
		lightly = None
	}
	h.settled = min(2*h.settled, weighMost)
	if h.settled == 0 || light != h.light || lightly != h.lightly {
		h.settled = weighEvery
	}
	h.light, h.lightly, h.unweighed = light, lightly, h.settled
}

// learnt is what is not worth compressing in a keyspace, from one Writer in a hurry to the next: a checkpoint of a few leaves would end
// before it has found out.
type learnt struct {
	mu   sync.Mutex
	dull map[uint32]droughts
}

// mostLearnt bounds the memory of it.
const mostLearnt = 1 << 10

// of returns habits to begin with.
func (l *learnt) of(keyspace uint32) habits {
	l.mu.Lock()
	defer l.mu.Unlock()
	return habits{keyspace: keyspace, dull: l.dull[keyspace]}
}

// keep takes in what was learnt.
func (l *learnt) keep(h habits) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.dull == (droughts{}) {
		delete(l.dull, h.keyspace)
		return
	}
	if _, known := l.dull[h.keyspace]; l.dull == nil || !known && len(l.dull) >= mostLearnt {
		l.dull = map[uint32]droughts{}
	}
	l.dull[h.keyspace] = h.dull
}
