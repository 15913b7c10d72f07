package train

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// coders returns an encoder of a level and a decoder with a dictionary.
func coders(t *testing.T, level zstd.EncoderLevel, dictionary []byte) (*zstd.Encoder, *zstd.Decoder) {
	t.Helper()
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithEncoderDict(dictionary))
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderDicts(dictionary))
	if err != nil {
		t.Fatal(err)
	}
	return e, d
}

// packed returns how many bytes payloads take with a dictionary, and fails the test where one is not what comes out again.
func packed(t *testing.T, level zstd.EncoderLevel, dictionary []byte, payloads [][]byte) (n int) {
	t.Helper()
	e, d := coders(t, level, dictionary)
	for i, p := range payloads {
		frame := e.EncodeAll(p, nil)
		if got, err := d.DecodeAll(frame, nil); err != nil || !bytes.Equal(got, p) {
			t.Fatalf("payload %d of %d bytes came back as %d bytes, %v", i, len(p), len(got), err)
		}
		n += len(frame)
	}
	return n
}

// pages returns payloads of about n bytes, of records that have the names of their fields and some of the values in common.
func pages(rng *rand.Rand, count, n int) (list [][]byte) {
	words := make([]string, 300)
	for i := range words {
		words[i] = fmt.Sprintf("%x", rng.Uint64N(1<<(8+i%32)))
	}
	for range count {
		var page []byte
		for len(page) < n {
			page = fmt.Appendf(page, `{"_id":%d,"section":"%s","depends":["%s","%s"],"installedKiB":%d}`, rng.Uint32(), words[rng.IntN(20)],
				words[rng.IntN(300)], words[rng.IntN(300)], rng.IntN(10_000))
		}
		list = append(list, page)
	}
	return list
}

// What payloads have in common need not be in each of them: of those that were no samples too the dictionary takes a fifth off.
func TestDictionaryShrinksWhatIsLikeItsSamples(t *testing.T) {
	list := pages(rand.New(rand.NewPCG(1, 2)), 300, 3000)
	samples, others := list[:200], list[200:]
	dictionary := Dictionary(samples, 16<<10, 100_000)
	if dictionary == nil || len(dictionary) > 16<<10+1<<10 {
		t.Fatalf("a dictionary of %d bytes", len(dictionary))
	}
	for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault} {
		without := compressed(others)
		if with := packed(t, level, dictionary, others); with > without-without/5 {
			t.Errorf("%v: %d bytes with the dictionary, %d without", level, with, without)
		}
	}
}

func TestTheSameSamplesMakeTheSameDictionary(t *testing.T) {
	samples := pages(rand.New(rand.NewPCG(3, 4)), 100, 2000)
	before := make([][]byte, len(samples))
	for i := range samples {
		before[i] = bytes.Clone(samples[i])
	}
	first, second := Dictionary(samples, 8<<10, 1000), Dictionary(samples, 8<<10, 1000)
	if first == nil || !bytes.Equal(first, second) {
		t.Errorf("dictionaries of %d and %d bytes", len(first), len(second))
	}
	for i := range samples {
		if !bytes.Equal(samples[i], before[i]) {
			t.Fatalf("sample %d has been changed", i)
		}
	}
}

func TestSamplesThatMakeNoDictionary(t *testing.T) {
	chacha := rand.NewChaCha8([32]byte{5})
	noise := make([][]byte, 50)
	for i := range noise {
		noise[i] = make([]byte, 2000)
		_, _ = chacha.Read(noise[i])
	}
	alike := pages(rand.New(rand.NewPCG(7, 8)), 50, 2000)
	zeros := make([][]byte, 50)
	for i := range zeros {
		zeros[i] = make([]byte, 2000)
	}
	for _, c := range []struct {
		name    string
		samples [][]byte
		size    int
	}{
		{"none", nil, 8 << 10},
		{"one", alike[:1], 8 << 10},
		{"of no bytes", make([][]byte, 50), 8 << 10},
		{"of few bytes", [][]byte{[]byte("short"), []byte("shorter"), []byte("short")}, 8 << 10},
		{"of noise", noise, 8 << 10},
		{"of zeros", zeros, 8 << 10},
		{"for a dictionary of no size", alike, 0},
		{"for a dictionary of few bytes", alike, leastContent - 1},
	} {
		if d := Dictionary(c.samples, c.size, 1000); d != nil {
			t.Errorf("samples %s: a dictionary of %d bytes", c.name, len(d))
		}
	}
}

func BenchmarkDictionary(b *testing.B) {
	samples := pages(rand.New(rand.NewPCG(11, 12)), 256, 8<<10)
	b.ReportAllocs()
	for b.Loop() {
		if Dictionary(samples, 64<<10, 10_000) == nil {
			b.Fatal("no dictionary")
		}
	}
}

// Whatever the samples are, what comes of them is a dictionary that brings back what was compressed with it, or none.
func FuzzDictionary(f *testing.F) {
	for _, seed := range pages(rand.New(rand.NewPCG(9, 10)), 3, 4000) {
		f.Add(seed, uint16(300), uint16(2000))
	}
	f.Add(bytes.Repeat([]byte("one thing after the other, "), 300), uint16(100), uint16(1000))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 0, 0, 0, 0, 1}, 1000), uint16(64), uint16(400))
	f.Add([]byte("\x37\xa4\x30\xec"), uint16(1), uint16(256))
	f.Fuzz(func(t *testing.T, raw []byte, each, size uint16) {
		if len(raw) > 16<<10 {
			return
		}
		var samples [][]byte
		for n := max(1, int(each)); len(raw) > 0 && len(samples) < 200; raw = raw[min(n, len(raw)):] {
			samples = append(samples, raw[:min(n, len(raw))])
		}
		dictionary := Dictionary(samples, int(size), 1000)
		if dictionary == nil {
			return
		}
		for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault} {
			packed(t, level, dictionary, samples)
			packed(t, level, dictionary, [][]byte{nil, []byte("something else"), raw})
		}
	})
}
