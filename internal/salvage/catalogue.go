package salvage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
)

// choose finds the newest catalogue.
//
// A slot is believed when the other one verifies as well, since then no newer one was stored, or when the log goes on where it ends and has
// all that was committed since: of a bulk load it only says that there was one, and a root has the rest. Otherwise the slot that is gone
// may have been the newer one, and the log before it may have been recycled: the newest catalogue in the segments is then at least as new
// as that slot.
func (r *rescue) choose(slots []root.Slot, damage []error) error {
	var slot root.Slot
	if len(slots) > 0 {
		slot = slots[0]
		c, err := r.read(slot)
		if err != nil {
			r.report.lose(Loss{}, fmt.Errorf("catalogue: %w", err))
		} else {
			r.catalogue, r.place = c, slot.Catalogue
		}
		if err == nil && len(damage) == 0 && len(slots) == 2 {
			return nil
		}
		if ok, loaded := r.follow(slot.Seq, slot.Log); err == nil && ok && !loaded {
			return nil
		}
	}
	r.doubtful = true
	c, p, err := r.newestCatalogue()
	if err != nil {
		return err
	}
	switch {
	case c != nil && (r.catalogue == nil || after(p, r.place)):
		r.catalogue, r.place = c, p
	case r.catalogue == nil:
		r.catalogue, r.blind = new(root.Catalogue), true
		r.report.lose(Loss{}, errors.New("no catalogue verifies: names of keyspaces are known as far as the log tells them, and all data is taken from the segments as it is found"))
		return nil
	}
	missed := !slot.Catalogue.IsZero() && after(slot.Catalogue, r.place)
	r.behind = missed || !r.followed(r.catalogue.Seq, r.catalogue.Log)
	if r.behind {
		r.report.lose(Loss{}, fmt.Errorf("what was settled after command %d is known only as far as its leaves are found in the segments", r.catalogue.Seq))
	}
	return nil
}

// after reports whether p was written after q.
func after(p, q segment.Pointer) bool {
	return p.Segment > q.Segment || p.Segment == q.Segment && p.Offset > q.Offset
}

// read returns the catalogue of a slot. What the slot says of the log counts: Close may have stored it again since, and Backup begins a
// new one.
func (r *rescue) read(slot root.Slot) (*root.Catalogue, error) {
	if slot.Catalogue.IsZero() {
		return &root.Catalogue{Seq: slot.Seq, Log: slot.Log}, nil
	}
	var buf segment.Buffer
	raw, h, err := r.store.Read(slot.Catalogue, &buf)
	if err != nil {
		return nil, err
	}
	if h.Kind != segment.KindCatalogue {
		return nil, fmt.Errorf("a blob of kind %d: %w", h.Kind, corrupt.Err)
	}
	c, err := root.Decode(bytes.Clone(raw))
	if err == nil {
		c.Seq, c.Log = slot.Seq, slot.Log
	}
	return c, err
}

// newestCatalogue looks for the catalogue that was written last; nil: there is none.
func (r *rescue) newestCatalogue() (newest *root.Catalogue, place segment.Pointer, err error) {
	for _, s := range slices.Backward(r.segments) {
		err := r.store.Scan(r.ctx, s.ID, func(p segment.Pointer, h segment.Header, raw []byte) error {
			if h.Kind != segment.KindCatalogue {
				return nil
			}
			if c, err := root.Decode(bytes.Clone(raw)); err == nil {
				newest, place = c, p
			}
			return nil
		}, nil)
		if err := r.scanFailed(s.ID, err); err != nil || newest != nil {
			return newest, place, err
		}
	}
	return nil, segment.Pointer{}, nil
}

// scanFailed returns an error that ends the run, and lists one that only makes a segment unreadable.
func (r *rescue) scanFailed(id uint32, err error) error {
	if err == nil || r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	var failed *sinkError
	if errors.As(err, &failed) {
		return failed.error
	}
	r.report.lose(Loss{File: segment.FilePath(id)}, err)
	return nil
}

// sinkError marks an error of the new database, which ends the run.
type sinkError struct{ error }

// Unwrap returns the error that is marked.
func (e *sinkError) Unwrap() error { return e.error }

func fromSink(err error) error {
	if err == nil {
		return nil
	}
	return &sinkError{err}
}

// loadDictionaries reads the compression dictionaries. What was compressed with one that is lost, is lost.
func (r *rescue) loadDictionaries() error {
	var buf segment.Buffer
	for _, d := range r.catalogue.Dictionaries {
		raw, _, err := r.store.Read(d.Pointer, &buf)
		if err == nil {
			err = r.store.AddDictionary(d.ID, raw)
		}
		if err != nil {
			r.report.lose(Loss{}, fmt.Errorf("compression dictionary %d: %w", d.ID, err))
		}
	}
	return r.ctx.Err()
}

// damagedSegments lists the files that the catalogue knows and that are not there, or not whole. One in which it knows of nothing that lives,
// and whose header block does not verify, a crash has left half made, unless there may be a newer catalogue: what the log refers to in it
// is looked for anyway.
func (r *rescue) damagedSegments() {
	live := map[uint32]bool{}
	for _, want := range r.catalogue.Segments {
		live[want.ID] = want.Live > 0
		i := slices.IndexFunc(r.segments, func(s segment.Surveyed) bool { return s.ID == want.ID })
		name := segment.FilePath(want.ID)
		switch {
		case i < 0:
			r.report.lose(Loss{}, corrupt.New(name, 0, want.Size, "%v", fs.ErrNotExist))
		case want.Class == segment.Nodes && r.segments[i].Size < want.Size:
			r.report.lose(Loss{}, corrupt.New(name, r.segments[i].Size, want.Size-r.segments[i].Size, "the file is too short"))
		}
	}
	for _, s := range r.segments {
		if s.Damage != nil && (live[s.ID] || r.doubtful) {
			r.report.lose(Loss{File: segment.FilePath(s.ID), Length: segment.FileHeaderSize}, s.Damage)
		}
	}
}
