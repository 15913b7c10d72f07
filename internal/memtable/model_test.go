package memtable

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/pandodb/pando/internal/record"
)

const always = ^uint64(0)

// model is the naive form of a table: every version of every key, and every range delete.
type model struct {
	spaces  map[uint32]map[string][]modelVersion // oldest first
	deletes []modelDelete
	records int
	maxSeq  uint64
}

type modelVersion struct {
	seq uint64
	rec record.Record
}

type modelDelete struct {
	ks     uint32
	lo, hi []byte
	seq    uint64
}

func (d modelDelete) covers(ks uint32, key []byte, seq uint64) bool {
	return d.ks == ks && d.seq <= seq && within(key, d.lo, d.hi)
}

// within reports whether key lies in [lo, hi), where a nil hi is the end.
func within(key, lo, hi []byte) bool {
	return bytes.Compare(key, lo) >= 0 && (hi == nil || bytes.Compare(key, hi) < 0)
}

func (m *model) at(ks uint32, key string, seq uint64) (v modelVersion, ok bool) {
	for _, x := range m.spaces[ks][key] {
		if x.seq <= seq {
			v, ok = x, true
		}
	}
	return v, ok
}

func (m *model) covered(ks uint32, key []byte, seq uint64) (newest uint64) {
	for _, d := range m.deletes {
		if d.covers(ks, key, seq) {
			newest = max(newest, d.seq)
		}
	}
	return newest
}

func (m *model) keys(ks uint32, seq uint64) (keys []string) {
	for key := range m.spaces[ks] {
		if _, ok := m.at(ks, key, seq); ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (m *model) newestIn(ks uint32, lo, hi []byte, after uint64) bool {
	for key, versions := range m.spaces[ks] {
		if within([]byte(key), lo, hi) && versions[len(versions)-1].seq > after {
			return true
		}
	}
	for _, d := range m.deletes {
		below := hi == nil || bytes.Compare(d.lo, hi) < 0
		above := d.hi == nil || bytes.Compare(d.hi, lo) > 0
		if d.ks == ks && d.seq > after && below && above {
			return true
		}
	}
	return false
}

const keyStyles = 6

// keyMaker makes keys of one style, so that they collide, share prefixes, end within heads, and are long now and then.
type keyMaker struct {
	rnd   *rand.Rand
	style int
	space int
}

func (k keyMaker) key() []byte {
	n := k.rnd.IntN(k.space)
	switch k.style {
	case 0: // short, often a prefix of another, also empty
		key := make([]byte, k.rnd.IntN(12))
		for i := range key {
			key[i] = byte(k.rnd.IntN(2))
		}
		return key
	case 1:
		return fmt.Appendf(nil, "a common beginning/%08d", n)
	case 2: // many keys with the same heads, on several levels
		return fmt.Appendf(nil, "%08d%020d%08d", n%3, n%5, n)
	case 3: // long keys, that differ early or late
		key := bytes.Repeat([]byte{byte(n % 3)}, record.MaxKey-n%2)
		key[len(key)-1-n%7] = byte(n)
		return key
	case 4: // many equal heads, which are the highest there can be
		if n%4 > 0 {
			return fmt.Appendf(bytes.Repeat([]byte{0xFF}, 9), "%05d", n)
		}
		fallthrough
	default:
		key := make([]byte, 1+k.rnd.IntN(20))
		for i := range key {
			key[i] = byte(k.rnd.Uint32())
		}
		return key
	}
}

// bounds returns a range of keys; nil bounds now and then.
func (k keyMaker) bounds() (lo, hi []byte) {
	lo, hi = k.key(), k.key()
	if bytes.Compare(lo, hi) > 0 {
		lo, hi = hi, lo
	}
	if k.rnd.IntN(8) == 0 {
		lo = nil
	}
	if k.rnd.IntN(8) == 0 {
		hi = nil
	}
	return lo, hi
}

type harness struct {
	t     *testing.T
	rnd   *rand.Rand
	table *Table
	model *model
	keys  keyMaker
	seq   uint64
	ks    []uint32
}

func (h *harness) space() uint32 { return h.ks[h.rnd.IntN(len(h.ks))] }

// snapshot returns a sequence number to read at.
func (h *harness) snapshot() uint64 {
	if h.rnd.IntN(3) == 0 {
		return always
	}
	return h.rnd.Uint64N(h.seq + 2)
}

func (h *harness) record() record.Record {
	r := record.Record{Kind: record.Kind(h.rnd.IntN(3))}
	if h.rnd.IntN(3) == 0 {
		r.Expiry = h.rnd.Uint64()
	}
	if r.Kind != record.Tombstone {
		if n := h.rnd.IntN(40); n > 0 {
			r.Value = bytes.Repeat([]byte{byte(h.rnd.Uint32())}, n)
		}
	}
	return r
}

func (h *harness) put() {
	ks, key, r := h.space(), h.keys.key(), h.record()
	if h.rnd.IntN(4) > 0 {
		h.seq++ // else the same batch goes on
	}
	if !h.table.Fits(1, len(key)+len(r.Value)) {
		return
	}
	h.table.Put(ks, record.Hash(ks, key), key, h.seq, r)
	if h.model.spaces[ks] == nil {
		h.model.spaces[ks] = map[string][]modelVersion{}
	}
	h.model.spaces[ks][string(key)] = append(h.model.spaces[ks][string(key)], modelVersion{h.seq, r})
	h.model.records++
	h.model.maxSeq = h.seq
}

func (h *harness) deleteRange() {
	ks := h.space()
	lo, hi := h.keys.bounds()
	if !h.table.Fits(1, len(lo)+len(hi)) {
		return
	}
	if h.rnd.IntN(3) > 0 {
		h.seq++
	}
	h.table.DeleteRange(ks, lo, hi, h.seq)
	if hi != nil && bytes.Equal(lo, hi) {
		return
	}
	h.model.deletes = append(h.model.deletes, modelDelete{ks, lo, hi, h.seq})
	h.model.records++
	h.model.maxSeq = h.seq
}

// same reports whether two records are equal: what has no value has nil.
func same(a, b record.Record) bool {
	return a.Kind == b.Kind && a.Expiry == b.Expiry && bytes.Equal(a.Value, b.Value) && (a.Value == nil) == (b.Value == nil)
}

func (h *harness) checkKey() {
	ks, key, seq := h.space(), h.keys.key(), h.snapshot()
	want, wantOK := h.model.at(ks, string(key), seq)
	got, gotSeq, ok := h.table.Get(ks, record.Hash(ks, key), key, seq)
	if ok != wantOK || gotSeq != want.seq || !same(got, want.rec) {
		h.t.Fatalf("Get(%d, %.40q, %d) = %v, %d, %v; want %v, %v", ks, key, seq, got, gotSeq, ok, want, wantOK)
	}
	if all, _ := h.model.at(ks, string(key), always); all.seq > 0 && h.table.Prefetch([]uint64{record.Hash(ks, key)}) == 0 {
		h.t.Fatalf("Prefetch of %.40q found an empty slot", key)
	}
	covered := h.model.covered(ks, key, seq)
	if got := h.table.Covered(ks, key, seq); got != covered {
		h.t.Fatalf("Covered(%d, %.40q, %d) = %d; want %d", ks, key, seq, got, covered)
	}
	if h.table.Newer(seq) && (wantOK || covered > 0) {
		h.t.Fatalf("a table that is newer than %d has something to say of %.40q", seq, key)
	}
	newest, _ := h.model.at(ks, string(key), always)
	if got, want := h.table.NewestOf(ks, record.Hash(ks, key), key), max(newest.seq, h.model.covered(ks, key, always)); got != want {
		h.t.Fatalf("NewestOf(%d, %.40q) = %d; want %d", ks, key, got, want)
	}
}

func (h *harness) checkConflict() {
	ks, after := h.space(), h.snapshot()
	lo, hi := h.keys.bounds()
	want := h.model.newestIn(ks, lo, hi, after) && !(hi != nil && bytes.Equal(lo, hi))
	if got := h.table.NewestIn(ks, lo, hi, after); got != want {
		h.t.Fatalf("NewestIn(%d, %.40q, %.40q, %d) = %v", ks, lo, hi, after, got)
	}
	var some []KeyRange
	for range h.rnd.IntN(6) {
		some = append(some, KeyRange{ks, lo, hi})
		ks = h.space()
		lo, hi = h.keys.bounds()
	}
	want = slices.ContainsFunc(some, func(r KeyRange) bool { return h.table.NewestIn(r.Keyspace, r.Lo, r.Hi, after) })
	if got := h.table.NewestInAny(Disjoint(slices.Clone(some)), after); got != want {
		h.t.Fatalf("NewestInAny(%.200v, %d) = %v", some, after, got)
	}
}

func (h *harness) checkRanges() {
	ks, seq := h.space(), h.snapshot()
	ranges := h.table.Ranges(ks, seq)
	for i, r := range ranges {
		if r.Hi != nil && bytes.Compare(r.Lo, r.Hi) >= 0 || r.Seq > seq {
			h.t.Fatalf("Ranges(%d, %d): bad range %.80v", ks, seq, r)
		}
		if i == 0 {
			continue
		}
		before := ranges[i-1]
		if c := bytes.Compare(before.Hi, r.Lo); before.Hi == nil || c > 0 || c == 0 && before.Seq == r.Seq {
			h.t.Fatalf("Ranges(%d, %d): %.80v before %.80v", ks, seq, before, r)
		}
	}
	for range 20 {
		key := h.keys.key()
		var got uint64
		for _, r := range ranges {
			if within(key, r.Lo, r.Hi) {
				got = r.Seq
			}
		}
		if want := h.model.covered(ks, key, seq); got != want {
			h.t.Fatalf("Ranges(%d, %d) cover %.40q at %d; want %d", ks, seq, key, got, want)
		}
	}
}

// checkCursor moves a cursor about and compares each step with a sorted list. place is the number of keys before the
// cursor; at is whether it stands at the next one.
func (h *harness) checkCursor(moves int, between func()) {
	ks, seq := h.space(), min(h.snapshot(), h.seq)
	c := h.table.NewCursor(ks, seq)
	keys := h.model.keys(ks, seq)
	h.seq++ // what comes meanwhile is not visible
	place, at := 0, false
	for range moves {
		between()
		var moved bool
		var name string
		switch op := h.rnd.IntN(20); {
		case op < 3 && at:
			place = h.takeInline(c, keys, place, ks, seq)
			at = place < len(keys)
			name, moved = "TakeInline", at
		case op < 5 && at:
			name, moved = "Skip", true
			if n := h.tombstones(c, keys[place:], ks, seq); n > 0 {
				place += n
				at = place < len(keys)
				moved = c.Skip(n)
			}
		case op < 8:
			name, moved = "Next", c.Next()
			if at {
				place++
			}
			at = place < len(keys)
		case op < 16:
			name, moved = "Prev", c.Prev()
			at = place > 0
			if at {
				place--
			}
		case op == 16:
			name, moved = "First", c.First()
			place, at = 0, len(keys) > 0
		case op == 17:
			name, moved = "Last", c.Last()
			place, at = max(0, len(keys)-1), len(keys) > 0
		case op == 18:
			key := h.keys.key()
			name, moved = fmt.Sprintf("SeekGE(%.40q)", key), c.SeekGE(key)
			place = sort.SearchStrings(keys, string(key))
			at = place < len(keys)
		default:
			key := h.keys.key()
			name, moved = fmt.Sprintf("SeekLT(%.40q)", key), c.SeekLT(key)
			place = sort.SearchStrings(keys, string(key))
			at = place > 0
			if at {
				place--
			}
		}
		if moved != at {
			h.t.Fatalf("cursor(%d, %d) of %d keys: %s = %v at %d", ks, seq, len(keys), name, moved, place)
		}
		if !at {
			continue
		}
		want, _ := h.model.at(ks, keys[place], seq)
		got, gotSeq := c.Record()
		if string(c.Key()) != keys[place] || gotSeq != want.seq || !same(got, want.rec) {
			h.t.Fatalf("cursor(%d, %d): %s: %.40q %v %d; want %.40q %v", ks, seq, name, c.Key(), got, gotSeq, keys[place], want)
		}
	}
}

// tombstones returns how many tombstones in a row a cursor that stands at the first of some keys tells of.
func (h *harness) tombstones(c *Cursor, keys []string, ks uint32, seq uint64) int {
	room := make([][]byte, h.rnd.IntN(5))
	n := c.Tombstones(room)
	for i, key := range room[:n] {
		if version, _ := h.model.at(ks, keys[i], seq); string(key) != keys[i] || version.rec.Kind != record.Tombstone {
			h.t.Fatalf("Tombstones: %.40q; %.40q is %v", key, keys[i], version.rec)
		}
	}
	return n
}

// takeInline takes pairs from a cursor that stands at the key number place, and returns how many keys are before it then.
func (h *harness) takeInline(c *Cursor, keys []string, place int, ks uint32, seq uint64) int {
	pairs := make([]record.Pair, 1+h.rnd.IntN(5))
	n, _ := c.TakeInline(pairs)
	to := len(keys)
	if c.valid {
		to = sort.SearchStrings(keys, string(c.Key()))
	}
	if to < place || n > to-place {
		h.t.Fatalf("TakeInline: %d, from key %d to %d", n, place, to)
	}
	found := 0
	for i := place; i < to; i++ {
		version, _ := h.model.at(ks, keys[i], seq)
		r := version.rec
		if r.Kind == record.Tombstone {
			continue
		}
		if found == n || r.Kind != record.Inline || r.Expiry != 0 {
			h.t.Fatalf("TakeInline passed over %.40q %v", keys[i], r)
		}
		if p := pairs[found]; string(p.Key) != keys[i] || string(p.Value) != string(r.Value) {
			h.t.Fatalf("TakeInline: %.40q %.40q; want %.40q %v", p.Key, p.Value, keys[i], r)
		}
		found++
	}
	if found != n {
		h.t.Fatalf("TakeInline: %d, and there are %d", n, found)
	}
	return to
}

func (h *harness) checkTotals() {
	var spaces []uint32
	for ks := range h.model.spaces {
		spaces = append(spaces, ks)
	}
	for _, d := range h.model.deletes {
		if !slices.Contains(spaces, d.ks) {
			spaces = append(spaces, d.ks)
		}
	}
	slices.Sort(spaces)
	if got := h.table.Keyspaces(); !slices.Equal(got, spaces) {
		h.t.Fatalf("Keyspaces() = %d; want %d", got, spaces)
	}
	if h.table.Len() != h.model.records || h.table.MaxSeq() != h.model.maxSeq || h.table.HasRanges() != (len(h.model.deletes) > 0) {
		h.t.Fatalf("Len %d, MaxSeq %d; want %d, %d", h.table.Len(), h.table.MaxSeq(), h.model.records, h.model.maxSeq)
	}
}

func (h *harness) step() {
	switch op := h.rnd.IntN(100); {
	case op < 70:
		h.put()
	case op < 72:
		h.deleteRange()
	case op < 85:
		h.checkKey()
	case op < 90:
		h.checkConflict()
	case op < 92:
		h.checkRanges()
	case op < 95:
		h.checkCursor(h.rnd.IntN(60), func() {})
	case op < 97:
		h.checkCursor(h.rnd.IntN(60), h.put)
	default:
		h.checkTotals()
	}
}

func TestAgainstModel(t *testing.T) {
	var pool Pool
	defer pool.Close()
	for style := range keyStyles {
		for round := range 4 {
			seed := rand.Uint64()
			t.Run(fmt.Sprintf("style=%d/round=%d", style, round), func(t *testing.T) {
				t.Logf("seed %d", seed)
				rnd := rand.New(rand.NewPCG(seed, 0))
				limit, steps := 1<<20, 1500
				if style == 3 {
					limit, steps = 16<<20, 300
				}
				if round == 0 {
					limit /= 40 // it fills up, and is read on
				}
				table, err := pool.New(limit) // most begin with what another one has left in its memory
				if err != nil {
					t.Fatal(err)
				}
				defer table.Free()
				h := &harness{t: t, rnd: rnd, table: table, seq: 1, model: &model{spaces: map[uint32]map[string][]modelVersion{}},
					keys: keyMaker{rnd, style, 40 << (round * 2)}, ks: []uint32{0, 7, 8, 1 << 31, 1<<32 - 1}[:1+round]}
				for range steps {
					h.step()
				}
			})
		}
	}
}
