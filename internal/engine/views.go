package engine

import (
	"errors"
	"math"
	"slices"

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

// doomedKeyspace is one that was dropped, and is to be forgotten. No view knows it that is not older than generation.
type doomedKeyspace = doomed[*Keyspace]

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
	oldest := e.oldestView()
	segments, e.doomed = takeBefore(e.doomed, oldest)
	dictionaries, e.outdated = takeBefore(e.outdated, oldest)
	return segments, dictionaries
}

// doomedIDs are the segments that are to go when nobody reads them any more. The caller holds mu.
func (e *Engine) doomedIDs() map[uint32]bool {
	ids := make(map[uint32]bool, len(e.doomed))
	for _, d := range e.doomed {
		ids[d.id] = true
	}
	return ids
}

// oldestView returns the generation of the oldest view that somebody may read. The caller holds mu.
func (e *Engine) oldestView() uint64 {
	oldest := e.generated + 1
	for v := range e.views {
		oldest = min(oldest, v.Generation)
	}
	return oldest
}

// forgetDropped forgets the keyspaces that were dropped, of which the new roots have nothing any more, and those before them, as far as
// neither a view nor the log, whose readers ask for names, has anything of them. The caller is settling.
func (e *Engine) forgetDropped(dropped []*Keyspace) {
	e.mu.Lock()
	for _, ks := range dropped {
		e.forgotten = append(e.forgotten, doomedKeyspace{ks, e.generated})
	}
	oldest := e.oldestView()
	e.mu.Unlock()
	logged := uint64(math.MaxUint64)
	if e.log != nil {
		logged = e.log.OldestRead()
	}
	n := slices.IndexFunc(e.forgotten, func(d doomedKeyspace) bool { return d.generation > oldest || d.id.droppedBy.Load() >= logged })
	if n < 0 {
		n = len(e.forgotten)
	}
	e.keyspaces.forget(e.forgotten[:n])
	e.forgotten = slices.Delete(e.forgotten, 0, n)
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
