package view

import (
	"bytes"

	"github.com/pandodb/pando/internal/gap"
)

// A walk over merged sources that passes over many pairs in a row, deleted ones nearly always, notes that there is a gap; and one that comes to a
// gap goes on behind it. What lies in the overlay is no part of that: its sources stay, the others leap.

// Noter takes note of gaps in what a reader has seen at a sequence number. leads tells that the reader's owner leads commits.
type Noter interface {
	NoteGap(keyspace uint32, g gap.Gap, leads bool)
}

const (
	manyHidden  = 64       // pairs passed over in a row that are worth a note
	hiddenNotes = 16 << 10 // and the note of what has been passed so far, since writers may be ahead of the walk when it has come to the end
)

// hole is what a move has passed over so far.
type hole struct {
	start   []byte // where that began: the bound of the gap at which the walk came to it
	open    bool   // start is behind all keys
	known   bool   // start was set before anything was passed over
	count   int    // pairs passed over
	look    int    // when to look whether a known gap begins here
	note    int    // when to note what has been passed over, even though it goes on
	overlay int    // sources of the overlay, which are the first
}

// begin starts a move from a pair.
func (h *hole) begin(gaps gap.Gaps) {
	h.count, h.look, h.note, h.known = 0, manyHidden, hiddenNotes, false
	if len(gaps) > 0 {
		h.look = 1
	}
}

// beginAt starts a move from key, in the case of one backward from the end where that is nil.
func (h *hole) beginAt(gaps gap.Gaps, key []byte, backward bool) {
	h.begin(gaps)
	h.start, h.open, h.known = append(h.start[:0], key...), backward && key == nil, true
}

// pass counts n pairs that were passed over, of which key is the first.
func (h *hole) pass(key []byte, n int) {
	if h.count == 0 && !h.known {
		h.start, h.open = append(h.start[:0], key...), false
	}
	h.count += n
}

// passBack is pass for a move backward. The gap ends behind the pair.
func (h *hole) passBack(key []byte) {
	if h.count == 0 && !h.known {
		h.start, h.open = append(append(h.start[:0], key...), 0), false
	}
	h.count++
}

// due reports whether there is something to look at.
func (h *hole) due() bool { return h.count >= h.look }

// leapForward goes on behind the gap, if there is one, in which key lies, at which the move has arrived.
func (it *Iterator) leapForward(key []byte) bool {
	h := &it.hole
	h.look = max(2*h.count, manyHidden)
	if h.count >= h.note {
		h.note = 2 * h.count
		it.noteForward(key)
	}
	to, ok := it.o.Gaps.After(key, it.o.Seq)
	if ok {
		it.moveForward(to) // key may be gone now
	}
	return ok
}

// moveForward moves all sources but those of the overlay to key; nil is behind all keys.
func (it *Iterator) moveForward(key []byte) {
	for i := it.hole.overlay; i < len(it.sources); i++ {
		s := &it.sources[i]
		switch {
		case s.cursor == nil:
		case key == nil:
			s.valid = false
		default:
			s.set(s.cursor.SeekGE(key))
		}
	}
	if key == nil {
		it.settled.valid = false
	} else {
		it.settled.seekGE(key)
	}
}

// leapBackward is leapForward for a move backward.
func (it *Iterator) leapBackward(key []byte) bool {
	h := &it.hole
	h.look = max(2*h.count, manyHidden)
	to, ok := it.o.Gaps.Before(append(bytes.Clone(key), 0), it.o.Seq)
	if ok {
		it.moveBackward(to)
	}
	return ok
}

// moveBackward moves all sources but those of the overlay below key.
func (it *Iterator) moveBackward(key []byte) {
	for i := it.hole.overlay; i < len(it.sources); i++ {
		if s := &it.sources[i]; s.cursor != nil {
			s.set(s.cursor.SeekLT(key))
		}
	}
	it.settled.seekLT(key)
}

// noteForward notes, if it is worth it, that the move has found nothing before key; nil is the end of the walk.
func (it *Iterator) noteForward(key []byte) {
	if key == nil {
		key = it.o.Upper
	}
	h := &it.hole
	if h.count < manyHidden || h.open {
		return
	}
	it.noteGap(gap.Gap{Low: h.start, High: key})
}

// noteBackward notes, if it is worth it, that the move has found nothing behind key, where it has arrived; without ok that is the end.
func (it *Iterator) noteBackward(key []byte, ok bool) {
	h := &it.hole
	if h.count < manyHidden {
		return
	}
	g := gap.Gap{Low: it.o.Lower, High: h.start}
	if ok {
		g.Low = append(bytes.Clone(key), 0)
	}
	if h.open {
		g.High = nil
	}
	it.noteGap(g)
}

func (it *Iterator) noteGap(g gap.Gap) {
	if it.o.Noter == nil || it.hole.overlay > 0 || it.settled.err() != nil || it.o.Gaps.Covers(g.Low, g.High, it.o.Seq) {
		return
	}
	g.Seq = it.o.Seq
	it.o.Noter.NoteGap(it.o.Keyspace, g, it.o.Leads)
}
