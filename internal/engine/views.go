package engine

import (
	"errors"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/view"
)

// doomedSegment is a segment that no stored root refers to any more. Its file goes when no view is left that was published
// before generation.
type doomedSegment struct {
	id         uint32
	generation uint64
}

// publish makes a view the current one. The caller holds mu.
func (e *Engine) publish(tables []*view.Table, roots []layout.Root) {
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
	gone := e.unreachable()
	last := len(e.views) == 0 && e.drained && !e.released
	if last {
		e.released = true
	}
	e.mu.Unlock()
	e.removeSegments(gone)
	if last {
		e.releaseResources()
	}
}

// unreachable takes the doomed segments that no view can read any more off the list. The caller holds mu.
func (e *Engine) unreachable() []uint32 {
	if len(e.doomed) == 0 {
		return nil
	}
	oldest := e.generated + 1
	for v := range e.views {
		oldest = min(oldest, v.Generation)
	}
	var gone []uint32
	kept := e.doomed[:0]
	for _, d := range e.doomed {
		if d.generation <= oldest {
			gone = append(gone, d.id)
		} else {
			kept = append(kept, d)
		}
	}
	e.doomed = kept
	return gone
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
