package main

import (
	"bytes"
	"testing"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "12B": 12, "64MiB": 64 << 20, "64mib": 64 << 20, "1.5K": 1536, "2 GB": 2e9, "1TiB": 1 << 40,
	} {
		var s sizeFlag
		if err := s.Set(text); err != nil || int64(s) != want {
			t.Errorf("%s: %d, %v, want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "MiB", "1e30", "NaN", "inf", "12XB", "9999999TiB"} {
		var s sizeFlag
		if s.Set(text) == nil {
			t.Errorf("%q was taken for %d", text, s)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 64 << 20: "64.0 MiB", 1 << 40: "1.0 TiB"} {
		if got := formatSize(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 336776: "336,776", -1234567: "-1,234,567", -100: "-100"} {
		if got := formatCount(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
}

func TestPrefixEnd(t *testing.T) {
	for p, want := range map[string]string{"": "", "a": "b", "a\xff": "b", "\xff\xff": "", "a\xffb": "a\xffc", "\x00": "\x01"} {
		got := prefixEnd([]byte(p))
		if string(got) != want || (got == nil) != (want == "") {
			t.Errorf("keys with prefix %q end before %q, want %q", p, got, want)
		}
	}
	before := []byte("a\xff")
	prefixEnd(before)
	if !bytes.Equal(before, []byte("a\xff")) {
		t.Error("the prefix was changed")
	}
}

// A share of much is no larger than that, and not negative.
func TestShares(t *testing.T) {
	for _, c := range []struct{ whole, done, total, want int64 }{
		{0, 0, 0, 0}, {100, 1, 2, 50}, {100, 2, 2, 100}, {1 << 40, 1 << 39, 1 << 40, 1 << 39}, {8 << 40, 3 << 40, 4 << 40, 6 << 40}, {5, 5, 0, 25},
	} {
		if got := shareOf(c.whole, c.done, c.total); got != c.want {
			t.Errorf("%d of %d of %d is %d, want %d", c.done, c.total, c.whole, got, c.want)
		}
	}
}

// FuzzSize: no text makes a size negative, or its parser panic.
func FuzzSize(f *testing.F) {
	f.Add("1.5GiB")
	f.Fuzz(func(t *testing.T, text string) {
		var s sizeFlag
		if err := s.Set(text); err == nil && s < 0 {
			t.Errorf("%q is %d", text, s)
		}
	})
}
