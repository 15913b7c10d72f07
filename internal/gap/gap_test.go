package gap

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

func list(g Gaps) (s string) {
	for _, x := range g {
		high := "end"
		if x.High != nil {
			high = fmt.Sprintf("%q", x.High)
		}
		s += fmt.Sprintf("[%q,%s)@%d ", x.Low, high, x.Seq)
	}
	return s
}

func TestGapsJoin(t *testing.T) {
	for _, c := range []struct {
		name string
		add  []Gap
		want string
	}{
		{"apart", []Gap{{b("a"), b("c"), 1}, {b("e"), b("g"), 2}}, `["a","c")@1 ["e","g")@2 `},
		{"touching", []Gap{{b("a"), b("c"), 1}, {b("c"), b("g"), 2}}, `["a","g")@2 `},
		{"touching below", []Gap{{b("c"), b("g"), 2}, {b("a"), b("c"), 1}}, `["a","g")@2 `},
		{"inside", []Gap{{b("a"), b("g"), 3}, {b("c"), b("d"), 2}}, `["a","g")@3 `},
		{"over several", []Gap{{b("b"), b("c"), 3}, {b("e"), b("f"), 9}, {b("a"), b("g"), 4}}, `["a","g")@9 `},
		{"no lower bound", []Gap{{nil, b("c"), 3}, {nil, b("e"), 4}}, `["","e")@4 `},
		{"no upper bound", []Gap{{b("c"), nil, 3}, {b("a"), b("d"), 4}, {b("x"), b("y"), 2}}, `["a",end)@4 `},
		{"everything", []Gap{{b("c"), b("d"), 3}, {nil, nil, 4}}, `["",end)@4 `},
		{"empty", []Gap{{b("c"), b("c"), 3}, {b("d"), b("c"), 3}}, ``},
		{"long bound", []Gap{{b("c"), bytes.Repeat(b("d"), mostBytes+1), 3}}, ``},
	} {
		var s Set
		for _, g := range c.add {
			s.Add(1, g)
		}
		if got := list(s.Of(1)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func b(s string) []byte { return []byte(s) }

func TestPutSplitsAGap(t *testing.T) {
	for _, c := range []struct {
		gap  Gap
		put  string
		want string
	}{
		{Gap{b("b"), b("f"), 7}, "c", `["b","c")@7 ["c\x00","f")@7 `},
		{Gap{b("b"), b("f"), 7}, "b", `["b\x00","f")@7 `},
		{Gap{b("b"), b("f"), 7}, "f", `["b","f")@7 `},
		{Gap{b("b"), b("f"), 7}, "a", `["b","f")@7 `},
		{Gap{b("b"), b("b\x00"), 7}, "b", ``},
		{Gap{nil, nil, 7}, "c", `["","c")@7 `}, // what comes behind all that lives goes on
		{Gap{nil, nil, 7}, "", ``},
	} {
		var s Set
		s.Add(1, c.gap)
		s.Put(2, b(c.put))
		if s.Put(1, b(c.put)); list(s.Of(1)) != c.want {
			t.Errorf("%s, put %q: %s, want %s", list(Gaps{c.gap}), c.put, list(s.Of(1)), c.want)
		}
		if s.Empty() != (c.want == "") {
			t.Errorf("put %q: empty %v", c.put, s.Empty())
		}
	}
}

// A Set forgets rather than to grow, and forgets nothing of other keyspaces until it has gaps of too many.
func TestSetIsBounded(t *testing.T) {
	var s Set
	s.Add(9, Gap{b("a"), b("b"), 1})
	for i := range 3 * mostGaps {
		s.Add(1, Gap{fmt.Appendf(nil, "%05d", 2*i), fmt.Appendf(nil, "%05d", 2*i+1), uint64(i + 1)})
	}
	if n := len(s.Of(1)); n != mostGaps || len(s.Of(9)) != 1 {
		t.Errorf("%d gaps, and %d of another keyspace", n, len(s.Of(9)))
	}
	if _, ok := s.Of(1).After(fmt.Appendf(nil, "%05d", 2*(3*mostGaps-1)), 1000); !ok {
		t.Error("the newest gap was forgotten")
	}
	for i := range 1000 {
		s.Put(9, fmt.Appendf(nil, "a%04d", i))
	}
	if n := len(s.Of(9)); n > mostGaps {
		t.Errorf("%d pieces of a gap", n)
	}
	for i := range uint32(3 * mostKeyspaces) {
		s.Add(100+i, Gap{nil, b("b"), 1})
	}
	if n := len(*s.all.Load()); n > mostKeyspaces {
		t.Errorf("gaps of %d keyspaces", n)
	}
	s.Drop(100 + 3*mostKeyspaces - 1)
	if len(s.Of(100+3*mostKeyspaces-1)) != 0 {
		t.Error("the gaps of a dropped keyspace are there")
	}
	if s.Clear(); !s.Empty() {
		t.Error("not empty")
	}
}

// Random programs: a gap is never said to be where a key was put since its sequence number, and what readers have taken stays as it is.
func TestRandomGaps(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		const keys = 300
		var put [keys]uint64 // when
		names := make([][]byte, keys+1)
		for i := range names {
			names[i] = fmt.Appendf(nil, "%03d", i)
		}
		key := func(i int) []byte { return names[i] }
		var s Set
		seq := uint64(0)
		for range 2000 {
			seq++
			switch rng.IntN(4) {
			case 0, 1:
				i := rng.IntN(keys)
				put[i] = seq
				s.Put(1, key(i))
			case 2:
				low := rng.IntN(keys)
				high := low + 1 + rng.IntN(60)
				g := Gap{key(low), key(min(high, keys)), 0}
				for _, at := range put[low:min(high, keys)] {
					g.Seq = max(g.Seq, at)
				}
				if high > keys {
					g.High = nil
				}
				if low == 0 {
					g.Low = nil
				}
				s.Add(1, g)
			default:
				checkGaps(t, s.Of(1), put[:], key, uint64(rng.IntN(int(seq+1))), rng.IntN(keys))
			}
		}
	}
}

// checkGaps compares gaps with when each key was put last, and what a reader is told of key number at with the gaps.
func checkGaps(t *testing.T, gaps Gaps, put []uint64, key func(int) []byte, reader uint64, at int) {
	t.Helper()
	for i, g := range gaps {
		if i > 0 && (gaps[i-1].High == nil || bytes.Compare(gaps[i-1].High, g.Low) >= 0) {
			t.Fatalf("gaps that overlap: %s", list(gaps))
		}
		inside := func(k int) bool {
			return bytes.Compare(g.Low, key(k)) <= 0 && (g.High == nil || bytes.Compare(key(k), g.High) < 0)
		}
		for k, when := range put {
			if inside(k) && when > g.Seq {
				t.Fatalf("key %d was put at %d: %s", k, when, list(gaps))
			}
		}
		if !inside(at) {
			continue
		}
		high, ok := gaps.After(key(at), reader)
		low, before := gaps.Before(append(bytes.Clone(key(at)), 0), reader)
		if told := g.Seq <= reader; ok != told || before != told || gaps.Covers(key(at), g.High, reader) != told {
			t.Fatalf("key %d for a reader at %d: %v, %v, want %v: %s", at, reader, ok, before, told, list(gaps))
		}
		if ok && (!bytes.Equal(high, g.High) || !bytes.Equal(low, g.Low)) {
			t.Fatalf("key %d: from %q to %q: %s", at, low, high, list(gaps))
		}
		return
	}
	if _, ok := gaps.After(key(at), reader); ok {
		t.Fatalf("key %d lies in no gap: %s", at, list(gaps))
	}
}
