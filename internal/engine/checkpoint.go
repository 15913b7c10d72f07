package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/internal/view"
	"github.com/pandodb/pando/internal/wal"
)

// progressWhole is the value of Engine.progress when a checkpoint has written all it has to.
const progressWhole = 1 << 20

// Checkpoint settles everything that was committed before the call.
func (e *Engine) Checkpoint(ctx context.Context) error {
	if err := e.usable(); err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	frozen, err := e.freezeNow()
	if err != nil {
		return err
	}
	if err := e.settle(ctx, work{frozen: frozen}); err != nil {
		return err
	}
	e.fitLog()
	e.epoch.Drain() // what nobody reads any more is gone when we return, though some read went on just now
	return nil
}

// mostUnsettled is how many memtables there may be when damage keeps frozen ones from settling.
const mostUnsettled = 6

// freezeNow takes the lead and puts everything committed so far behind a new memtable. It reports whether there was anything that had not
// settled: the worker may have settled it since.
func (e *Engine) freezeNow() (frozen bool, err error) {
	var r request
	e.pipeline.Acquire(&r)
	defer e.pipeline.Release()
	err = e.awaitSettled()
	if errors.Is(err, corrupt.Err) && len(e.current.Load().Tables) < mostUnsettled {
		err = nil // what is in front may have dropped, or deleted, what is damaged: they settle together
	}
	if err != nil {
		return false, err
	}
	return e.freezeFront()
}

// freezeFront freezes the memtable in front, unless everything has settled. The caller leads.
func (e *Engine) freezeFront() (frozen bool, err error) {
	front := e.current.Load().Tables[0]
	if front.Len() == 0 && !front.HasRanges() && e.lastSeq == e.settledSeq.Load() {
		return false, nil
	}
	err = e.freeze(0, 0)
	return err == nil, err
}

// work is what a round of settling does besides merging the frozen memtables.
type work struct {
	frozen     bool        // nothing, if somebody else has settled meanwhile what was frozen
	sparing    bool        // it has met a full disk, and writes no more than it has to
	squeeze    bool        // it writes anew what deletes have left full of what is deleted
	compaction *compaction // go on with it, and leave what is frozen to others
}

// settle merges the frozen memtables into the roots, moves what is left in nearly empty segments, and stores a new root.
func (e *Engine) settle(ctx context.Context, w work) error {
	e.settling.Lock()
	defer e.settling.Unlock()
	e.mu.Lock()
	e.settles++
	e.mu.Unlock()
	err := e.settleLocked(ctx, w)
	if isDiskFull(err) {
		e.store.GiveBack()
	}
	e.mu.Lock()
	if e.settled, e.lastErr = e.settles, err; ctx.Err() != nil || w.compaction != nil {
		e.lastErr = nil // what ended or failed was somebody's own: who waits for memtables to settle goes on waiting
	}
	e.changed.Broadcast()
	e.mu.Unlock()
	e.epoch.Collect()
	e.fitCache()
	return err
}

func (e *Engine) settleLocked(ctx context.Context, w work) error {
	if err := e.failure.Load(); err != nil {
		return *err
	}
	v := e.current.Load()
	group := v.Tables[1:]
	if len(group) == 0 && w.frozen {
		return nil
	}
	if err := e.moveHeld(ctx); err != nil {
		return err
	}
	if w.compaction != nil {
		group = nil
	}
	s := e.newSettlement(ctx, v, group, w)
	err := s.carryOut()
	for s.giveVictimsUp(err) || s.trySparing(err, &w) {
		s = e.newSettlement(ctx, v, group, w)
		err = s.carryOut()
	}
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	s.publish()
	e.counters.checkpoints.Add(1)
	s.noteSpace()
	return nil
}

// worthSplitting reports whether the round writes so much that segments more are worth their syncs. When everything is written anew, what
// fits into one segment or two stays together.
func (s *settlement) worthSplitting() bool {
	if s.work.compaction != nil {
		return segment.LiveBytes(s.e.store.Segments())+s.total > 2*s.e.sizes.segment
	}
	return s.total >= s.e.sizes.split
}

// carryOut does all of a round but to show it to readers.
func (s *settlement) carryOut() error {
	ended := false
	defer func() {
		if !ended { // who is told of the progress of a compaction may get over a panic
			_ = s.giveUp(errors.New("a panic"))
		}
	}()
	err := s.plan()
	if err == nil {
		err = s.run()
	}
	if err == nil {
		err = s.store()
	}
	ended = true
	return s.giveUp(err)
}

// giveUp removes what a round that failed has written, and returns its error; without one it does nothing.
func (s *settlement) giveUp(err error) error {
	if err == nil {
		return nil
	}
	if !s.storing { // else the new root may be the one that the next open finds
		err = errors.Join(err, s.e.abort(s.writer))
		if s.copied {
			s.e.litter() // the copies
		}
	}
	s.forgetTrained()
	return err
}

// settlement is one round of settling.
type settlement struct {
	e            *Engine
	ctx          context.Context
	work         work
	group        []*view.Table // newest first
	roots        view.Roots    // the new ones
	touched      []uint32      // keyspaces with a new root
	writer       *segment.Writer
	victims      *segment.Set
	emptied      *segment.Set               // what a bulk load that goes on has had for victims
	begun        time.Time                  // when the victims were chosen
	moved        map[uint32][]layout.Change // values apart that the cleaner moved, by keyspace, sorted by key
	movedKeys    map[ownerKey]bool
	firstNew     uint32       // segments from this id on were made in this round
	through      wal.Position // the log before it is in the new roots
	seq          uint64       // of the newest command that is in the new roots
	keyspaces    []*Keyspace  // as they were after that command: those that are dropped later on are still in the new root
	next         uint32       // the id that came next then
	slot         root.Slot
	dictionaries []dictionary // as the new catalogue lists them
	trained      []trained
	renewal      renewal
	sparing      bool  // the disk has little room: when room bytes have been written, no more is than has to be
	room, moving int64 // and the cleaner moves no more than so many bytes of a class
	copied       bool  // values were copied, to which nothing refers when the round fails
	storing      bool  // the root file is being written to: which root the next open finds is not known
	total        int64 // bytes of changes to merge, for progress
	merged       int64
	dead         []uint32
	gone         uint64 // the newest command that may refer to values in a dead segment
}

func (e *Engine) newSettlement(ctx context.Context, v *view.View, group []*view.Table, w work) *settlement {
	first := e.store.NextID()
	s := &settlement{e: e, ctx: ctx, work: w, group: group, writer: e.store.NewWriter(segment.Nodes, 0)}
	if w.compaction == nil {
		s.writer.Hurry() // what is to be as small as it gets is compacted
	} else {
		s.renewal.at = w.compaction.at
	}
	s.roots = v.Roots.Clone()
	current := e.root.Current()
	s.firstNew = first
	s.dictionaries = slices.Clone(e.dictionaries)
	s.seq, s.through = current.Seq, wal.Position(current.Log)
	if len(group) > 0 {
		s.seq = group[0].Last
		if e.log != nil {
			s.through = group[0].End
		}
	}
	s.keyspaces, s.next = e.keyspaces.at(s.seq)
	s.sparing, s.room, s.moving = e.sparing(w, len(group) > 0)
	for _, t := range group {
		s.total += int64(t.Bytes())
	}
	if s.worthSplitting() {
		s.writer.Split()
	}
	return s
}

// run makes the new roots. It tries all of them where the device fails, see goOn.
func (s *settlement) run() error {
	ids := map[uint32]bool{} // true: there is something to settle, or to move; false: there may be something to write anew
	for _, id := range keyspacesOf(s.group) {
		ids[id] = true
	}
	live := map[uint32]*Keyspace{}
	for _, ks := range s.keyspaces {
		live[ks.ID] = ks
		if s.victimKeyspace(ks.ID) {
			ids[ks.ID] = true
		} else if !ids[ks.ID] && s.mayRenew(ks) {
			ids[ks.ID] = false
		}
	}
	var failed error
	for _, id := range sortedIDs(ids) {
		ks := live[id]
		if ks == nil {
			continue
		}
		stretch := s.stretch(ks)
		if stretch == nil && !ids[id] {
			continue
		}
		if err := s.apply(ks, stretch); err != nil && !s.goOn(&failed, err) {
			return fmt.Errorf("keyspace %q: %w", ks.Name, err)
		}
	}
	s.endRenewal()
	return cmp.Or(failed, s.dropRoots(live))
}

// goOn keeps the first failure of the device, with which the round is to end, for when the rest has been tried, and reports whether err is
// one: what cannot be read counts as damaged half a minute after the first attempt, and if each place had its first attempt when the one
// before it is done with, nothing would settle for as many half minutes. Only who asks for a compaction is told at once.
func (s *settlement) goOn(first *error, err error) bool {
	if s.work.compaction != nil || !errors.Is(err, segment.ErrUnreadable) {
		return false
	}
	*first = cmp.Or(*first, err)
	return true
}

// apply merges the changes of one keyspace into its root, and writes a stretch of it anew, if there is one.
func (s *settlement) apply(ks *Keyspace, stretch *layout.Stretch) error {
	e := s.e
	old := s.roots.At(ks.ID)
	if old == nil {
		empty, err := e.layouts[ks.Layout].Load(&e.env, ks.ID, nil)
		if err != nil {
			return err
		}
		old = empty
	}
	ranges := view.Ranges(s.group, ks.ID, view.MaxSeq)
	changes := &settledChanges{s: s, from: view.NewChanges(s.group, ks.ID, view.MaxSeq), moved: outside(s.moved[ks.ID], ranges)}
	codec, dictionary, err := s.codecFor(ks, stretch)
	if err != nil {
		return err
	}
	fresh, err := e.layouts[ks.Layout].Apply(s.ctx, old, ranges, changes, s.writer, layout.ApplyOptions{
		Now: e.Now(), Codec: codec, Dictionary: dictionary, LeafBytes: int(ks.LeafBytes), NoFilters: ks.NoFilters,
		Victims: s.victims, Rewrite: stretch, Sparing: s.sparing, Room: s.room,
	})
	if err = cmp.Or(err, changes.err, changes.failed); err != nil {
		return err
	}
	s.roots.Set(ks.ID, fresh)
	s.touched = append(s.touched, ks.ID)
	if stretch != nil {
		return s.renewed(ks, stretch, dictionary)
	}
	return nil
}

// outside returns the moved values that no range delete removes: Apply deletes ranges first, so that a moved value would come
// back to life.
func outside(moved []layout.Change, ranges []layout.Range) []layout.Change {
	if len(ranges) == 0 {
		return moved
	}
	return slices.DeleteFunc(moved, func(c layout.Change) bool {
		i := sort.Search(len(ranges), func(i int) bool { return ranges[i].Hi == nil || bytes.Compare(ranges[i].Hi, c.Key) > 0 })
		return i < len(ranges) && bytes.Compare(ranges[i].Lo, c.Key) <= 0
	})
}

// dropRoots frees what dropped keyspaces left behind.
func (s *settlement) dropRoots(live map[uint32]*Keyspace) error {
	var failed error
	for id, r := range s.roots.All() {
		if live[id] != nil {
			continue
		}
		if err := s.e.layoutOf(id).Free(s.ctx, r, s.writer); err != nil {
			if err = fmt.Errorf("free dropped keyspace %d: %w", id, err); !s.goOn(&failed, err) {
				return err
			}
			continue
		}
		s.roots.Set(id, nil)
	}
	return failed
}

// store makes the new roots durable.
func (s *settlement) store() error {
	e := s.e
	if err := e.markFailed(); err != nil {
		return err
	}
	if err := s.moveDictionaries(); err != nil {
		return err
	}
	catalogue := s.catalogue()
	if e.log != nil {
		if err := e.syncLog(); err != nil {
			return err
		}
	}
	if err := e.store.SyncValues(); err != nil {
		return e.fail(err)
	}
	if old := e.root.Current().Catalogue; !old.IsZero() {
		s.writer.Free(old)
	}
	if err := s.finishCatalogue(catalogue); err != nil {
		return err
	}
	if err := s.writer.Flush(); err != nil {
		return err // nothing refers to what could not be written
	}
	if err := s.writer.Sync(); err != nil {
		return s.failed(err)
	}
	s.storing = true
	if err := e.root.Store(s.slot); err != nil {
		if !e.root.Certain() {
			return e.fail(err) // the next open may find the new root
		}
		s.storing = false // it finds the old one
		return s.failed(err)
	}
	return nil
}

// failed says what an error on the way to stable storage means: a full disk passes, a failed sync does not, also where it failed for that.
func (s *settlement) failed(err error) error {
	if isDiskFull(err) && !s.e.store.Failed() {
		return err
	}
	return s.e.fail(err)
}

// publish lets readers see the new roots, and gives back what they replace.
func (s *settlement) publish() {
	e := s.e
	written := s.writer.Written()
	s.writer.Commit()
	e.reach.raise(s.gone)
	e.mu.Lock()
	current := e.current.Load()
	tables := current.Tables[:len(current.Tables)-len(s.group)]
	gone := e.keepRecent(s.group)
	e.publish(tables, s.roots)
	doomed := e.doomedIDs()
	for _, id := range s.dead {
		if !doomed[id] { // else somebody still reads from it
			e.doomed = append(e.doomed, doomedSegment{id, e.generated})
		}
	}
	outdated := s.replaceDictionaries()
	e.mu.Unlock()
	for _, t := range gone {
		t.Release()
	}
	for _, id := range s.touched {
		e.layoutOf(id).Published(s.roots.At(id))
	}
	for _, id := range outdated {
		e.store.RestDictionary(id)
	}
	for _, t := range s.trained {
		t.ks.dictionary.Store(uint32(t.id))
	}
	s.advance()
	e.unlogged = e.log == nil
	e.settledSeq.Store(s.seq)
	dropped := e.keyspaces.settled(s.seq)
	e.counters.settledBytes.Add(written)
	// Writers go on to the next memtable as soon as nothing is settling: the memory of the one that has settled has to be there by then,
	// or one more takes fresh memory. Files of the log take their time.
	e.epoch.Collect()
	if e.log != nil {
		e.limitKept(s.seq)
		if err := e.log.Recycle(s.through); err != nil {
			e.o.Logger.Warn("log is not recycled", "error", err)
		}
		e.dropSpills()
	}
	e.forgetDropped(dropped)
}

// settledChanges hands the merged changes of a group of memtables to a layout. It counts values apart as live that the new
// root will refer to, merges the references that the cleaner moved, and reports progress.
type settledChanges struct {
	s      *settlement
	from   *view.Changes
	moved  []layout.Change
	ahead  bool // from stands on a change that has not been handed out
	ended  bool
	change *layout.Change
	left   int   // changes until the context is asked and progress reported
	failed error // of the device: nothing of the outcome counts
	err    error
}

// pulse is how many changes are merged between two looks at the context.
const pulse = 64

// Next implements layout.Changes.
func (c *settledChanges) Next() bool {
	if c.left--; c.left < 0 && c.err == nil {
		c.left = pulse
		c.s.report()
		c.err = c.s.ctx.Err() // or what follows would be missing without a word
	}
	if c.err != nil {
		return false
	}
	if !c.ahead && !c.ended {
		c.ahead = c.from.Next()
		c.ended = !c.ahead
	}
	if len(c.moved) == 0 {
		return c.ahead && c.fromTables()
	}
	return c.nextOfBoth()
}

// nextOfBoth is Next while there is something left of what the cleaner moved.
func (c *settledChanges) nextOfBoth() bool {
	for len(c.moved) > 0 {
		if c.ahead {
			switch order := bytes.Compare(c.moved[0].Key, c.from.Change().Key); {
			case order == 0: // the memtable knows better; the copy was never counted live
				c.moved = c.moved[1:]
				continue
			case order > 0:
				return c.fromTables()
			}
		}
		c.change, c.moved = &c.moved[0], c.moved[1:]
		c.err = c.s.keep(c.change.Record.Value)
		return c.err == nil
	}
	return c.ahead && c.fromTables()
}

// Change implements layout.Changes.
func (c *settledChanges) Change() *layout.Change { return c.change }

func (c *settledChanges) fromTables() bool {
	c.change, c.ahead = c.from.Change(), false
	r := &c.change.Record
	c.s.merged += int64(len(c.change.Key) + len(r.Value) + mergedOverhead)
	if r.Kind == record.Apart {
		if err := c.s.adopt(r.Value); err != nil && !c.s.goOn(&c.failed, err) {
			c.err = err
		}
	}
	return c.err == nil
}

// keep counts a value apart as live: from now on a root refers to it.
func (s *settlement) keep(encoded []byte) error {
	ref, err := value.DecodeRef(encoded)
	if err != nil {
		return err
	}
	return value.Keep(s.e.store, ref, s.writer)
}

// adopt is keep for a value that comes from the log. Of a long one where that is lost which says where its chunks lie, all counts as live
// that they may lie in. So it lasts as long as the value does, which may come back when the device does; who frees the value takes no more
// off than was counted; and what else that keeps is given back when values are counted anew.
func (s *settlement) adopt(encoded []byte) error {
	err := s.keep(encoded)
	if !errors.Is(err, corrupt.Err) {
		return err
	}
	ref, broken := value.DecodeRef(encoded)
	if broken != nil {
		return broken
	}
	s.e.o.Logger.Error("damage found while settling: where the chunks of a value lie is lost, and what they may lie in goes on taking room",
		"keyspace", ref.Keyspace, "bytes", ref.Length, "error", err)
	s.writer.KeepAll(ref.Segment, s.e.root.Current().Seq)
	return nil
}

// mergedOverhead is what a record takes in a memtable beside its key and value, about.
const mergedOverhead = 48

// report says how far the merge has come, for the pacing of writers.
func (s *settlement) report() {
	if s.total > 0 {
		s.e.progress.Store(uint64(min(s.merged*progressWhole/s.total, progressWhole)))
	}
}
