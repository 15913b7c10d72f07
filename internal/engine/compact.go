package engine

import (
	"context"
	"slices"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/view"
)

// A compaction writes everything anew. That may take minutes, and while something settles nothing else does, so that writers come to stand
// before their second memtable. So it is carried out in rounds, each of which is one of settling that writes a stretch of the keys anew and
// merges nothing: what was frozen meanwhile settles between them, in a hurry as ever. Each ends with a root, so that what has been done stays
// done whatever ends the compaction.
// Whatever else takes long, and changes nothing, is done between the rounds, on what has settled: counting values, training dictionaries.

// compaction is one that is under way. What is not said to change in a round changes outside of them.
type compaction struct {
	e           *Engine
	codec       *segment.Codec // of all keyspaces; nil: each has its own
	progress    func(done, total int64)
	done, total int64  // in bytes of what there was; rounds count
	first       uint32 // segments from this id on were made since it began
	end         uint32 // keyspaces from this id on, too
	at          place  // where the next round takes up; changes with each round
	ready       uint32 // keyspaces below this id have all they need for their first round
	learnt      map[uint32][]byte
	lost        map[uint32]int64 // bytes of values, by segment, that no root refers to; nothing after the first round
	moved       bool             // the segments of values that held garbage are empty; changes with a round
}

// place is how far a compaction has come.
type place struct {
	keyspace   uint32
	from       []byte // where its next stretch begins; nil: at its start
	dictionary uint16 // of its leaves that were written anew
}

// renewal is what a round adds to a compaction. It counts once the round has been published.
type renewal struct {
	at       place
	bytes    int64    // that were replaced
	full     bool     // it is enough for this round
	values   bool     // it only moves values, and not all of them
	finished []uint32 // keyspaces of which all has been written anew
}

// Compact rewrites everything as small as it gets: full leaves, no deltas, no garbage. Readers and writers go on meanwhile.
// codec may be nil; progress is told bytes done and the total, and all of them only at the end of a Compact that succeeds. It is called
// in the midst of rounds, so it must not wait for anything to settle. Close ends it behind the round that it is in.
func (e *Engine) Compact(ctx context.Context, codec *segment.Codec, progress func(done, total int64)) error {
	if err := e.usable(); err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	e.compacting.Lock()
	defer e.compacting.Unlock()
	if _, err := e.freezeNow(); err != nil {
		return err
	}
	if err := e.settle(ctx, work{frozen: true}); err != nil {
		return err
	}
	e.store.SealValues()
	c := &compaction{e: e, codec: codec, progress: progress, learnt: map[uint32][]byte{}}
	defer e.compacted.Store(0)
	between := untilClosed{ctx, e}
	if err := c.begin(between); err != nil {
		return err
	}
	for c.at.keyspace < c.end {
		if e.closed.Load() { // Close waits
			return ErrClosed
		}
		if err := c.learn(between); err != nil {
			return err
		}
		if err := e.settle(ctx, work{compaction: c}); err != nil {
			return err
		}
		if err := e.settle(ctx, work{frozen: true}); err != nil {
			return err
		}
	}
	e.epoch.Drain() // what nobody reads any more is gone when we return, though some read went on just now
	if progress != nil {
		progress(c.total, c.total)
	}
	return nil
}

// untilClosed is the context of what is done between the rounds: Close ends it at once. Those who go over a root ask for its Err.
type untilClosed struct {
	context.Context
	e *Engine
}

// Err implements context.Context.
func (c untilClosed) Err() error {
	if c.e.closed.Load() {
		return ErrClosed
	}
	return c.Context.Err()
}

// begin finds out what there is to do.
func (c *compaction) begin(ctx context.Context) (err error) {
	c.e.tryAgain()
	p := c.e.pictureSettled()
	defer p.view.Unref()
	c.first, c.end = p.nextSegment, p.nextKeyspace
	c.e.compacted.Store(c.first)
	for _, i := range p.segments {
		if i.Class == segment.Nodes || holdsGarbage(i) {
			c.total += max(i.Live, 0)
		}
	}
	c.total = max(c.total, 1)
	c.lost, err = c.e.lostValues(ctx, p)
	return err
}

// tell reports progress. Writers may make it more than there was to do, but that is not the end.
func (c *compaction) tell(bytes int64) {
	c.done = min(c.done+bytes, c.total-1)
	if c.progress != nil {
		c.progress(c.done, c.total)
	}
}

// picture is what has settled at one moment. Memtables, which would stay in memory with it, are no part of it.
type picture struct {
	view         *view.View // the caller releases it
	segments     []segment.Info
	nextSegment  uint32
	keyspaces    []*Keyspace
	nextKeyspace uint32
	dictionaries []dictionary
}

// pictureSettled returns what has settled.
func (e *Engine) pictureSettled() (p picture) {
	e.settling.Lock()
	defer e.settling.Unlock()
	p.segments, p.nextSegment = e.store.Segments(), e.store.NextID()
	p.keyspaces, p.nextKeyspace = e.keyspaces.at(e.root.Current().Seq)
	p.dictionaries = slices.Clone(e.dictionaries)
	e.mu.Lock()
	defer e.mu.Unlock()
	current := e.current.Load()
	p.view = view.New(&e.reads, nil, current.Roots, current.Generation, e.viewReleased)
	e.views[p.view] = struct{}{}
	return p
}

// mayRenew reports whether a round may come to writing something of a keyspace anew.
func (s *settlement) mayRenew(ks *Keyspace) bool {
	c := s.work.compaction
	return c != nil && !s.renewal.values && ks.ID >= s.renewal.at.keyspace && ks.ID < c.ready &&
		s.roots.At(ks.ID) != nil
}

// stretch returns what of a keyspace is to be written anew in this round; nil: nothing.
func (s *settlement) stretch(ks *Keyspace) *layout.Stretch {
	if s.renewal.full || !s.mayRenew(ks) {
		return nil
	}
	stretch := &layout.Stretch{Enough: s.enough}
	if s.renewal.at.keyspace == ks.ID {
		stretch.From = s.renewal.at.from
	}
	return stretch
}

// roundBytes is how much a round is to do: less when somebody may be waiting for its end.
func (e *Engine) roundBytes() int64 {
	if len(e.current.Load().Tables) > 1 || e.waiting.Load() > 0 || e.space.short.Load() {
		return e.sizes.haste
	}
	return e.sizes.round
}

// enough takes note of what was replaced, and says whether that will do for this round.
func (s *settlement) enough(bytes int64) bool {
	s.work.compaction.tell(bytes)
	s.renewal.bytes += bytes
	s.renewal.full = s.renewal.full || s.renewal.bytes >= s.e.roundBytes()
	return s.renewal.full
}

// renewed takes note of a stretch that was written anew with a dictionary.
func (s *settlement) renewed(ks *Keyspace, stretch *layout.Stretch, dictionary uint16) error {
	r := &s.renewal
	if stretch.Next != nil {
		r.at = place{keyspace: ks.ID, from: stretch.Next, dictionary: dictionary}
		return nil
	}
	r.at = place{keyspace: ks.ID + 1}
	r.finished = append(r.finished, ks.ID)
	return s.moveDictionary(ks)
}

// endRenewal is called when a round has come to the last keyspace.
func (s *settlement) endRenewal() {
	if c := s.work.compaction; c != nil && !s.renewal.values && !s.renewal.full {
		s.renewal.at = place{keyspace: c.ready}
	}
}

// advance makes what the round has done part of the compaction.
func (s *settlement) advance() {
	if c := s.work.compaction; c != nil {
		c.at, c.lost = s.renewal.at, nil
		c.moved = c.moved || !s.renewal.values
	}
}

// compacted reports whether the cleaner leaves a segment alone because a compaction empties it.
func (s *settlement) compacted(i segment.Info) bool {
	return i.Class == segment.Nodes && i.ID < s.e.compacted.Load()
}

// A compaction moves what is left of values in segments with more garbage than this share.
const compactedGarbage = 0.05

// holdsGarbage reports whether a compaction empties a segment of values.
func holdsGarbage(i segment.Info) bool {
	return i.Live > 0 && float64(i.Live) <= (1-compactedGarbage)*float64(i.Size)
}

// choose picks the segments of a class to empty in this round. A compaction begins with the values, so that the leaves that refer to them
// are written once, after that; it moves as many in a round as it would replace of leaves.
func (s *settlement) choose(class segment.Class, infos []segment.Info, written int64) (victims []uint32) {
	c := s.work.compaction
	if s.work.squeeze && class == segment.Nodes {
		if victims = s.hollowSegments(infos, s.policy(class, written)); len(victims) > 0 {
			return victims
		}
	}
	if c == nil || class == segment.Nodes || c.moved {
		p := s.policy(class, written)
		victims = chooseVictims(infos, p)
		if c == nil && class == segment.Nodes && !s.sparing && !s.e.space.short.Load() {
			victims = addSmall(victims, infos, p.budget, s.e.sizes.segment/joinedShare)
		}
		return victims
	}
	left := s.e.roundBytes()
	for _, i := range infos {
		if i.ID >= c.first || !holdsGarbage(i) {
			continue
		}
		if left <= 0 {
			s.renewal.values = true
			break
		}
		victims = append(victims, i.ID)
		left -= i.Live
	}
	return victims
}
