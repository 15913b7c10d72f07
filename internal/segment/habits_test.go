package segment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// alphabet returns n bytes of which each is one of so many characters, at random.
func alphabet(seed uint64, n, characters int) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(' ' + r.IntN(characters))
	}
	return b
}

// fields is records that begin with the same characters, of which the rest is random.
func fields(seed uint64, n, same, characters int) []byte {
	var b []byte
	for i := 0; len(b) < n; i++ {
		b = append(fmt.Appendf(b, "%0*d", same, seed), alphabet(seed+uint64(i), 100-same, characters)...)
	}
	return b[:n]
}

// A Writer in a hurry takes zstd where that saves enough, and S2 or nothing elsewhere; one that has time always takes zstd.
func TestHurryPicksTheCodec(t *testing.T) {
	for _, test := range []struct {
		name  string
		make  func(seed uint64) []byte
		hurry bool
		want  Codec
	}{
		{"text", func(seed uint64) []byte { return text(seed, 20000) }, true, Zstd},
		{"digits with a little that repeats", func(seed uint64) []byte { return fields(seed, 20000, 17, 10) }, true, Zstd},
		{"random text with a little that repeats", func(seed uint64) []byte { return fields(seed, 20000, 17, 64) }, true, None},
		{"random text with a little more that repeats", func(seed uint64) []byte { return fields(seed, 20000, 27, 64) }, true, S2},
		{"random text with a little that repeats, in no hurry", func(seed uint64) []byte { return fields(seed, 20000, 17, 64) }, false, Zstd},
		{"much that repeats, and hardly anything else that shrinks", func(seed uint64) []byte { return fields(seed, 20000, 45, 192) }, true, S2},
		{"the same, in no hurry", func(seed uint64) []byte { return fields(seed, 20000, 45, 192) }, false, Zstd},
		{"noise", func(seed uint64) []byte { return noise(seed, 20000) }, true, None},
		{"short", func(seed uint64) []byte { return text(seed, weighedBytes-1) }, true, Zstd},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := emptyStore(t)
			w := s.NewWriter(Nodes, 1)
			if test.hurry {
				w.Hurry()
			}
			const blobs = 3 * weighEvery
			used := map[Codec]int{}
			pointers, raws := make([]Pointer, blobs), make([][]byte, blobs)
			for i := range blobs {
				raws[i] = test.make(uint64(i))
				p, err := w.Append(KindLeaf, 1, Zstd, 0, raws[i])
				must(t, err)
				pointers[i] = p
			}
			must(t, w.Sync())
			for i, p := range pointers {
				used[mustRead(t, s, p, raws[i]).Codec]++
			}
			if used[test.want] < blobs-blobs/16 {
				t.Errorf("codecs of %d blobs: %v, want most to be %d", blobs, used, test.want)
			}
		})
	}
}

// Data of a keyspace may change its nature, and another keyspace has another one.
func TestHurryWeighsAgain(t *testing.T) {
	s := emptyStore(t)
	w := s.NewWriter(Nodes, 1)
	w.Hurry()
	codecs := func(keyspace uint32, make func(seed uint64) []byte) (list []Codec) {
		var pointers []Pointer
		var raws [][]byte
		for i := range 2 * weighEvery {
			raw := make(uint64(i))
			p, err := w.Append(KindLeaf, keyspace, Zstd, 0, raw)
			must(t, err)
			pointers, raws = append(pointers, p), append(raws, raw)
		}
		must(t, w.Flush())
		for i, p := range pointers {
			list = append(list, mustRead(t, s, p, raws[i]).Codec)
		}
		return list
	}
	random := func(seed uint64) []byte { return fields(seed, 20000, 27, 64) }
	hardly := func(seed uint64) []byte { return fields(seed, 20000, 17, 64) }
	prose := func(seed uint64) []byte { return text(seed, 20000) }
	if list := codecs(1, random); list[0] != Zstd || list[1] != S2 || list[len(list)-1] != S2 {
		t.Errorf("random text: codecs %v", list)
	}
	if list := codecs(2, prose); list[0] != Zstd || list[1] != Zstd {
		t.Errorf("text of another keyspace: codecs %v", list)
	}
	codecs(1, random)
	if list := codecs(1, prose); list[len(list)-1] != Zstd {
		t.Errorf("text after random text: codecs %v", list)
	}
	if list := codecs(1, random); list[len(list)-1] != S2 {
		t.Errorf("random text after text: codecs %v", list)
	}
	if list := codecs(1, hardly); list[len(list)-1] != None {
		t.Errorf("what hardly shrinks after random text: codecs %v", list)
	}
	if list := codecs(1, prose); list[len(list)-1] != Zstd {
		t.Errorf("text after what hardly shrinks: codecs %v", list)
	}
}

// Where each comparison finds what the one before it did, they become rare; where it does not, they are frequent again.
func TestWeighsLessOften(t *testing.T) {
	var h habits
	between := func(payloads int, finding [2]int) (list []int) {
		since := 0
		for range payloads {
			if _, weigh := h.codecFor(KindLeaf, Zstd, quick, weighedBytes); weigh {
				h.weigh(100, finding[0], finding[1])
				list, since = append(list, since), 0
			} else {
				since++
			}
		}
		return list
	}
	if got, want := between(3000, [2]int{90, 80}), []int{0, 64, 128, 256, 512, 512, 512, 512}; !slices.Equal(got, want) {
		t.Errorf("payloads between comparisons: %v, want %v", got, want)
	}
	if got := between(1000, [2]int{50, 20}); !slices.Equal(got[1:], []int{64, 128, 256, 512}) {
		t.Errorf("after a change: %v", got)
	}
}

// What one Writer in a hurry has learnt of a keyspace the next one knows; one that has time finds out for itself. Data that begins to
// shrink is compressed before long.
func TestHurryRemembers(t *testing.T) {
	s := emptyStore(t)
	codecs := func(hurry bool, keyspace uint32, blobs int, make func(seed uint64, n int) []byte) (list []Codec, h habits) {
		w := s.NewWriter(Nodes, 1)
		if hurry {
			w.Hurry()
		}
		var pointers []Pointer
		var raws [][]byte
		for i := range blobs {
			raw := make(uint64(i), 20000)
			p, err := w.Append(KindLeaf, keyspace, S2, 0, raw)
			must(t, err)
			pointers, raws = append(pointers, p), append(raws, raw)
			if h = w.habits; i == 0 && hurry {
				_, err = w.Append(KindLeaf, 9, S2, 0, text(1, 1000)) // another keyspace between
				must(t, err)
			}
		}
		must(t, w.Sync())
		w.Commit()
		for i, p := range pointers {
			list = append(list, mustRead(t, s, p, raws[i]).Codec)
		}
		return list, h
	}
	codecs(true, 1, 3*dullAfter, noise)
	if _, h := codecs(true, 1, 4, noise); h.dull[leaves] != 3*dullAfter+4 {
		t.Errorf("in the next Writer: %+v", h)
	}
	if list, _ := codecs(true, 2, 1, text); list[0] != S2 {
		t.Errorf("text of another keyspace: codecs %v", list)
	}
	if list, _ := codecs(false, 1, 1, text); list[0] != S2 {
		t.Errorf("text, in no hurry: codecs %v", list)
	}
	if list, _ := codecs(true, 1, dullAfter, text); list[0] != None || list[dullAfter-1] != S2 {
		t.Errorf("text after noise: codecs %v", list)
	}
	if list, _ := codecs(true, 1, 1, text); list[0] != S2 {
		t.Errorf("text after text: codecs %v", list)
	}
}

// What is remembered is bounded, however many keyspaces there are.
func TestLearntIsBounded(t *testing.T) {
	var l learnt
	for i := range uint32(3 * mostLearnt) {
		l.keep(habits{keyspace: i, dull: droughts{leaves: dullAfter}})
		if h := l.of(i); h.dull[leaves] != dullAfter || len(l.dull) > mostLearnt {
			t.Fatalf("keyspace %d: %+v among %d", i, h, len(l.dull))
		}
	}
	l.keep(habits{keyspace: 3*mostLearnt - 1})
	if h := l.of(3*mostLearnt - 1); h != (habits{keyspace: 3*mostLearnt - 1}) {
		t.Errorf("forgotten habits: %+v", h)
	}
}

// Nodes and deltas that shrink do not make leaves be tried that do not, and the other way round.
func TestHabitsOfKindsAreApart(t *testing.T) {
	s := emptyStore(t)
	w := s.NewWriter(Nodes, 1)
	w.Hurry()
	var h habits
	for i := range uint64(4 * dullAfter) {
		for _, kind := range []Kind{KindLeaf, KindDelta, KindInner, KindFilter} {
			raw := noise(i, 10000)
			if kind == KindInner {
				raw = text(i, 10000)
			}
			_, err := w.Append(kind, 1, S2, 0, raw)
			must(t, err)
		}
		h = w.habits
	}
	if want := (droughts{leaves: 4 * dullAfter, deltas: 4 * dullAfter, others: 1}); h.dull != want {
		t.Errorf("learnt %v, want %v", h.dull, want)
	}
	must(t, w.Abort())
}

// One payload in eight that shrinks is not worth trying the others. When all begin to shrink, all are tried before long.
func TestChanceIsNoHabit(t *testing.T) {
	var h habits
	tried := func(payloads, shrinking int) (n int) {
		for i := range payloads {
			used := None
			if wanted, _ := h.codecFor(KindLeaf, S2, quick, 8<<10); wanted == S2 {
				n++
				if i%shrinking == 0 {
					used = S2
				}
			}
			h.note(KindLeaf, used)
		}
		return n
	}
	tried(100, 8)
	if n := tried(8000, 8); n > 8000/4 {
		t.Errorf("tried %d of 8000 payloads of which one in eight shrinks", n)
	}
	tried(2*dullAfter, 1)
	if n := tried(100, 1); n != 100 {
		t.Errorf("tried %d of 100 payloads which all shrink", n)
	}
	if n := tried(100, 2); n < 90 {
		t.Errorf("tried %d of 100 payloads of which every second shrinks", n)
	}
}
