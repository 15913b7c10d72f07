package engine

import (
	"errors"

	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/view"
)

// doomed is what no stored root refers to any more. It goes when no view is left that was published before generation.
type doomed[ID any] struct {
	id         ID
	generation uint64
}

// doomedSegment is a segment whose file is to go.
type doomedSegment = doomed[uint32]

// doomedDictionary is a compression dictionary that is to be forgotten.
type doomedDictionary = doomed[uint16]

// publish makes a view the current one. The caller holds mu.
func (e *Engine) publish(tables []*view.Table, roots view.Roots) {
	e.generated++
	v := view.New(&e.reads, tables, roots, e.generated, e.viewReleased)
	e.views[v] = struct{}{}
	old := e.current.Swap(v)
	if old != nil {
		// Readers inside an epoch section may have loaded the old view without taking a reference.
		e.epoch.Retire(old.Unref)
	}
}

// viewReleased is called when nobody can read a view any more.
func (e *Engine) viewReleased(v *view.View) {
	e.mu.Lock()
	delete(e.views, v)
	gone, unread := e.unreachable()
	last := len(e.views) == 0 && e.drained && !e.released
	if last {
		e.released = true
	}
	e.mu.Unlock()
	e.removeSegments(gone)
	for _, id := range unread {
		e.store.DropDictionary(id)
	}
	if last {
		e.releaseResources()
	}
}

// unreachable takes what no view can read any more off the lists of doomed segments and dictionaries. The caller holds mu.
func (e *Engine) unreachable() (segments []uint32, dictionaries []uint16) {
	if len(e.doomed) == 0 && len(e.outdated) == 0 {
		return nil, nil
	}
	oldest := e.generated + 1
	for v := range e.views {
		oldest = min(oldest, v.Generation)
	}
	segments, e.doomed = takeBefore(e.doomed, oldest)
	dictionaries, e.outdated = takeBefore(e.outdated, oldest)
	return segments, dictionaries
}

// takeBefore takes off a list what no view reads when oldest is the oldest one.
func takeBefore[ID any](list []doomed[ID], oldest uint64) (gone []ID, kept []doomed[ID]) {
	kept = list[:0]
	for _, d := range list {
		if d.generation <= oldest {
			gone = append(gone, d.id)
		} else {
			kept = append(kept, d)
		}
	}
	return gone, kept
}

// removeSegments deletes segment files. One that cannot be deleted now is deleted by the next open: the catalogue does not
// know it.
func (e *Engine) removeSegments(ids []uint32) {
	for _, id := range ids {
		err := e.store.Remove(id)
		if err != nil && !errors.Is(err, segment.ErrUnknownSegment) { // else it went while a checkpoint found that nobody needs it
			e.o.Logger.Warn("segment stays until the next open", "segment", id, "error", err)
		}
	}
}

// OldestView returns by how many generations the oldest picture that somebody reads lags behind, and how many are held.
func (e *Engine) OldestView() (lag uint64, held int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	oldest := e.generated
	for v := range e.views {
		oldest = min(oldest, v.Generation)
	}
	return e.generated - oldest, len(e.views) - 1
}
