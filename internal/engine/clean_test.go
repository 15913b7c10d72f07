package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/value"
	"github.com/pandodb/pando/vfs/memfs"
)

func TestChooseVictims(t *testing.T) {
	seg := func(id uint32, size, live int64) segment.Info { return segment.Info{ID: id, Size: size, Live: live} }
	background := cleanPolicy{full: 0.95, garbage: 0.4, empty: 0.15, budget: 200}
	for _, c := range []struct {
		name   string
		infos  []segment.Info
		policy cleanPolicy
		want   []uint32
	}{
		{"nothing there", nil, background, nil},
		{"all in use", []segment.Info{seg(1, 100, 100), seg(2, 100, 90)}, background, nil},
		{"little garbage in all is left alone", []segment.Info{seg(1, 100, 70), seg(2, 100, 65)}, background, nil},
		{"much garbage: the emptiest first, until there is little", []segment.Info{seg(1, 100, 50), seg(2, 100, 30), seg(3, 100, 90)}, background, []uint32{2}},
		{"a nearly empty one goes whatever the total", []segment.Info{seg(1, 1000, 1000), seg(2, 100, 10)}, background, []uint32{2}},
		{"what only waits for its readers is no reason to move the rest", []segment.Info{seg(1, 1000, 0), seg(2, 100, 80), seg(3, 100, 70)}, background, nil},
		{"an empty one needs no work", []segment.Info{seg(1, 100, 0), seg(2, 100, 100)}, background, nil},
		{"the budget ends it", []segment.Info{seg(1, 1000, 150), seg(2, 1000, 160), seg(3, 1000, 170)}, background, []uint32{1}},
		{"beyond the budget, but alone", []segment.Info{seg(1, 1000, 250), seg(2, 1000, 260)}, cleanPolicy{full: 0.95, budget: 200, alone: 300}, []uint32{1}},
		{"not alone", []segment.Info{seg(1, 1000, 150), seg(2, 1000, 260)}, cleanPolicy{full: 0.95, budget: 200, alone: 300}, []uint32{1}},
		{"too much even alone", []segment.Info{seg(1, 1000, 350)}, cleanPolicy{full: 0.95, budget: 200, alone: 300}, nil},
		{"equal shares: the oldest first", []segment.Info{seg(9, 100, 10), seg(4, 100, 10)}, cleanPolicy{full: 0.95, garbage: 0, empty: 0.5, budget: 10}, []uint32{4}},
		{"the oldest first, however much is in use", []segment.Info{seg(3, 100, 10), seg(1, 100, 100), seg(2, 100, 50)}, cleanPolicy{full: 1, garbage: -1, budget: 150, oldest: true}, []uint32{1, 2}},
		{"compaction takes all that holds garbage", []segment.Info{seg(1, 100, 90), seg(2, 100, 99), seg(3, 100, 20)}, cleanPolicy{full: 0.95, empty: 0.95, budget: 1 << 40}, []uint32{3, 1}},
	} {
		before := slices.Clone(c.infos)
		if got := chooseVictims(c.infos, c.policy); !slices.Equal(got, c.want) {
			t.Errorf("%s: victims %v, want %v", c.name, got, c.want)
		}
		if !slices.Equal(before, c.infos) {
			t.Errorf("%s: the table was changed", c.name)
		}
	}
}

func TestAddSmall(t *testing.T) {
	infos := func(n int, size int64) (list []segment.Info) {
		for i := range n {
			list = append(list, segment.Info{ID: uint32(i + 1), Size: size + int64(n-i), Live: size})
		}
		return list
	}
	numbers := func(from, to uint32) (list []uint32) { // downwards: the later ones are smaller
		for id := from; id >= to; id-- {
			list = append(list, id)
		}
		return list
	}
	large, empty := segment.Info{ID: 900, Size: 2000, Live: 2000}, segment.Info{ID: 901, Size: 1}
	joined := segment.Info{ID: 902, Size: 900, Live: 900}
	for _, c := range []struct {
		name    string
		victims []uint32
		infos   []segment.Info
		budget  int64
		want    []uint32
	}{
		{"as many as there may be", nil, infos(smallMost, 10), 1 << 20, nil},
		{"more: all of them, and no others", nil, append(infos(smallMost+1, 10), large, empty), 1 << 20, numbers(smallMost+1, 1)},
		{"the smallest, as long as the budget lasts", nil, infos(smallMost+1, 10), 45, numbers(smallMost+1, smallMost-2)},
		{"those that go in any case do not count, but cost", []uint32{1}, infos(smallMost+2, 10), 55, append([]uint32{1}, numbers(smallMost+2, smallMost-1)...)},
		{"nothing becomes large enough", nil, infos(smallMost+1, 10), 35, nil},
		{"one that was made of many waits for as many others", nil, append(infos(smallMost+1, 10), joined), 1 << 20, numbers(smallMost+1, 1)},
		{"and may be why there are not too many", []uint32{1}, infos(smallMost+1, 10), 1 << 20, []uint32{1}},
		{"no budget", nil, infos(smallMost+1, 10), 0, nil},
	} {
		if got := addSmall(c.victims, c.infos, c.budget, 1000); !slices.Equal(got, c.want) {
			t.Errorf("%s: victims %v, want %v", c.name, got, c.want)
		}
	}
}

// Where keys only grow, and checkpoints are small, joining moves a byte a few times, and not everything that there is each time.
func TestJoiningMovesNothingAgainAndAgain(t *testing.T) {
	const checkpoints, full = 20_000, 64 << 20
	for _, each := range []int64{1 << 10, 4 << 10, 64 << 10} {
		var infos []segment.Info
		var moved int64
		most := 0
		for id := uint32(1); id <= 2*checkpoints; id += 2 {
			infos = append(infos, segment.Info{ID: id, Size: each, Live: each})
			victims := addSmall(nil, infos, full/2, full/joinedShare)
			fresh := segment.Info{ID: id + 1}
			infos = slices.DeleteFunc(infos, func(i segment.Info) bool {
				gone := slices.Contains(victims, i.ID)
				if gone {
					fresh.Live += i.Live
				}
				return gone
			})
			if fresh.Size = fresh.Live; fresh.Live > 0 {
				infos = append(infos, fresh)
			}
			moved += fresh.Live
			small := slices.DeleteFunc(slices.Clone(infos), func(i segment.Info) bool { return i.Size >= full/joinedShare })
			most = max(most, len(small))
		}
		if written := each * checkpoints; moved > 5*written {
			t.Errorf("%d bytes each: every byte was moved %.1f times", each, float64(moved)/float64(written))
		}
		if most > smallMost {
			t.Errorf("%d bytes each: up to %d small segments, want %d", each, most, smallMost)
		}
	}
}

// Two memtables, the cache and the inner nodes stay within the budget, at any budget.
func TestSizesStayWithinTheBudget(t *testing.T) {
	for memory := int64(leastMemory); memory <= 8<<30; memory = memory*3/2 + 4096 {
		s := sizesFor(memory)
		if sum := 2*int64(s.memtable) + s.cache + 2*s.logSegment; sum > memory {
			t.Errorf("budget %d: %+v add up to %d", memory, s, sum)
		}
		if sum := int64(s.memtable/frontSteps) + s.most + 2*s.logSegment; sum > memory {
			t.Errorf("budget %d: with one memtable %+v add up to %d", memory, s, sum)
		}
		if s.logSegment%4096 != 0 {
			t.Errorf("budget %d: log segments of %d bytes", memory, s.logSegment)
		}
	}
}

// A budget that stands for no bound is a large one: nothing that follows from it comes round.
func TestSizesOfABudgetWithoutBound(t *testing.T) {
	usual := sizesFor(1 << 40)
	for _, memory := range []int64{1 << 59, 1 << 60, 1 << 61, 5 << 60, 1 << 62, math.MaxInt64} {
		s := sizesFor(memory)
		if s.mapped < usual.mapped || s.cache < usual.cache || s.most < s.cache || s.inner < usual.inner || s.inner > s.cache {
			t.Errorf("budget %d: %+v", memory, s)
		}
		if s.round != usual.round || s.haste != usual.haste || s.bulk != usual.bulk || s.split != usual.split || s.segment != usual.segment {
			t.Errorf("budget %d: %+v", memory, s)
		}
	}
}

// The cleaner may move as much of values as was written since the last root.
func TestUnsettledValues(t *testing.T) {
	infos := []segment.Info{
		{ID: 1, Class: segment.Values, Size: 1000, Live: 900, LastSeq: 10},
		{ID: 2, Class: segment.Nodes, Size: 1000},
		{ID: 3, Class: segment.Values, Size: 1000, Live: 300, LastSeq: 11}, // some of it was settled
		{ID: 4, Class: segment.Values, Size: 500, Live: 0, LastSeq: 20},
		{ID: 5, Class: segment.Values, Size: 500, Live: 0, LastSeq: 0}, // of no commit yet
	}
	if n := unsettledValues(infos, 10); n != 1200 {
		t.Errorf("%d bytes", n)
	}
}

// Small changes all over the keys leave little garbage, and what the cleaner does about it takes little beside what is written anyway.
func TestGarbageOfScatteredChanges(t *testing.T) {
	const records, rounds = 15_000, 40
	const each = 2 * records / rounds // changes of a round
	synctest.Test(t, func(t *testing.T) {
		e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: leastMemory})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		random := rand.New(rand.NewPCG(1, 2))
		size, live := int64(0), int64(0) // summed up
		for round := range rounds {
			var enc command.Encoder
			for range each {
				key, value := make([]byte, 16), make([]byte, 100)
				i := uint64(enc.Count() + round*each)
				if i >= records { // all are there: from now on they are overwritten
					i = random.Uint64N(records)
				}
				binary.BigEndian.PutUint64(key, i*0x9e3779b97f4a7c15)
				for at := 4; at <= len(value)-8; at += 8 {
					binary.BigEndian.PutUint64(value[at:], random.Uint64())
				}
				enc.Put(DefaultID, key, value, 0)
			}
			if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
				t.Fatal(err)
			}
			if err := e.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			if m := e.Metrics(); round >= rounds/3 {
				size, live = size+m.SegmentBytes, live+m.LiveBytes
			}
		}
		if size > live+live/3 {
			t.Errorf("segments of %d bytes have %d in use", size/rounds, live/rounds)
		}
		if w := e.Metrics().WriteAmplification; w > 6 {
			t.Errorf("every byte was written %.2f times", w)
		}
	})
}

// A commit that is carried out, and gives the hold of its value up, while a checkpoint looks for segments that nobody needs keeps those
// of its value.
func TestSegmentsOfACommitBesideACheckpointAreNotSettled(t *testing.T) {
	e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: 1 << 20, Profile: Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ks := e.Keyspace(DefaultID)
	hold := e.HoldValues()
	val := make([]byte, 3<<20) // of several segments
	for i := range val {
		val[i] = byte(i * i >> 7)
	}
	ref, err := hold.Store(ks, []byte("key"), val)
	if err != nil {
		t.Fatal(err)
	}
	s := &settlement{e: e, firstNew: e.store.NextID()}
	_, settled := s.settledSegments(func() []segment.Info {
		list := e.store.Segments()
		var enc command.Encoder
		enc.PutApart(ks.ID, []byte("key"), value.AppendRef(nil, ref), 0)
		if err := hold.End(e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()})); err != nil {
			t.Error(err)
		}
		return list
	}, 0)
	if len(settled) > 0 {
		t.Errorf("nobody is said to need %v", settled)
	}
}

// Damage in one of the segments that the cleaner was emptying keeps it from that one for good, and from the others for a moment only.
func TestVictimsBesideADamagedOneAreTriedAgain(t *testing.T) {
	hand := clock.NewManual(time.Unix(1_700_000_000, 0))
	e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: 1 << 20, Clock: hand})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.settling.Lock()
	defer e.settling.Unlock()
	s := &settlement{e: e, victims: segment.SetOf(1, 2, 3)}
	if !s.giveVictimsUp(fmt.Errorf("a leaf: %w", corrupt.New(segment.FilePath(2), 64, 100, "damaged"))) {
		t.Fatal("the victims are kept")
	}
	hand.Advance(2 * stuckUnreadable)
	for id := range uint32(4) {
		if stuck := hand.Now().Before(e.stuck[id]); stuck != (id == 2) {
			t.Errorf("segment %d is left alone: %v", id, stuck)
		}
	}
}

// A pause makes no round of cleaning for garbage that goes only with those who read it.
func TestAPauseDoesNotCleanWhatASnapshotKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: leastMemory})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		write := func(n int) {
			var enc command.Encoder
			for i := range n {
				enc.Put(DefaultID, fmt.Appendf(nil, "%06d", i), make([]byte, 100), 0)
			}
			if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * longestIdle)
			synctest.Wait()
		}
		write(1000)
		s, err := e.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Release()
		for range 3 {
			write(1000)
		}
		before := e.counters.checkpoints.Load()
		write(1)
		if n := e.counters.checkpoints.Load() - before; n != 1 {
			t.Errorf("%d checkpoints for one record and a pause", n)
		}
	})
}
