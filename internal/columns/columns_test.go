package columns

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/internal/pageformat"
)

// pair is an entry of a page; a page's keys need not be in order here.
type pair struct {
	key, value string
	flags      uint64
	expiry     uint64
}

// pageOf makes a page as package page does, which lies above this one.
func pageOf(prefix string, pairs []pair) []byte {
	b := pageformat.AppendHead(nil, len(pairs), []byte(prefix))
	for _, p := range pairs {
		b = pageformat.AppendLengths(b, len(p.key), uint64(len(p.value))<<pageformat.FlagBits|p.flags, p.expiry)
		b = append(append(b, p.key...), p.value...)
	}
	return b
}

// pages returns pages of all sorts.
func pages() map[string][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	make := func(n int, fn func(i int) pair) []byte {
		list := []pair{}
		for i := range n {
			list = append(list, fn(i))
		}
		return pageOf("users/", list)
	}
	word := func(n int) string {
		b := []byte{}
		for range n {
			b = append(b, byte('a'+rng.IntN(6)))
		}
		return string(b)
	}
	return map[string][]byte{
		"counters": make(3000, func(i int) pair {
			return pair{key: string(binary.BigEndian.AppendUint32(nil, uint32(i*3))), value: fmt.Sprintf("%c%04d%s", 'a'+rng.IntN(5), i, word(3))}
		}),
		"classes": make(2000, func(i int) pair { return pair{key: fmt.Sprint(i), value: word(i % 7)} }),
		"rest": make(2000, func(i int) pair {
			if i%10 == 0 {
				return pair{key: fmt.Sprintf("%05d", i), value: word(rng.IntN(300))}
			}
			if i%31 == 0 {
				return pair{key: fmt.Sprintf("%05d", i), value: "x", flags: pageformat.FlagExpiry, expiry: uint64(i) << 20}
			}
			return pair{key: fmt.Sprintf("%05d", i), value: "constant" + word(2), flags: uint64(i % 2)}
		}),
		"copies": make(1000, func(i int) pair {
			id := fmt.Sprintf("%016x", rng.Uint64())
			return pair{key: id, value: "(" + id + ")" + word(i%2*5) + id[:4]}
		}),
		"constant": make(1000, func(int) pair { return pair{key: "key", value: string(bytes.Repeat([]byte("v"), 100))} }),
		"noise": make(500, func(int) pair {
			return pair{key: string(binary.LittleEndian.AppendUint64(nil, rng.Uint64())), value: string(binary.LittleEndian.AppendUint64(nil, rng.Uint64()))}
		}),
		"no bytes":   make(300, func(int) pair { return pair{} }),
		"tombstones": make(300, func(i int) pair { return pair{key: fmt.Sprintf("%05d", i), flags: 4} }),
		"steps":      make(256, func(i int) pair { return pair{key: string([]byte{byte(i), byte(i / 2), byte(255 - i)})} }),
		"skewed": make(5000, func(int) pair {
			v := "no"
			if rng.IntN(40) == 0 {
				v = "ye"
			}
			return pair{key: "k", value: v}
		}),
		"sparse": make(2000, func(i int) pair {
			v := []byte{'a', 0, byte(i / 700)}
			if i%333 == 40 || i == 1999 {
				v[0], v[1] = byte(i), 1
			}
			return pair{key: "k", value: string(v)}
		}),
	}
}

func TestPagesComeBack(t *testing.T) {
	var c Coder
	for name, page := range pages() {
		t.Run(name, func(t *testing.T) {
			cols, rest, ok := c.Split([]byte("before"), []byte("rest"), page)
			if !ok {
				t.Fatal("not split")
			}
			cols, isCols := bytes.CutPrefix(cols, []byte("before"))
			rest, isRest := bytes.CutPrefix(rest, []byte("rest"))
			if !isCols || !isRest {
				t.Fatal("what was there is gone")
			}
			if len(cols)+len(rest) > len(page)+len(page)/50+100 {
				t.Errorf("%d bytes and a rest of %d for a page of %d", len(cols), len(rest), len(page))
			}
			back := make([]byte, len(page))
			if err := c.Decode(back, cols, rest); err != nil || !bytes.Equal(back, page) {
				t.Fatalf("came back changed: %v", err)
			}
			for _, n := range []int{0, 1, len(page) - 1, len(page) + 1} {
				if c.Decode(make([]byte, n), cols, rest) == nil {
					t.Errorf("decoded into %d bytes", n)
				}
			}
		})
	}
}

// A column of counters takes a few bytes, and one of few values what their entropy is.
func TestColumnsShrink(t *testing.T) {
	var c Coder
	for name, most := range map[string]int{"counters": 3000 * 2, "constant": 130, "copies": 1000 * 12, "steps": 60, "skewed": 5000 / 4, "sparse": 120, "no bytes": 20} {
		cols, rest, ok := c.Split(nil, nil, pages()[name])
		if !ok || len(rest) > 0 || len(cols) > most {
			t.Errorf("%s: %d bytes, want at most %d; rest of %d", name, len(cols), most, len(rest))
		}
	}
}

func TestWhatIsNotSplit(t *testing.T) {
	var c Coder
	few := pageOf("", make([]pair, minEntries-1))
	var motley []pair
	for i := range 200 {
		motley = append(motley, pair{value: string(make([]byte, i))})
	}
	whole := pageOf("p", make([]pair, 100))
	for name, page := range map[string][]byte{
		"nothing": nil, "few entries": few, "no two of one length": pageOf("", motley), "cut short": whole[:len(whole)-1],
		"too long": append(whole[:len(whole):len(whole)], 0), "a long form of a number": append([]byte{0xe4, 0x80, 0}, whole[1:]...),
	} {
		if cols, rest, ok := c.Split([]byte("a"), []byte("b"), page); ok || string(cols) != "a" || string(rest) != "b" {
			t.Errorf("%s: split", name)
		}
	}
}

// Every byte of the columns counts, or changes nothing: Decode gives the page, another one, or an error, and never more.
func FuzzDecode(f *testing.F) {
	var c Coder
	for _, page := range pages() {
		cols, rest, _ := c.Split(nil, nil, page)
		f.Add(cols, rest, len(page))
	}
	f.Fuzz(func(t *testing.T, cols, rest []byte, n int) {
		if n < 0 || n > 1<<18 {
			return
		}
		var c Coder
		_ = c.Decode(make([]byte, n), cols, rest)
	})
}

// FuzzSplit: whatever is split comes back.
func FuzzSplit(f *testing.F) {
	for _, page := range pages() {
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		var c Coder
		cols, rest, ok := c.Split(nil, nil, page)
		if !ok {
			return
		}
		back := make([]byte, len(page))
		if err := c.Decode(back, cols, rest); err != nil || !bytes.Equal(back, page) {
			t.Fatalf("came back changed: %v", err)
		}
	})
}

func BenchmarkSplit(b *testing.B) {
	var c Coder
	page := pages()["counters"]
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	var cols, rest []byte
	for b.Loop() {
		cols, rest, _ = c.Split(cols[:0], rest[:0], page)
	}
}

func BenchmarkDecode(b *testing.B) {
	var c Coder
	page := pages()["counters"]
	cols, rest, _ := c.Split(nil, nil, page)
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Decode(page, cols, rest); err != nil {
			b.Fatal(err)
		}
	}
}
