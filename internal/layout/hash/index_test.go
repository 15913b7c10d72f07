package hash

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pandodb/pando/internal/segment"
)

// checked is everything that there is to check of an image.
func checked(p image, depth int, number uint64) error {
	if err := p.checkHead(depth, number); err != nil {
		return err
	}
	return p.check()
}

// hashesOf are the hashes of all entries of a page.
func hashesOf(p image) (hashes []uint64) {
	for i := range p.len() {
		hashes = append(hashes, p.entry(i).hash)
	}
	return hashes
}

// sameAsPlain compares find with a search from the first entry to the last of a page, whose hashes are those.
func sameAsPlain(t *testing.T, p image, hashes []uint64, hash uint64) {
	t.Helper()
	first, end := p.find(hash)
	from, n := 0, 0
	for _, h := range hashes {
		switch {
		case h < hash&keptBits:
			from++
		case h == hash&keptBits:
			n++
		}
	}
	if end-first != n || n > 0 && first != from || first < 0 || end > p.len() {
		t.Fatalf("hash %016x among %d: from %d before %d, want %d from %d on", hash, p.len(), first, end, n, from)
	}
}

// TestFind searches pages of every kind of unevenness: where an entry should be says nothing in most of them.
func TestFind(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	rng := rand.New(rand.NewPCG(1, 1))
	within := func(bits int) func(int) uint64 { // of what follows the page's number: only the last so many differ
		return func(int) uint64 { return rng.Uint64() >> (64 - bits) << (64 - hashBits) }
	}
	const depth = 8
	kinds := map[string]func(i int) uint64{
		"even":               func(int) uint64 { return rng.Uint64() >> depth },
		"all the same":       func(int) uint64 { return 0x00123456 << 28 },
		"the same 32 bits":   within(4),
		"all at the front":   within(9),
		"all at the end":     func(int) uint64 { return 1<<56 - 1 - rng.Uint64()>>(64-9)<<(64-hashBits) },
		"two heaps":          func(i int) uint64 { return uint64(i&1)<<55 + rng.Uint64()>>40 },
		"a heap in evenness": func(i int) uint64 { return [...]uint64{rng.Uint64() >> depth, 1<<54 + rng.Uint64()>>30}[i&1] },
		"one after another":  func(i int) uint64 { return uint64(i) << 28 },
	}
	for name, hash := range kinds {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{0, 1, 2, 3, 47, 48, 49, 50, 97, 145, 400, 2000} {
				const number = 0xA7
				list := make([]entry, n)
				for i := range list {
					list[i].hash = (number<<56 | hash(i)) & keptBits
					list[i].at = segment.Piece{Segment: 1, Offset: uint32(64 + 9*i), Length: 9}
				}
				slices.SortStableFunc(list, byHash)
				p := new(imager).append(nil, depth, number, list)
				if err := checked(p, depth, number); err != nil {
					t.Fatal(err)
				}
				hashes := hashesOf(p)
				for range 200 {
					h := number<<56 | hash(rng.IntN(n+1))
					sameAsPlain(t, p, hashes, h)
					sameAsPlain(t, p, hashes, h|1)
					sameAsPlain(t, p, hashes, h+1<<28)
					sameAsPlain(t, p, hashes, number<<56|rng.Uint64()>>depth)
				}
				sameAsPlain(t, p, hashes, number<<56)
				sameAsPlain(t, p, hashes, number<<56|(1<<56-1))
				for i := range list {
					sameAsPlain(t, p, hashes, list[i].hash)
				}
			}
		})
	}
}

func byHash(x, y entry) int {
	switch {
	case x.hash < y.hash:
		return -1
	case x.hash > y.hash:
		return 1
	}
	return 0
}

// TestFindAtEveryDepth: the bits that all hashes of a page have in common say nothing of where in it one is.
func TestFindAtEveryDepth(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for depth := range maxDepth + 1 {
		number := rng.Uint64() >> 1 >> (63 - depth)
		list := make([]entry, 300)
		for i := range list {
			list[i].hash = (number<<1<<(63-depth) | rng.Uint64()>>depth) & keptBits
			list[i].at.Segment = uint32(1 + i%7)
		}
		slices.SortFunc(list, byHash)
		p := new(imager).append(nil, depth, number, list)
		if err := checked(p, depth, number); err != nil {
			t.Fatalf("depth %d: %v", depth, err)
		}
		hashes := hashesOf(p)
		for i := range list {
			sameAsPlain(t, p, hashes, list[i].hash)
			sameAsPlain(t, p, hashes, list[i].hash+1<<28)
		}
	}
}

// TestImages: what an image is made of is what it has, with as many segments as it can number and with more, after one another.
func TestImages(t *testing.T) {
	var m imager
	for _, segments := range []int{1, 3, maxSegments - 1, maxSegments, maxSegments + 1, 2000, 2} {
		list := spaced(2500, segments)
		rand.New(rand.NewPCG(3, 1)).Shuffle(len(list), func(i, j int) { list[i].at, list[j].at = list[j].at, list[i].at })
		p := m.append(nil, 3, 5, list)
		if err := checked(p, 3, 5); err != nil {
			t.Fatal(err)
		}
		if got := p.appendTo(nil); !slices.Equal(got, list) {
			t.Fatalf("%d segments: the image has other entries", segments)
		}
		size := imageHead + (4+8)*len(list)
		if segments > maxSegments {
			size += 4 * len(list)
		} else {
			size += 4 * segments
		}
		if len(p) != size {
			t.Errorf("%d segments: %d bytes, want %d", segments, len(p), size)
		}
		for s := range uint32(segments + 2) {
			want := s >= 1 && int(s) <= segments
			if got := p.refers(segment.SetOf(s)); got != want {
				t.Errorf("%d segments: refers to %d: %v", segments, s, got)
			}
		}
	}
}

// TestPackedImages: short records in few segments take eight bytes each, and what is merged into such a page is there, also where it does not
// fit into a word.
func TestPackedImages(t *testing.T) {
	const depth, number = 11, 1234
	rng := rand.New(rand.NewPCG(5, 1))
	random := func(segments, offset, length int64) entry {
		return entry{
			hash:  (number<<(64-depth) | rng.Uint64()>>depth) & keptBits,
			at:    segment.Piece{Segment: uint32(1 + rng.Int64N(segments)), Offset: uint32(rng.Int64N(offset)), Length: uint32(rng.Int64N(length))},
			apart: rng.IntN(4) == 0,
		}
	}
	list := make([]entry, 400)
	for i := range list {
		list[i] = random(8, 1<<24, 200)
	}
	slices.SortFunc(list, byHash)
	var m imager
	p := m.append(nil, depth, number, list)
	if want := imageHead + 4*8 + 8*len(list); len(p) != want || !p.packed() {
		t.Fatalf("%d bytes for %d entries, want %d", len(p), len(list), want)
	}
	for name, limits := range map[string][3]int64{
		"alike": {8, 1 << 24, 200}, "new segments": {9, 1 << 24, 200}, "many segments": {900, 1 << 24, 200}, "far away": {8, 1 << 31, 200}, "long": {8, 1 << 24, 1 << 17},
	} {
		t.Run(name, func(t *testing.T) {
			page, now := p, list
			for range 10 {
				var ops []op
				for range 20 {
					ops = append(ops, op{entry: random(limits[0], limits[1], limits[2]), flags: opAdd})
					ops = append(ops, op{entry: entry{hash: now[rng.IntN(len(now))].hash}, flags: opDrop})
				}
				slices.SortStableFunc(ops, func(x, y op) int { return byHash(x.entry, y.entry) })
				page, now = m.merge(nil, page, ops), mergePlainly(now, ops)
				if err := checked(page, depth, number); err != nil {
					t.Fatal(err)
				}
				if got := page.appendTo(nil); !slices.Equal(got, now) {
					t.Fatal("what was merged is not what there is")
				}
				hashes := hashesOf(page)
				for i := range now {
					sameAsPlain(t, page, hashes, now[i].hash)
				}
			}
			if again := m.compact(nil, page, nil); !slices.Equal(again.appendTo(nil), now) || again.names() > page.names() {
				t.Error("the page without the segments that nothing lies in has other entries")
			}
		})
	}
}

// TestCheckOfImages makes one thing wrong at a time.
func TestCheckOfImages(t *testing.T) {
	good := func() image { return new(imager).append(nil, 3, 5, spaced(6, 3)) }
	hashes := imageHead + 4*3
	places := hashes + 4*6
	for name, spoil := range map[string]func(p image) image{
		"nothing":               func(image) image { return nil },
		"no head":               func(p image) image { return p[:imageHead-1] },
		"a byte less":           func(p image) image { return p[:len(p)-1] },
		"a byte more":           func(p image) image { return append(p, 0) },
		"another number":        func(p image) image { p[0]++; return p },
		"a number of 2^32-1":    func(p image) image { copy(p, "\xff\xff\xff\xff"); return p },
		"another segment":       func(p image) image { p[4]++; return p },
		"too many segments":     func(p image) image { p[5] = 4; p[4] = 1; return p },
		"another depth":         func(p image) image { p[8]++; return p },
		"a hash of another one": func(p image) image { p[hashes+4*5+3] = 0xff; return p },
		"hashes out of order":   func(p image) image { p[hashes+4*4+3] = 0xa0; return p },
		"rests out of order":    func(p image) image { p[places+8*2+7] &= 0x0f; p[places+8*1+7] |= 0x20; return p },
		"no such segment":       func(p image) image { p[places+6] |= 0xfe; return p },
	} {
		if err := checked(spoil(good()), 3, 5); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := checked(good(), 3, 5); err != nil {
		t.Error(err)
	}
	if err := checked(good(), 3, 4); err == nil {
		t.Error("it passes as another page")
	}
}

// TestDeltasRefuseNonsense makes one thing wrong at a time.
func TestDeltasRefuseNonsense(t *testing.T) {
	good := func() []byte { return appendDelta(nil, sampleOps()) }
	second := deltaHead + deltaEntry
	for name, spoil := range map[string]func(b []byte) []byte{
		"nothing":         func([]byte) []byte { return nil },
		"a byte less":     func(b []byte) []byte { return b[:len(b)-1] },
		"a byte more":     func(b []byte) []byte { return append(b, 0) },
		"another number":  func(b []byte) []byte { b[0]--; return b },
		"no flags":        func(b []byte) []byte { b[second+8+6] &^= 0x06; return b },
		"unknown flags":   func(b []byte) []byte { b[second+8+6] |= 0x08; return b },
		"another page":    func(b []byte) []byte { b[len(b)-deltaEntry+3] = 0xff; return b },
		"hashes go down":  func(b []byte) []byte { b[deltaHead+3] = 0xbf; return b },
		"of another page": func(b []byte) []byte { b[deltaHead+3] = 0; return b },
	} {
		if _, err := decodeDelta(nil, spoil(good()), 3, 5); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if got, err := decodeDelta(nil, good(), 3, 5); err != nil || !slices.Equal(got, sampleOps()) {
		t.Errorf("%+v, %v", got, err)
	}
}

// mergePlainly is merge as the format describes it.
func mergePlainly(list []entry, ops []op) []entry {
	byHash := map[uint64][]entry{}
	for _, e := range list {
		byHash[e.hash] = append(byHash[e.hash], e)
	}
	for _, o := range ops {
		if o.flags&opDrop != 0 {
			byHash[o.hash] = nil
		}
		if o.flags&opAdd != 0 {
			byHash[o.hash] = append([]entry{o.entry}, byHash[o.hash]...)
		}
	}
	var hashes []uint64
	for h := range byHash {
		hashes = append(hashes, h)
	}
	slices.Sort(hashes)
	var out []entry
	for _, h := range hashes {
		out = append(out, byHash[h]...)
	}
	return out
}

func TestMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	random := func(spread int) entry {
		return entry{hash: uint64(rng.IntN(spread)) << 28, at: segment.Piece{Segment: 1, Offset: rng.Uint32(), Length: 7}, apart: rng.IntN(2) == 0}
	}
	var spare []entry
	for round := range 2000 {
		spread := 1 + rng.IntN(1+round%100)
		list, ops := make([]entry, rng.IntN(40)), make([]op, rng.IntN(20))
		for i := range list {
			list[i] = random(spread)
		}
		for i := range ops {
			ops[i] = op{entry: random(spread), flags: 1 + rng.Uint64N(opAll)}
		}
		slices.SortStableFunc(list, byHash)
		slices.SortStableFunc(ops, func(x, y op) int { return byHash(x.entry, y.entry) })
		was := slices.Clone(list)
		spare = merge(spare[:0], list, ops)
		if want := mergePlainly(list, ops); !slices.Equal(spare, want) || !slices.Equal(list, was) {
			t.Fatalf("%+v with %+v: %+v, want %+v", list, ops, spare, want)
		}
	}
}

// TestImageOfImpossibleNumbers: numbers of entries and segments that add up to the length of the page only where an int wraps around.
func TestImageOfImpossibleNumbers(t *testing.T) {
	for _, c := range []struct{ entries, segments uint32 }{{1, 1<<32 - 2}, {1 << 31, 1}, {1<<32 - 1, 0}, {3, 1<<32 - 8}} {
		p := make(image, imageHead+4)
		binary.LittleEndian.PutUint32(p, c.entries)
		binary.LittleEndian.PutUint32(p[4:], c.segments)
		if err := p.checkHead(0, 0); err == nil {
			t.Errorf("%d entries in %d segments are believed to fit into %d bytes", c.entries, c.segments, len(p))
		}
	}
}

// TestManySegmentsAreNotCounted: more segments than a page can number are not looked for among each other.
func TestManySegmentsAreNotCounted(t *testing.T) {
	var m imager
	m.append(nil, 3, 5, spaced(5*maxSegments, 5*maxSegments))
	if n := len(m.segments); n > maxSegments+1 {
		t.Errorf("%d segments are numbered, a page has %d at most", n, maxSegments)
	}
}
