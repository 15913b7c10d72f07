package document

import (
	"context"
	"math"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/scratch"
)

// changeChunk is how many documents one commit of an update or delete of many takes.
const changeChunk = 256

// spaceEvery is how many chunks go by between two looks at the disk.
const spaceEvery = 16

// changeWalk looks for the documents of a change in a snapshot, and changes them a chunk at a time.
//
// The snapshot keeps everything that the change replaces, until the walk ends. So where the disk is nearly full the walk goes to its end first,
// as far as there is memory for the keys that it finds, and gives the snapshot up before they are changed: else what is deleted would make no room, but
// take more.
type changeWalk struct {
	ch    *change
	x     *collection
	m     *matches // nil: the walk has ended
	keys  pando.List
	some  [][]byte      // of them, for a commit
	share scratch.Share // of the memory for queries, for keys beyond a chunk
}

// run carries the walk out.
func (w *changeWalk) run(ctx context.Context) error {
	ch := w.ch
	chunk, fullCtx := 1, ctx
	switch {
	case ch.many && ch.c.tx != nil:
		chunk = math.MaxInt // a walk through what the transaction sees would come upon what it has changed
	case ch.many:
		chunk, fullCtx = changeChunk, moreFollow(ctx)
	}
	w.share = ch.c.store.keysAllowance().Share()
	chunks, gather := 0, false
	for w.m.next() {
		w.keys.Append(w.m.key())
		if w.keys.Len() < chunk {
			continue
		}
		if chunk == changeChunk && !gather && chunks%spaceEvery == 0 {
			gather = ch.c.store.nearlyFull()
		}
		if gather && w.share.Fits(int64(w.keys.Cap())) {
			continue
		}
		chunks++
		if err := w.flush(fullCtx, fullCtx); err != nil {
			return err
		}
		if !ch.many && ch.matched > 0 {
			return nil
		}
	}
	if err := w.m.err(); err != nil {
		return err
	}
	if gather {
		if err := w.close(); err != nil {
			return err
		}
	}
	return w.flush(fullCtx, ctx)
}

// flush changes the documents that were found, the last of them with a context of their own.
func (w *changeWalk) flush(ctx, last context.Context) error {
	for from := 0; from < w.keys.Len(); {
		w.some = w.some[:0]
		for ; from < w.keys.Len() && len(w.some) < changeChunk; from++ {
			w.some = append(w.some, w.keys.At(from))
		}
		if from == w.keys.Len() {
			ctx = last
		}
		if err := w.ch.apply(ctx, w.x, w.some); err != nil {
			return err
		}
	}
	w.keys.Reset()
	return nil
}

// close gives the snapshot up.
func (w *changeWalk) close() error {
	m := w.m
	if w.m = nil; m == nil {
		return nil
	}
	return m.close()
}

// end gives up what the walk has.
func (w *changeWalk) end() {
	_ = w.close() // nobody needs what it held
	w.share.Shrink(0)
}

// keysAllowance is what one walk may hold of keys.
func (s *Store) keysAllowance() scratch.Allowance {
	return scratch.Allowance{Memory: s.options.QueryMemoryBytes, Shared: s.held}
}

// nearlyFull reports whether the disk has no more than twice the space that has to be free for more to be written.
func (s *Store) nearlyFull() bool {
	m := s.db.Metrics()
	return m.DiskFree >= 0 && m.DiskFree < 2*m.DiskNeeded
}
