package wal

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/pandodb/pando/internal/corrupt"
)

// planner decides what to believe of a log. It is a function of bytes: it gets the content of segments from load and does
// no I/O of its own, so that transcripts can test it.
//
// It walks over the frames from the start position. The first bytes that are not the expected frame end the log. Whether
// they are a torn tail or damage is told by the claims: every frame and every header says up to where the log was durable
// when it was written. If any of them lies beyond the end that was found, something that had been synced is gone.
type planner struct {
	dir     string
	chain   []found
	strays  []found // those above the chain's start are searched for claims
	load    func(f found) (content, error)
	deliver Deliver

	last     uint64 // of the record before the next one; 0: not known
	claim    place  // the highest met so far
	foreseen place  // the highest in any header, and in the frames of the segment at hand
	lastEnd  place  // of the last record
	partial  struct {
		open  bool
		start place
		seq   uint64
		data  []byte
	}
	out outcome
}

// outcome is what a planner found.
type outcome struct {
	Recovered
	end       place
	durable   place    // the highest claim: below it nothing needs to be made durable again
	unclaimed bool     // the last records lie above it
	before    []uint64 // for each segment of the chain: the last record that begins before it
	whole     bool     // the first segment is intact from its beginning to the start position
}

// verdict is how the walk over a segment ended.
type verdict struct {
	bad    bool   // the log ends here
	record place  // where the record begins that could not be read
	offset int64  // of the frame that could not be read
	reason string // what was wrong
}

// run replays the chain from the position start on.
func (p *planner) run(start place, after uint64) (outcome, error) {
	p.last = after
	p.out.LastSeq = after
	p.out.end = start
	for _, f := range p.chain {
		p.foreseen = max(p.foreseen, f.header.durable)
	}
	for i, f := range p.chain {
		c, err := p.load(f)
		if err != nil {
			return p.out, fmt.Errorf("log: read %s: %w", baseName(f.segment), err)
		}
		data := c.data
		p.foresee(&p.chain[i], data)
		p.raise(f.header.durable)
		p.out.before = append(p.out.before, p.begun())
		limit, exact := f.header.limit(), false
		if i+1 < len(p.chain) && p.chain[i+1].header.prevEnd != 0 {
			limit, exact = p.chain[i+1].header.prevEnd, true
		}
		offset := int64(firstFrame)
		if i == 0 {
			offset = start.offset()
			if err := p.startAt(&p.chain[0], data, offset, limit); err != nil {
				return p.out, err
			}
		}
		v, err := p.segment(&p.chain[i], data, offset, limit, exact)
		if err != nil {
			return p.out, err
		}
		if v.bad {
			return p.out, p.finish(i, &c, v)
		}
	}
	last := p.chain[len(p.chain)-1].header
	if p.partial.open {
		// The next segment was durable before this record began.
		return p.out, corrupt.New(filepath.Join(p.dir, baseName(p.partial.start.segment())), p.partial.start.offset(), 0,
			"record %d goes on in a segment after %s, which is missing or cannot be read", p.partial.seq, baseName(last.segment))
	}
	return p.out, p.finish(len(p.chain)-1, nil, verdict{record: p.out.end, offset: last.limit(), reason: "the log ends"})
}

// foresee looks through the claims of a segment before its records are delivered, so that their receiver can be told which of
// them had been synced. It reads the headers of frames only.
func (p *planner) foresee(f *found, data []byte) {
	limit := min(f.header.limit(), int64(len(data)))
	for offset := int64(firstFrame); offset < limit; {
		fr, ok := decodeFrame(data[offset:limit], &f.header, offset, limit)
		if !ok {
			return
		}
		p.foreseen = max(p.foreseen, fr.claim)
		offset += fr.room()
	}
}

// begun is the number of the last record that has begun.
func (p *planner) begun() uint64 {
	if p.partial.open {
		return p.partial.seq
	}
	return p.last
}

func (p *planner) raise(claim place) { p.claim = max(p.claim, claim) }

// startAt looks at the frames before the start position. Where they are intact and lead to it, readers of the change feed may
// have them, unless the database has gone on without a log since: then they would miss what came in between. A start position inside of a
// frame is an error: everything after it would look like a torn tail.
func (p *planner) startAt(f *found, data []byte, start, limit int64) error {
	name := filepath.Join(p.dir, baseName(f.segment))
	if start > limit {
		return corrupt.New(name, start, 0, "the log is to be read from here, but this segment ends at %d", limit)
	}
	before, last := p.last, p.last
	offset := int64(firstFrame)
	for offset < start {
		fr, ok := p.frame(f, data, offset, limit)
		if !ok {
			return nil
		}
		if offset == firstFrame {
			before = fr.before()
		}
		last = fr.seq
		offset += fr.room()
	}
	if offset > start {
		return corrupt.New(name, start, 0, "the log is to be read from here, which is inside of a frame that ends at %d", offset)
	}
	if last >= p.last {
		p.out.whole, p.out.before[0] = true, before
	}
	return nil
}

// frame verifies the frame at offset, payload included.
func (p *planner) frame(f *found, data []byte, offset, limit int64) (frame, bool) {
	limit = min(limit, int64(len(data)))
	if offset >= limit {
		return frame{}, false
	}
	fr, ok := decodeFrame(data[offset:limit], &f.header, offset, limit)
	if !ok || !fr.payloadMatches(data[offset+frameHeader:offset+frameHeader+fr.length]) {
		return frame{}, false
	}
	return fr, true
}

// segment walks over the frames of one segment. With exact, frames must lead exactly to limit.
func (p *planner) segment(f *found, data []byte, offset, limit int64, exact bool) (verdict, error) {
	for {
		here := at(f.segment, offset)
		if offset == limit || !exact && limit-offset < minRoom {
			p.out.end = max(p.out.end, here)
			if p.partial.open {
				p.out.end = p.partial.start
			}
			return verdict{}, nil
		}
		v := verdict{bad: true, record: here, offset: offset, reason: "no valid frame"}
		if p.partial.open {
			v.record = p.partial.start
		}
		fr, ok := p.frame(f, data, offset, limit)
		if !ok || !p.fits(&fr) {
			return v, nil
		}
		if err := p.follows(f, &fr, offset); err != nil {
			return v, err
		}
		p.raise(fr.claim)
		v.record = here
		if p.partial.open {
			v.record = p.partial.start
		}
		err := p.take(&fr, here, data[offset+frameHeader:offset+frameHeader+fr.length])
		if errors.Is(err, ErrCut) {
			p.out.Cut = new(v.record.position())
			v.reason = err.Error()
			return v, nil
		}
		if errors.Is(err, ErrTooLarge) {
			return v, nil
		}
		if err != nil {
			return v, fmt.Errorf("log: record %d at %v: %w", fr.seq, v.record.position(), err)
		}
		offset += fr.room()
	}
}

// fits reports whether a frame of this kind may come now.
func (p *planner) fits(fr *frame) bool {
	if fr.kind == kindMiddle || fr.kind == kindLast {
		return p.partial.open && fr.seq == p.partial.seq
	}
	return !p.partial.open
}

// follows checks the sequence number. A frame that verifies and does not follow on its predecessor can only come from a
// record in between having been lost, or from a start position that belongs to another sequence number.
func (p *planner) follows(f *found, fr *frame, offset int64) error {
	ok := true
	switch fr.kind {
	case kindFull, kindFirst:
		ok = fr.seq > p.last && (p.last == 0 || fr.span == spanOf(fr.seq, p.last))
	case kindMark:
		// The database may have gone on without a log, and come back: its root then holds more than the log ever did.
		ok = p.last == 0 || fr.seq == p.last || (fr.seq < p.last && p.out.Records == 0)
	}
	if ok {
		return nil
	}
	return corrupt.New(filepath.Join(p.dir, baseName(f.segment)), offset, fr.room(), "record %d, which follows %d records after its predecessor, comes after record %d", fr.seq, fr.span, p.last)
}

// take adds a frame to what was replayed.
func (p *planner) take(fr *frame, here place, payload []byte) error {
	end := here + place(fr.room())
	switch fr.kind {
	case kindMark:
		p.out.end = end
		return nil
	case kindFull:
	case kindFirst:
		p.partial.open, p.partial.start, p.partial.seq = true, here, fr.seq
		p.partial.data = append(p.partial.data[:0], payload...)
		return nil
	default:
		if len(p.partial.data)+len(payload) > MaxPayload {
			return ErrTooLarge
		}
		p.partial.data = append(p.partial.data, payload...)
		if fr.kind == kindMiddle {
			return nil
		}
		payload = p.partial.data
	}
	if err := p.deliver(fr.seq, payload, end <= p.foreseen); err != nil {
		return err
	}
	p.partial.open = false
	p.last = fr.seq
	p.out.LastSeq = fr.seq
	p.out.Records++
	p.out.Bytes += int64(len(payload))
	p.out.end, p.lastEnd = end, end
	return nil
}

// finish decides what the end of the walk in segment i of the chain means.
func (p *planner) finish(i int, c *content, v verdict) error {
	remains := p.partial.open || p.out.Cut != nil
	if c != nil {
		remains = p.search(&p.chain[i], c, v.offset) || remains
	}
	for _, f := range p.beyond(i) {
		c, err := p.load(f)
		if err != nil {
			return fmt.Errorf("log: read %s: %w", baseName(f.segment), err)
		}
		p.raise(f.header.durable)
		remains = p.search(&f, &c, firstFrame) || remains
	}
	p.out.end = v.record
	p.out.End = v.record.position()
	p.out.durable = min(p.claim, v.record)
	p.out.unclaimed = p.lastEnd > p.claim
	if p.claim > v.record {
		return corrupt.New(filepath.Join(p.dir, baseName(p.chain[i].segment)), v.offset, 0,
			"%s, but the log was durable up to %v", v.reason, p.claim.position())
	}
	if remains {
		p.out.Cut = new(v.record.position())
	}
	return nil
}

// beyond lists the segments in which later frames may lie: the rest of the chain, and what should perhaps belong to it.
func (p *planner) beyond(i int) []found {
	rest := append([]found(nil), p.chain[i+1:]...)
	for _, f := range p.strays {
		if f.condition == inUse && f.segment > p.chain[i].segment {
			rest = append(rest, f)
		}
	}
	return rest
}

// searchEffort limits the bytes of torn payloads that are looked at on the search for frames: so many times the length of the segment. A crash
// leaves one or two of them; a file made with ill intent could have as many as frames fit into it, each to the end of the segment.
const searchEffort = 4

// search looks for frames of this segment at offset and everywhere after it, raises the claim by theirs, and reports whether
// there are any. The header of a frame is proof enough of its claim: the payload may be torn.
func (p *planner) search(f *found, c *content, offset int64) (any bool) {
	data, effort := c.data, searchEffort*int64(len(c.data))
	limit := min(f.header.limit(), int64(len(data)))
	for offset+frameHeader <= limit {
		if c.hole <= offset && offset < c.holeEnd {
			offset = padded(c.holeEnd)
			continue
		}
		step := int64(alignment)
		// Before the hole the kind may lie in it already, where it is none: to look there would read a part of it in, and the system as
		// much behind that as it reads ahead.
		if k := offset + offKind; c.hole <= k && k < c.holeEnd {
			offset += step
			continue
		}
		if k := kind(data[offset+offKind]); k < kindFull || k > kindMark {
			offset += step
			continue // a short cut past what decodeFrame would say
		}
		if fr, ok := decodeFrame(data[offset:limit], &f.header, offset, f.header.limit()); ok {
			any = true
			p.raise(fr.claim)
			// Where the payload is torn, the next frame may be anywhere.
			if end := offset + frameHeader + fr.length; end <= limit && effort > 0 {
				if fr.payloadMatches(data[offset+frameHeader : end]) {
					step = fr.room()
				} else {
					effort -= fr.length
				}
			}
		}
		offset += step
	}
	return any
}
