package engine

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/view"
)

// A snapshot that is held for long would keep the memtables of its moment alive, and with them more memory than the budget
// has, were there many of them. So before a further memtable is settled, held snapshots whose memtables have settled
// meanwhile are moved: what the memtables say at the snapshot's moment is merged into roots of its own, in segments that
// nobody else refers to and that are removed when the snapshot is released. A crash removes them too: no catalogue lists
// them. Until then the page cache makes room for the memtable. Iterators keep what they began with.

// Held is a snapshot that may be moved while it is held. It lies in the memory of its owner, and must not be copied. It is safe for
// concurrent use.
type Held struct {
	e     *Engine
	stop  view.Stop
	mu    sync.Mutex
	snap  Snapshot
	given bool // up
	stays bool // it cannot be moved; under settling

	next, previous *Held // in the engine's list; on heldMu
}

// Hold makes h take a snapshot over until End. It gives the snapshot up and fails when the database is being closed.
func (e *Engine) Hold(h *Held, s Snapshot) error {
	h.e, h.snap = e, s
	e.heldMu.Lock()
	if e.heldOver {
		e.heldMu.Unlock()
		h.End(ErrClosed)
		return ErrClosed
	}
	if h.next = e.held; h.next != nil {
		h.next.previous = h
	}
	e.held = h
	e.heldMu.Unlock()
	return nil
}

// Use returns the snapshot for one operation, which the caller releases, or why there is none any more: what its Stop was set to.
func (h *Held) Use() (Snapshot, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.stop.Err(); err != nil {
		return Snapshot{}, err
	}
	return h.snap.Retain(), nil
}

// Stop stops what reads the snapshot for longer than an operation: when h ends, and when the database is closed.
func (h *Held) Stop() *view.Stop { return &h.stop }

// Release gives the snapshot up before the end. No Use follows.
func (h *Held) Release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.given {
		h.given = true
		h.snap.Release()
	}
}

// End stops what reads the snapshot, with an error, and gives it up. It is called once.
func (h *Held) End(err error) {
	h.stop.Set(err)
	h.e.heldMu.Lock()
	switch {
	case h.previous != nil:
		h.previous.next = h.next
	case h.e.held == h:
		h.e.held = h.next
	}
	if h.next != nil {
		h.next.previous = h.previous
	}
	h.next, h.previous = nil, nil
	h.e.heldMu.Unlock()
	h.Release()
}

// stopHeld stops what reads held snapshots, as the database is being closed. None is held from then on.
func (e *Engine) stopHeld() {
	e.heldMu.Lock()
	defer e.heldMu.Unlock()
	e.heldOver = true
	for h := e.held; h != nil; h = h.next {
		h.stop.Set(ErrClosed)
	}
}

// moveHeld moves every held snapshot that keeps a settled memtable alive. One that cannot be moved, for want of space or because what it
// reads is damaged, keeps its memtables: it must not keep others from writing. The caller holds settling.
func (e *Engine) moveHeld(ctx context.Context) error {
	var list []*Held
	e.heldMu.Lock()
	for h := e.held; h != nil; h = h.next {
		list = append(list, h)
	}
	e.heldMu.Unlock()
	moved := map[moment]*view.View{}
	defer func() {
		for _, v := range moved {
			v.Unref()
		}
	}()
	for _, h := range list {
		if h.stays || h.stop.Err() != nil { // of one that Close has stopped nobody reads any more
			continue
		}
		err := h.move(ctx, moved)
		if err != nil && (ctx.Err() != nil || e.failure.Load() != nil) {
			return fmt.Errorf("settle a held snapshot: %w", err)
		}
		if err != nil {
			h.stays = forGood(err) // another attempt would find the same
			e.o.Logger.Warn("a held snapshot keeps its memtables", "error", err)
		}
	}
	return nil
}

// moment is what snapshots have in common that show the same.
type moment struct {
	view *view.View
	seq  uint64
}

// move gives the snapshot roots of its own when its memtables are not in use any more. It shares them with others of its moment, which are
// in moved.
func (h *Held) move(ctx context.Context, moved map[moment]*view.View) error {
	h.mu.Lock()
	if h.given {
		h.mu.Unlock()
		return nil
	}
	old := h.snap.Retain()
	h.mu.Unlock()
	defer old.Release()
	if !h.e.keepsSettled(old.View) {
		return nil
	}
	at := moment{old.View, old.Seq}
	v := moved[at]
	if v == nil {
		var err error
		if v, err = h.e.privateView(ctx, old); err != nil {
			return err
		}
		moved[at] = v
	}
	h.mu.Lock()
	if h.given {
		h.mu.Unlock()
		return nil
	}
	v.Ref()
	h.snap = Snapshot{View: v, Seq: old.Seq, e: h.e}
	h.mu.Unlock()
	old.View.Unref() // what h held
	return nil
}

// keepsSettled reports whether a view keeps a memtable with records alive that the current view does without.
func (e *Engine) keepsSettled(v *view.View) bool {
	current := e.current.Load()
	for _, t := range v.Tables {
		used := false
		for _, c := range current.Tables {
			used = used || c == t
		}
		if !used && (t.Len() > 0 || t.HasRanges()) {
			return true
		}
	}
	return false
}

// privateView merges the memtables of a snapshot into roots that only it, and others of its moment, refer to.
func (e *Engine) privateView(ctx context.Context, s Snapshot) (*view.View, error) {
	w := e.store.NewWriter(segment.Nodes, 0)
	roots := s.View.Roots.Clone()
	var err error
	for _, id := range keyspacesOf(s.View.Tables) {
		if err = e.mergePrivately(ctx, s, &roots, id, w); err != nil {
			break
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		e.abortPrivate(w)
		return nil, err
	}
	w.Rest()
	// The view has the generation of the one that it replaces: it reads the same files.
	e.privates.Add(1)
	v := view.New(&e.reads, nil, roots, s.View.Generation, func(v *view.View) {
		e.privates.Add(-1)
		e.abortPrivate(w)
		e.viewReleased(v)
	})
	e.mu.Lock()
	e.views[v] = struct{}{}
	e.mu.Unlock()
	return v, nil
}

func (e *Engine) mergePrivately(ctx context.Context, s Snapshot, roots *view.Roots, id uint32, w *segment.Writer) error {
	ks := e.keyspaces.known(id) // it may have been dropped meanwhile, but the snapshot still reads it
	if ks == nil {
		return nil // it was dropped before the database was opened, and nobody reads what came to the log behind that
	}
	old := roots.At(id)
	if old == nil {
		empty, err := e.layouts[ks.Layout].Load(&e.env, id, nil)
		if err != nil {
			return err
		}
		old = empty
	}
	codec, dictionary := e.codecFor(ks)
	fresh, err := e.layouts[ks.Layout].Apply(ctx, old, view.Ranges(s.View.Tables, id, s.Seq), view.NewChanges(s.View.Tables, id, s.Seq), w,
		layout.ApplyOptions{Codec: codec, Dictionary: dictionary, LeafBytes: ks.LeafBytes, NoFilters: ks.NoFilters})
	if err == nil {
		roots.Set(id, fresh)
	}
	return err
}

// abortPrivate is abort for roots that only a view refers to, or none. What cannot be removed now is removed by the next open.
func (e *Engine) abortPrivate(w *segment.Writer) {
	if err := e.abort(w); err != nil {
		e.o.Logger.Warn("segments stay until the next open", "error", err)
	}
}

// keyspacesOf lists the keyspaces that a group of memtables holds anything of, in the order of their ids.
func keyspacesOf(tables []*view.Table) []uint32 {
	ids := map[uint32]bool{}
	for _, t := range tables {
		for _, id := range t.Keyspaces() {
			ids[id] = true
		}
	}
	return sortedIDs(ids)
}

// frontSteps is in how many steps the page cache makes room for the memtable that is written to.
const frontSteps = 4

// fitCache gives the page cache what inner nodes and memtables leave of the budget. Where little is written that is most of it: the
// memtable in front is all there is then, and it is counted as what it has, rounded up to steps. Who writes more than that wakes the worker.
// Once there are others the cache has the share that all of them leave, until a pause: to give memory to and fro costs more than a small
// cache does.
func (e *Engine) fitCache() {
	e.mu.Lock()
	seen := map[*view.Table]bool{}
	tables := e.current.Load().Tables
	for _, t := range tables {
		seen[t] = true
	}
	share, fits := e.sizes.cache, int64(math.MaxInt64)
	if len(tables) == 1 && !e.exchanged.Load() {
		step := int64(e.sizes.memtable / frontSteps)
		steps := int64(tables[0].Bytes()+tables[0].Spare()) / step
		share, fits = max(e.sizes.most-steps*step, share), (steps+1)*step
	}
	e.fits.Store(fits)
	var kept int64
	keep := func(tables []*view.Table) {
		for _, t := range tables {
			if !seen[t] {
				seen[t] = true
				kept += int64(t.Bytes())
			}
		}
	}
	for v := range e.views {
		keep(v.Tables)
	}
	keep(e.recent) // of which no view may be left
	e.mu.Unlock()
	if e.privates.Load() > 0 {
		kept += e.o.MemoryBytes / 8 // what merging for them leaves on the Go heap, about
	}
	const step = 64 << 10 // small changes are not worth the work
	want := max(share-kept-e.env.Inner.Load(), e.sizes.cache/8) &^ (step - 1)
	if want != e.cacheSize.Swap(want) {
		e.cache.Resize(want)
	}
}
