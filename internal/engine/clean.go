package engine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/value"
)

// The cleaner empties segments that hold little live data, so that their files can go. It works inside of settling: a
// layout rewrites the blobs of victim segments on its way, and values apart are copied and their keys pointed to the copy.

// cleanPolicy bounds the cleaner's work in one round.
type cleanPolicy struct {
	garbage float64 // clean while more than this share of all bytes is dead
	empty   float64 // a segment with less than this share of live bytes is a victim whatever the total
	full    float64 // one with more than this is none
	budget  int64   // live bytes to move in one round
	alone   int64   // as many may be moved where it is a single victim
	oldest  bool    // the oldest first
}

// chooseVictims picks the segments to empty: the emptiest first, or the oldest, as long as the budget lasts and there is reason to. It is a
// pure function of the table. Only sealed segments whose every reference has settled may be in infos.
func chooseVictims(infos []segment.Info, p cleanPolicy) []uint32 {
	var size, live int64
	for _, i := range infos {
		if i.Live > 0 { // what else there is goes by itself: with this round, or with the last of its readers
			size += i.Size
			live += i.Live
		}
	}
	ordered := slices.Clone(infos)
	sort.Slice(ordered, func(a, b int) bool {
		x, y := ordered[a], ordered[b]
		if l, r := float64(x.Live)*float64(y.Size), float64(y.Live)*float64(x.Size); l != r && !p.oldest {
			return l < r
		}
		return x.ID < y.ID
	})
	var victims []uint32
	for _, i := range ordered {
		share := float64(i.Live) / float64(max(i.Size, 1))
		tooMuchGarbage := float64(size-live) > p.garbage*float64(size)
		switch {
		case i.Live <= 0 || share > p.full:
			continue // gone without work, or not worth any
		case share >= p.empty && !tooMuchGarbage:
			return victims
		case i.Live > p.budget && (len(victims) > 0 || i.Live > p.alone):
			return victims
		}
		victims = append(victims, i.ID)
		p.budget -= i.Live
		size -= i.Size - i.Live
	}
	return victims
}

const (
	// smallMost is how many small segments of nodes there may be: each checkpoint leaves some, and where keys only grow nothing in them dies.
	smallMost = 64
	// joinedShare: a segment is small that has less than one in so many bytes of a full one.
	joinedShare = 8
	// joinedGrowth: what is moved comes to lie in a segment that has so many times as much in use, at least.
	joinedGrowth = 4
)

// addSmall adds small segments to the victims where there are more than there may be, those first that have the least in use, as many as the
// budget lasts for: what lives in them is written into few. What an earlier join has made is left out until there is as much beside it that
// its segment grows by joinedGrowth: else each join would move all that those before have moved, until that is no longer small. So a byte is
// moved a few times at most, and the few sizes that are left out are far from being too many.
func addSmall(victims []uint32, infos []segment.Info, budget, small int64) []uint32 {
	var list []segment.Info
	for _, i := range infos {
		switch {
		case slices.Contains(victims, i.ID):
			budget -= i.Live
		case i.Live > 0 && i.Size < small:
			list = append(list, i)
		}
	}
	if len(list) <= smallMost {
		return victims
	}
	slices.SortFunc(list, func(a, b segment.Info) int {
		return cmp.Or(cmp.Compare(a.Live, b.Live), cmp.Compare(a.Size, b.Size), cmp.Compare(a.ID, b.ID))
	})
	joined, sum := 0, int64(0)
	for n, i := range list {
		if sum += i.Live; sum > budget {
			break
		}
		if sum >= joinedGrowth*i.Live {
			joined = n + 1
		}
	}
	for _, i := range list[:joined] {
		victims = append(victims, i.ID)
	}
	return victims
}

// garbageMost is the share of dead bytes that the cleaner lets be.
const garbageMost = 0.4

// policy is how hard the cleaner works in this round: in the background its share is that of what was written for the round, of so many
// bytes. What is left of the nodes in a segment is moved sooner than values are: much of it would be written anew before long in any case,
// and deltas are joined on the way.
func (s *settlement) policy(class segment.Class, written int64) cleanPolicy {
	p := cleanPolicy{garbage: garbageMost, empty: 0.15, full: 0.95, budget: written + s.e.sizes.segment/2}
	if class == segment.Nodes {
		p.garbage, p.empty = 0.25, 0.4
	}
	if s.e.space.short.Load() {
		p.garbage, p.full = 0, 0.75 // what is moved makes garbage of nodes, which is more than is gained from what is nearly full
		if len(s.group) == 0 {      // and so it does however little is moved
			p.budget, p.alone = s.moving, 2*s.moving
		}
	}
	p.budget = min(p.budget, s.moving)
	return p
}

// plan chooses the victims and copies the values apart that lie in them.
func (s *settlement) plan() error {
	settled := s.e.root.Current().Seq
	segments, candidates := s.settledSegments(s.e.store.Segments, settled)
	written := map[segment.Class]int64{segment.Nodes: s.total, segment.Values: s.total + unsettledValues(segments, settled)}
	s.victims, s.moved, s.movedKeys = new(segment.Set), map[uint32][]layout.Change{}, map[ownerKey]bool{}
	s.giveUpLost(candidates)
	s.begun = s.e.o.Clock.Now()
	candidates = slices.DeleteFunc(candidates, func(i segment.Info) bool { return s.begun.Before(s.e.stuck[i.ID]) })
	var values []uint32
	for _, class := range []segment.Class{segment.Nodes, segment.Values} {
		var infos []segment.Info
		for _, i := range candidates {
			if i.Class == class && !s.compacted(i) {
				infos = append(infos, i)
			}
		}
		for _, id := range s.choose(class, infos, written[class]) {
			s.victims.Add(id)
			if class == segment.Values {
				values = append(values, id)
			}
		}
	}
	if len(values) > 0 {
		s.copied = true
		s.e.store.SealValues() // the copies go into segments of their own, which are swept when there is no space for all of them
	}
	for _, id := range values {
		if err := s.moveValues(id); err != nil {
			return fmt.Errorf("clean segment %d: %w", id, err)
		}
	}
	if len(values) > 0 {
		s.e.store.SealValues() // or what users write from now on would keep them there
	}
	for _, changes := range s.moved {
		slices.SortFunc(changes, func(a, b layout.Change) int { return bytes.Compare(a.Key, b.Key) })
	}
	return nil
}

// unsettledValues is how many bytes lie in segments of values that the log has referred to after what is settled, less what a root
// refers to.
func unsettledValues(infos []segment.Info, settled uint64) int64 {
	var n int64
	for _, i := range infos {
		if i.Class == segment.Values && i.LastSeq > settled {
			n += i.Size - max(i.Live, 0)
		}
	}
	return n
}

// settledSegments returns all segments that are listed, and those of them of which every reference is in a root (or in the group that is being
// settled): no commit on its way and no memtable refers to them. The holds come first: a commit that is carried out between the two gives
// its hold up, and the list has what it refers to.
func (s *settlement) settledSegments(list func() []segment.Info, settled uint64) (all, out []segment.Info) {
	e := s.e
	below := e.unheldValues()
	keepFrom := e.oldestChange()
	all = list()
	for _, i := range all {
		if i.ID >= s.firstNew {
			continue
		}
		if i.Class == segment.Values {
			if i.ID >= below || i.LastSeq > settled || i.LastSeq >= keepFrom {
				continue
			}
		}
		out = append(out, i)
	}
	return all, out
}

// maySkip reports whether cleaning is done by the way: then damage does not stop it, for writers wait for this round. Whoever asks for
// it is told.
func (s *settlement) maySkip() bool { return s.work.compaction == nil }

// The cleaner leaves a segment alone that it cannot empty: for a minute where it is the device that fails, which may pass, or damage in another
// segment that it was emptying, and in case of damage in it for as long as the database is open.
const (
	stuckUnreadable = time.Minute
	stuckDamaged    = 100 * 365 * 24 * time.Hour
)

// giveVictimsUp reports whether the cleaner may be the reason for an error, and leaves its victims alone from now on. What it was the last
// space for that it has filled is given back: a checkpoint by itself needs less, and without one nothing that is deleted gives space back.
func (s *settlement) giveVictimsUp(err error) bool {
	victims := s.tried()
	if victims.Empty() || !s.maySkip() || s.e.failure.Load() != nil {
		return false
	}
	damaged := forGood(err)
	switch {
	case isDiskFull(err):
		s.e.store.SealValues()
		s.e.sweepLocked()
	case damaged || errors.Is(err, segment.ErrUnreadable):
		s.e.o.Logger.Error("damage found while cleaning", "error", err)
	default:
		return false
	}
	lost := damagedIn(err, victims)
	for id := range victims.All() {
		s.leaveAlone(id, !damaged || lost != 0 && lost != id)
	}
	return true
}

// forGood reports whether an error is of damage that stays. What the device has not given back for long is damage, too, and may be there
// again.
func forGood(err error) bool {
	return errors.Is(err, corrupt.Err) && !errors.Is(err, segment.ErrUnreadable)
}

// tried are the segments that the round was to empty, be it done with that or not.
func (s *settlement) tried() *segment.Set {
	if s.victims.Empty() {
		return s.emptied
	}
	return s.victims
}

// damagedIn returns the segment of a set that an error of damage names; 0: none.
func damagedIn(err error, set *segment.Set) uint32 {
	damage := (*corrupt.Error)(nil)
	if !errors.As(err, &damage) {
		return 0
	}
	for id := range set.All() {
		if segment.FilePath(id) == damage.File {
			return id
		}
	}
	return 0
}

// leaveAlone keeps the cleaner from a segment that it could not empty. What kept it from that may pass, or not.
func (s *settlement) leaveAlone(id uint32, mayPass bool) {
	pause := stuckDamaged
	if mayPass {
		pause = stuckUnreadable
	}
	s.e.stuck[id] = s.e.o.Clock.Now().Add(pause)
}

// tryAgain ends what the cleaner leaves alone for a moment only: who asks for a compaction is not told that all is done when it is not.
func (e *Engine) tryAgain() {
	e.settling.Lock()
	defer e.settling.Unlock()
	passing := e.o.Clock.Now().Add(stuckUnreadable)
	maps.DeleteFunc(e.stuck, func(_ uint32, until time.Time) bool { return !until.After(passing) })
}

// victimKeyspace reports whether a keyspace may have blobs in victim segments.
func (s *settlement) victimKeyspace(id uint32) bool {
	if len(s.moved[id]) > 0 {
		return true
	}
	r := s.roots.At(id)
	return r != nil && r.MayLieIn(s.victims)
}

// moveValues copies the live values apart of which any part lies in a segment, and notes where their keys have to point.
func (s *settlement) moveValues(id uint32) error {
	e := s.e
	scratch := e.scratch.get()
	defer e.scratch.put(scratch)
	return e.store.Scan(s.ctx, id, func(_ segment.Pointer, h segment.Header, raw []byte) error {
		if h.Kind != segment.KindValue && h.Kind != segment.KindValueIndex {
			return nil
		}
		key, _, err := value.Owner(raw)
		if err == nil {
			err = s.moveValue(scratch, h.Keyspace, bytes.Clone(key), id)
		}
		if errors.Is(err, corrupt.Err) && s.maySkip() {
			e.o.Logger.Error("damage found while cleaning", "segment", id, "error", err)
			return nil // the value stays where it is
		}
		return err
	}, func(offset, length int64, err error) {
		e.o.Logger.Error("damage found while cleaning", "segment", id, "offset", offset, "bytes", length, "error", err)
	})
}

// ownerKey names the record that a value apart belongs to.
type ownerKey struct {
	keyspace uint32
	key      string
}

// moveValue copies the value of a key, if the settled record still refers to the segment and has not been moved yet. What this round
// replaces is not worth a copy.
func (s *settlement) moveValue(scratch *layout.Scratch, keyspace uint32, key []byte, id uint32) error {
	e := s.e
	at, there := slices.BinarySearchFunc(s.keyspaces, keyspace, func(ks *Keyspace, id uint32) int { return cmp.Compare(ks.ID, id) })
	settled := s.roots.At(keyspace)
	if settled == nil || !there {
		return nil
	}
	owner := ownerKey{keyspace, string(key)}
	if s.movedKeys[owner] {
		return nil // another chunk of the same value
	}
	hash := record.Hash(keyspace, key)
	for _, t := range s.group {
		if t.NewestOf(keyspace, hash, key) > 0 {
			return nil
		}
	}
	r, ok, err := settled.GetRead(scratch, hash, key)
	if err != nil || !ok || r.Kind != record.Apart {
		return err
	}
	old, err := value.DecodeRef(r.Value)
	if err != nil {
		return err
	}
	inside := false
	err = value.Walk(e.store, old, func(p segment.Pointer, _ segment.Kind) error {
		inside = inside || p.Segment == id
		return nil
	})
	if err != nil || !inside {
		return err
	}
	codec := e.valueCodec(s.keyspaces[at])
	fresh, err := value.Copy(e.store, old, key, codec)
	if err != nil {
		return err
	}
	if s.work.compaction != nil {
		s.work.compaction.tell(int64(old.Length))
	}
	s.movedKeys[owner] = true
	s.moved[keyspace] = append(s.moved[keyspace], layout.Change{Key: key, Record: record.Record{
		Kind: record.Apart, Expiry: r.Expiry, Value: value.AppendRef(nil, fresh),
	}})
	return nil
}

// catalogue collects what the new root will say of keyspaces. The segments come last: see finishCatalogue.
func (s *settlement) catalogue() *root.Catalogue {
	c := &root.Catalogue{NextKeyspace: s.next, Dictionaries: s.pruneDictionaries(), Keyspaces: make([]root.Keyspace, 0, len(s.keyspaces))}
	var encoded []byte // roots, one behind the other
	for _, ks := range s.keyspaces {
		k := root.Keyspace{ID: ks.ID, Name: ks.Name, Layout: uint8(ks.Layout), Options: ks.encode(s.dictionaryOf(ks))}
		if r := s.roots.At(ks.ID); r != nil {
			from := len(encoded)
			encoded = r.Encode(encoded)
			k.Root = encoded[from:len(encoded):len(encoded)]
			n, _ := r.Records()
			k.Records = uint64(n)
		}
		c.Keyspaces = append(c.Keyspaces, k)
	}
	return c
}

// finishCatalogue writes the catalogue and fills the slot in. The catalogue blob itself is not in the table that it holds;
// Open counts it.
func (s *settlement) finishCatalogue(c *root.Catalogue) error {
	e := s.e
	table, settled := s.settledSegments(s.writer.Table, s.seq)
	dead := map[uint32]bool{}
	for _, i := range settled {
		if i.Live <= 0 {
			dead[i.ID] = true
			s.dead = append(s.dead, i.ID)
			if i.Class == segment.Values {
				s.gone = max(s.gone, i.LastSeq)
			}
		}
	}
	for _, i := range table {
		if s.tried().Has(i.ID) && i.Live > 0 && !s.sparing { // what is left in it cannot be found, or read: another round would find no more
			s.leaveAlone(i.ID, e.store.UnreadSince(s.begun))
		}
		if !dead[i.ID] {
			c.Segments = append(c.Segments, i)
		}
	}
	c.Seq, c.Log, c.Clock = s.seq, root.Position(s.through), e.clock.high.Load()
	p, err := s.writer.Append(segment.KindCatalogue, 0, segment.S2, 0, c.Encode(nil))
	if err != nil {
		return err
	}
	current := e.root.Current()
	s.slot = root.Slot{
		Generation: current.Generation + 1, Database: current.Database, Catalogue: p,
		Log: c.Log, Seq: c.Seq, NextSegment: e.store.NextID(), Clock: c.Clock,
	}
	return nil
}

func sortedIDs(set map[uint32]bool) []uint32 {
	ids := make([]uint32, 0, len(set))
	for id := range set {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
