package pageformat_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/pageformat"
)

// entry is what a test puts into a page.
type entry struct {
	suffix, value string
	flags, expiry uint64
}

// entries are of every kind that there is.
func entries() []entry {
	return []entry{
		{},
		{suffix: "a", value: "one byte for each length"},
		{suffix: "b", value: strings.Repeat("two bytes for the second ", 20)},
		{suffix: strings.Repeat("c", 127), value: strings.Repeat("v", 2047)},
		{suffix: strings.Repeat("d", 128), value: "two bytes for the first"},
		{suffix: "e", value: strings.Repeat("v", 2048)},
		{suffix: "f", value: "elsewhere", flags: pageformat.FlagApart},
		{suffix: "g", value: "till then", flags: pageformat.FlagExpiry, expiry: 1},
		{suffix: "h", flags: pageformat.FlagApart | pageformat.FlagExpiry, expiry: math.MaxUint64},
		{suffix: "i", flags: pageformat.FlagTombstone},
	}
}

// build makes a page.
func build(prefix string, list []entry) []byte {
	raw := pageformat.AppendHead(nil, len(list), []byte(prefix))
	for _, e := range list {
		raw = pageformat.AppendLengths(raw, len(e.suffix), uint64(len(e.value))<<pageformat.FlagBits|e.flags, e.expiry)
		raw = append(append(raw, e.suffix...), e.value...)
	}
	return raw
}

func TestWhatIsAppendedIsFound(t *testing.T) {
	const prefix = "what all begin with"
	raw := build(prefix, entries())
	h, ok := pageformat.ParseHead(raw)
	if !ok || h.Count != uint64(len(entries())) || string(raw[h.Size-h.Prefix:h.Size]) != prefix || !h.Shortest() {
		t.Fatalf("head %+v, %v", h, ok)
	}
	at := h.Size
	for i, want := range entries() {
		e, ok := pageformat.ParseEntry(raw, at)
		if !ok || string(raw[e.Suffix:e.Value]) != want.suffix || string(raw[e.Value:e.End()]) != want.value {
			t.Fatalf("entry %d: %+v, %v", i, e, ok)
		}
		if e.Expiry != want.expiry || e.Meta != uint64(len(want.value))<<pageformat.FlagBits|want.flags || !e.Shortest(at) {
			t.Errorf("entry %d: %+v", i, e)
		}
		at = e.End()
	}
	if at != len(raw) {
		t.Errorf("entries end at %d of %d bytes", at, len(raw))
	}
}

// TestCommonEntries: which entries ParseCommon takes, and that a suffix longer than wanted is none of them.
func TestCommonEntries(t *testing.T) {
	for i, e := range entries() {
		raw := append(build("", []entry{e}), "what follows"...)
		suffix, value, end := pageformat.ParseCommon(raw, 2, math.MaxInt)
		common := len(e.suffix) < 128 && len(e.value) < 2048 && e.flags&^pageformat.FlagApart == 0
		if (end != 0) != common {
			t.Errorf("entry %d: common is %v", i, end != 0)
		}
		if common && (string(raw[suffix:value]) != e.suffix || string(raw[value:end]) != e.value) {
			t.Errorf("entry %d lies at %d, %d, %d", i, suffix, value, end)
		}
		if _, _, end := pageformat.ParseCommon(raw, 2, len(e.suffix)-1); end != 0 {
			t.Errorf("entry %d: a suffix of %d bytes is not too long", i, len(e.suffix))
		}
	}
}

// TestWhatMakesNoSense: lengths that are cut, that reach past the end, and that are too large for a number.
func TestWhatMakesNoSense(t *testing.T) {
	huge := binary.AppendUvarint(nil, math.MaxUint64)
	overflow := bytes.Repeat([]byte{0xff}, 11)
	for name, raw := range map[string][]byte{
		"nothing": nil, "count only": {1}, "a count cut short": {0x80}, "no prefix": {1, 1}, "a huge prefix": append([]byte{1}, huge...),
		"a count beyond a number": overflow, "a prefix beyond a number": append([]byte{1}, overflow...),
	} {
		if h, ok := pageformat.ParseHead(raw); ok {
			t.Errorf("%s: head %+v", name, h)
		}
	}
	for name, raw := range map[string][]byte{
		"nothing": nil, "one length": {0}, "a length cut short": {0, 0x80}, "no expiry": {0, pageformat.FlagExpiry},
		"no suffix": {1, 0}, "no value": {0, 1 << pageformat.FlagBits}, "a huge suffix": append(bytes.Clone(huge), 0, 0),
		"a huge value": append([]byte{0}, huge...), "a huge suffix and a huge value": append(bytes.Clone(huge), huge...),
		"a suffix beyond a number": overflow, "an expiry beyond a number": append([]byte{0, pageformat.FlagExpiry}, overflow...),
	} {
		if e, ok := pageformat.ParseEntry(raw, 0); ok {
			t.Errorf("%s: entry %+v", name, e)
		}
		if _, _, end := pageformat.ParseCommon(raw, 0, math.MaxInt); end != 0 {
			t.Errorf("%s: an entry of the common kind", name)
		}
	}
}

func TestShortest(t *testing.T) {
	long := []byte{0x81, 0} // 1, in two bytes
	if h, ok := pageformat.ParseHead(append(bytes.Clone(long), 0)); !ok || h.Count != 1 || h.Shortest() {
		t.Errorf("a long count: %+v, %v", h, ok)
	}
	if h, ok := pageformat.ParseHead(append([]byte{0}, 0x81, 0, 'p')); !ok || h.Prefix != 1 || h.Shortest() {
		t.Errorf("a long length of the prefix: %+v, %v", h, ok)
	}
	for name, raw := range map[string][]byte{
		"suffix": {0x81, 0, 0, 's'}, "value": {0, 0x88, 0, 'v'}, "expiry": {0, pageformat.FlagExpiry, 0x81, 0},
	} {
		if e, ok := pageformat.ParseEntry(raw, 0); !ok || e.End() != len(raw) || e.Shortest(0) {
			t.Errorf("a long number for the %s: %+v, %v", name, e, ok)
		}
	}
	for _, v := range []uint64{0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 1<<63 - 1, 1 << 63, math.MaxUint64} {
		if n := pageformat.UvarintLen(v); n != len(binary.AppendUvarint(nil, v)) {
			t.Errorf("%d takes %d bytes", v, n)
		}
	}
}

func TestFirstFourOrdersLikeTheBytes(t *testing.T) {
	sorted := []string{"", "\x00\x01", "a", "a\x01", "ab", "abc", "abcd", "abce", "b", "\xff\xff\xff\xff"}
	for i := range sorted[1:] {
		if a, b := pageformat.FirstFour([]byte(sorted[i])), pageformat.FirstFour([]byte(sorted[i+1])); a >= b {
			t.Errorf("%q is %08x, %q %08x", sorted[i], a, sorted[i+1], b)
		}
	}
	if pageformat.FirstFour([]byte("abcd")) != pageformat.FirstFour([]byte("abcdefg")) {
		t.Error("bytes behind the fourth count")
	}
}

// FuzzParse reads what may be anything: what is found lies in it, the entry of the common kind is the entry, and what takes as
// few bytes as it can is appended as it was.
func FuzzParse(f *testing.F) {
	f.Add(build("prefix", entries()))
	f.Add(build("", nil))
	f.Add([]byte{0xff, 0xff, 0xff, 0x7f, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, ok := pageformat.ParseHead(raw)
		if !ok {
			return
		}
		if h.Prefix < 0 || h.Size < h.Prefix+2 || h.Size > len(raw) {
			t.Fatalf("head %+v in %d bytes", h, len(raw))
		}
		if h.Shortest() && h.Count <= math.MaxInt {
			if got := pageformat.AppendHead(nil, int(h.Count), raw[h.Size-h.Prefix:h.Size]); !bytes.Equal(got, raw[:h.Size]) {
				t.Fatalf("head % x, appended % x", raw[:h.Size], got)
			}
		}
		for at := h.Size; ; {
			e, ok := pageformat.ParseEntry(raw, at)
			suffix, value, end := pageformat.ParseCommon(raw, at, math.MaxInt)
			if end != 0 && (!ok || suffix != e.Suffix || value != e.Value || end != e.End()) {
				t.Fatalf("at %d: common %d, %d, %d; entry %+v, %v", at, suffix, value, end, e, ok)
			}
			if !ok {
				return
			}
			if e.Suffix < at+2 || e.Value < e.Suffix || e.End() < e.Value || e.End() > len(raw) {
				t.Fatalf("at %d: %+v in %d bytes", at, e, len(raw))
			}
			if noExpiry := e.Meta&pageformat.FlagExpiry == 0; e.Shortest(at) && noExpiry == (e.Expiry == 0) {
				if got := pageformat.AppendLengths(nil, e.Value-e.Suffix, e.Meta, e.Expiry); !bytes.Equal(got, raw[at:e.Suffix]) {
					t.Fatalf("lengths % x, appended % x", raw[at:e.Suffix], got)
				}
			}
			at = e.End()
		}
	})
}

func BenchmarkParse(b *testing.B) {
	const n = 64
	raw := build("key/", make([]entry, n))
	for _, parse := range []struct {
		name string
		next func(at int) int
	}{
		{"common", func(at int) int { _, _, end := pageformat.ParseCommon(raw, at, 100); return end }},
		{"entry", func(at int) int { e, _ := pageformat.ParseEntry(raw, at); return e.End() }},
	} {
		b.Run(parse.name, func(b *testing.B) {
			h, _ := pageformat.ParseHead(raw)
			for b.Loop() {
				at := h.Size
				for range n - 1 {
					at = parse.next(at)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*(n-1)), "ns/entry")
		})
	}
}
