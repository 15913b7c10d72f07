package wal

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
)

// Databases counts, for each database, the segment files in dir whose header names it. It is for tools that have lost the
// root file, which tells otherwise. A missing directory holds none.
func Databases(fsys vfs.FS, dir string) (map[[16]byte]int, error) {
	o := Options{FS: fsys, Dir: dir}
	found := map[[16]byte]int{}
	files, err := surveyBy(&o, inspectWhatCan)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.condition == inUse || f.condition == foreign || f.condition == stale {
			found[f.header.database]++
		}
	}
	return found, nil
}

// Salvaged takes in what Salvage finds. An error of either method ends it, and is returned, except for ErrCut.
type Salvaged interface {
	// Record is called for each record, in the order in which they were appended. before is the number of the record that
	// was appended before it, as far as its frame tells; payload is valid during the call. synced says that the log knows the
	// record to have been durable.
	Record(seq, before uint64, payload []byte, synced bool) error
	// Lost is called for each stretch that cannot be read, with the sequence numbers of the commands in it: all above after
	// and up to last, which is 0 where it is not known.
	Lost(after, last uint64, err error) error
}

// Salvage delivers every record that can still be read, whatever lies in between: the whole of what the directory holds, from
// before the start of recovery on. Remains of records that were never known to be synced end the log, as in Recover, and are
// no loss; what a recovery has cut off stays cut off. Nothing is changed. It reads every file twice, one in memory at a time.
func Salvage(ctx context.Context, o Options, to Salvaged) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	files, err := surveyBy(&o, inspectWhatCan)
	if err != nil {
		return err
	}
	s := salvager{to: to, io: recovery{o: o}}
	switch err := s.run(ctx, readable(files, o.Database)); {
	case errors.Is(err, ErrCut):
		return nil
	case err != nil:
		return err
	}
	if name, any := unknown(o.Dir, files); any {
		return to.Lost(s.last, 0, corrupt.New(name, 0, 0, "neither copy of the header can be read: what stood in it, behind command %d, is lost", s.last))
	}
	return nil
}

// salvager reads what is left of a log.
type salvager struct {
	io   recovery // for its load
	to   Salvaged
	last uint64 // the record delivered last; 0: none

	partial struct {
		open   bool
		start  place
		seq    uint64
		before uint64
		data   []byte
	}
	gap struct {
		open   bool
		file   string
		offset int64
	}
}

// salvaged is a file in the order of the log.
type salvaged struct {
	found
	end    int64 // where a recovery has cut it; 0: nowhere
	broken bool  // it does not follow on the one before it
	claim  place // the highest in this file and those behind it
}

// readable puts the files in order, as link does, but goes on below a break. A header of which both copies are damaged is made
// up from what the next segment says of its predecessor, so that its frames can be read all the same.
func readable(files []found, database [16]byte) []salvaged {
	byNumber := map[uint64]found{}
	for _, f := range files {
		if f.condition == inUse && f.header.database == database || f.condition == damaged {
			byNumber[f.segment] = f
		}
	}
	var out []salvaged
	for _, newest := range slices.Backward(files) {
		f, ok := byNumber[newest.segment]
		if !ok || f.condition == damaged {
			continue // what came behind a damaged newest one is not known: its salt was nowhere else
		}
		if len(out) > 0 && f.segment >= out[len(out)-1].segment {
			continue // in the chain, or passed by
		}
		if len(out) > 0 {
			out[len(out)-1].broken = true
			if f.segment > out[len(out)-1].header.prevSegment {
				continue // cut off
			}
		}
		out = append(out, chainFrom(byNumber, f)...)
	}
	slices.Reverse(out)
	return out
}

// chainFrom follows the predecessors of f as far as they can be read, newest first.
func chainFrom(byNumber map[uint64]found, f found) []salvaged {
	out := []salvaged{{found: f}}
	for {
		h := out[len(out)-1].header
		prev, ok := byNumber[h.prevSegment]
		if h.prevSegment == noSegment || !ok {
			return out
		}
		if prev.condition == damaged {
			prev.condition = inUse
			prev.header = header{database: h.database, segment: prev.segment, salt: h.prevSalt, size: prev.size, prevSegment: noSegment}
			if before, ok := byNumber[prev.segment-1]; ok && before.condition == inUse {
				prev.header.prevSegment, prev.header.prevSalt = before.segment, before.header.salt
			}
		}
		if prev.header.salt != h.prevSalt {
			return out
		}
		out = append(out, salvaged{found: prev, end: h.prevEnd})
	}
}

func (s *salvager) run(ctx context.Context, files []salvaged) error {
	claim := place(0)
	for i := range slices.Backward(files) {
		f := &files[i]
		data, unread := s.content(&f.found)
		claim = max(claim, claims(&f.header, data, firstFrame), f.header.durable)
		if unread > 0 {
			claim = max(claim, at(f.segment, unread)) // there may have been frames
		}
		f.claim = claim
	}
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if i > 0 && f.broken {
			s.hole(at(f.segment, 0))
		}
		data, _ := s.content(&f.found)
		if ended, err := s.segment(f, data); ended || err != nil {
			return err
		}
	}
	return s.endGap(0)
}

// segment reads the frames of one file. ended tells that the log ends in it.
func (s *salvager) segment(f salvaged, data []byte) (ended bool, err error) {
	limit := f.header.limit()
	if f.end != 0 {
		limit = min(limit, f.end)
	}
	effort := searchEffort * int64(len(data))
	for offset := int64(firstFrame); limit-offset >= minRoom || f.end != 0 && offset < limit; {
		fr, payload, ok := frameAt(&f.header, data, offset, limit)
		if !ok || !s.fits(&fr) {
			here := at(f.segment, offset)
			if s.partial.open {
				here = s.partial.start
			}
			if !s.gap.open && f.claim <= here {
				return true, nil // a torn tail
			}
			s.hole(here)
			if effort -= int64(len(payload)); effort < 0 {
				break
			}
			offset += alignment
			continue
		}
		if err := s.endGap(fr.before()); err != nil {
			return false, err
		}
		synced := at(f.segment, offset+fr.room()) <= f.claim
		if err := s.take(&fr, payload, at(f.segment, offset), synced); err != nil {
			return false, err
		}
		offset += fr.room()
	}
	return false, nil
}

// frameAt verifies the frame at offset, payload included.
func frameAt(h *header, data []byte, offset, limit int64) (frame, []byte, bool) {
	limit = min(limit, int64(len(data)))
	if offset+frameHeader > limit {
		return frame{}, nil, false
	}
	fr, ok := decodeFrame(data[offset:limit], h, offset, limit)
	if !ok {
		return frame{}, nil, false
	}
	payload := data[offset+frameHeader:][:fr.length]
	return fr, payload, fr.payloadMatches(payload)
}

// fits reports whether a frame may come next. Behind a gap only the beginning of a record may. One that follows on a record which is not in
// the log does fit: the database may have gone on without one for a while, and whoever takes the record in is told.
func (s *salvager) fits(fr *frame) bool {
	whole := fr.kind == kindFull || fr.kind == kindFirst
	switch {
	case s.gap.open:
		return whole && fr.seq > s.last
	case whole:
		return !s.partial.open && fr.seq > s.last
	case fr.kind == kindMark:
		return !s.partial.open
	}
	return s.partial.open && fr.seq == s.partial.seq || s.last == 0 && !s.partial.open
}

// claims returns the highest claim of the frames of a segment, wherever they lie.
func claims(h *header, data []byte, offset int64) place {
	p := planner{}
	p.search(&found{header: *h}, &content{data: data}, offset)
	return p.claim
}

// take delivers a record when it is complete.
func (s *salvager) take(fr *frame, payload []byte, here place, synced bool) error {
	before := fr.before()
	switch fr.kind {
	case kindMark:
		return nil
	case kindFirst:
		s.partial.open, s.partial.start, s.partial.seq, s.partial.before = true, here, fr.seq, fr.before()
		s.partial.data = append(s.partial.data[:0], payload...)
		return nil
	case kindMiddle, kindLast:
		if !s.partial.open {
			return nil // the end of a record that began in a recycled segment
		}
		if len(s.partial.data)+len(payload) > MaxPayload {
			s.partial.open = false
			return nil
		}
		s.partial.data = append(s.partial.data, payload...)
		if fr.kind == kindMiddle {
			return nil
		}
		payload, before, s.partial.open = s.partial.data, s.partial.before, false
	}
	s.last = fr.seq
	return s.to.Record(fr.seq, before, payload, synced)
}

// hole notes that the log cannot be read from here on.
func (s *salvager) hole(here place) {
	s.partial.open = false
	if !s.gap.open {
		s.gap.open, s.gap.file, s.gap.offset = true, baseName(here.segment()), here.offset()
	}
}

// endGap reports the stretch that could not be read. before is the record before the one at which reading goes on, 0 at the end.
func (s *salvager) endGap(before uint64) error {
	if !s.gap.open {
		return nil
	}
	s.gap.open = false
	name := filepath.Base(s.io.o.Dir) + "/" + s.gap.file
	switch {
	case before == 0:
		return s.to.Lost(s.last, 0, corrupt.New(name, s.gap.offset, 0, "the rest of the log, behind command %d, cannot be read", s.last))
	case before > s.last:
		return s.to.Lost(s.last, before, corrupt.New(name, s.gap.offset, 0, "commands %d to %d of the log cannot be read", s.last+1, before))
	}
	return nil // there was nothing but a mark
}
