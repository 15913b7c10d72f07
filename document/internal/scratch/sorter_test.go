package scratch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

func space(t testing.TB, fsys vfs.FS, limit int64) *Space {
	t.Helper()
	s, err := Open(fsys, "scratch", limit)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func files(t testing.TB, fsys vfs.FS) int {
	t.Helper()
	names, err := fsys.List("scratch")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return len(names)
}

type pair struct{ key, value string }

func sorted(t interface{ Fatal(...any) }, s *Sorter, records []pair) []pair {
	for _, r := range records {
		if err := s.Add([]byte(r.key), []byte(r.value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sort(); err != nil {
		t.Fatal(err)
	}
	var got []pair
	for {
		k, v, ok, err := s.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return got
		}
		got = append(got, pair{string(k), string(v)})
	}
}

// TestSorterIsAStableSort compares with a stable sort in memory, whatever the budget, the limit and the number of merges.
func TestSorterIsAStableSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fsys := memfs.New()
		s, err := Open(fsys, "scratch", 0)
		if err != nil {
			t.Fatal(err)
		}
		var records []pair
		for i := range rapid.IntRange(0, 400).Draw(t, "records") {
			key := rapid.StringMatching("[a-c]{0,10}").Draw(t, "key")
			records = append(records, pair{key, fmt.Sprintf("%d%0*d", i, rapid.IntRange(0, 60).Draw(t, "padding"), 0)})
		}
		limit := rapid.SampledFrom([]int64{0, 0, 1, 7, 100}).Draw(t, "limit")
		a := Allowance{Space: s, Memory: rapid.Int64Range(0, 20_000).Draw(t, "memory")}
		if rapid.Bool().Draw(t, "shared") {
			a.Shared = NewMemory(rapid.Int64Range(0, 10_000).Draw(t, "limit of all"), rapid.Int64Range(0, 1000).Draw(t, "own"))
		}
		s1 := NewSorter(a, limit)
		got := sorted(t, s1, records)
		slices.SortStableFunc(records, func(a, b pair) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
		if limit > 0 {
			records = records[:min(limit, int64(len(records)))]
		}
		if !slices.Equal(got, records) {
			t.Fatalf("got %v, want %v", got, records)
		}
		if err := errors.Join(s1.Close(), s1.Close()); err != nil {
			t.Fatal(err)
		}
		if names, _ := fsys.List("scratch"); len(names) != 0 || s.Used() != 0 {
			t.Fatalf("left behind: %v, %d bytes", names, s.Used())
		}
		if a.Shared != nil && a.Shared.Held() != 0 {
			t.Fatalf("%d bytes are left of the memory of all", a.Shared.Held())
		}
	})
}

func TestSorterWithoutSpaceFailsBeyondItsMemory(t *testing.T) {
	s := NewSorter(Allowance{Memory: 1000}, 0)
	var err error
	for range 100 {
		if err = s.Add([]byte("key"), []byte("value")); err != nil {
			break
		}
	}
	if !errors.Is(err, mongoerror.QueryExceededMemoryLimitNoDiskUseAllowed) {
		t.Fatal(err)
	}
}

func TestTopKNeedsMemoryForItsRecordsOnly(t *testing.T) {
	s := NewSorter(Allowance{Memory: 10_000}, 10)
	for i := range uint32(100_000) {
		if err := s.Add(binary.BigEndian.AppendUint32(nil, i*2654435761), make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamageIsAnError(t *testing.T) {
	fsys := memfs.New()
	s := NewSorter(Allowance{Space: space(t, fsys, 0), Memory: 1000}, 0)
	for i := range 1000 {
		if err := s.Add([]byte(fmt.Sprint(i)), make([]byte, 50)); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range s.runs {
		if _, err := f.f.WriteAt([]byte{0xff}, f.size/2); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sort(); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || files(t, fsys) != 0 {
		t.Fatal(err, files(t, fsys))
	}
}

func TestLimitOfTheSpace(t *testing.T) {
	fsys := memfs.New()
	sp := space(t, fsys, 10_000)
	s := NewSorter(Allowance{Space: sp, Memory: 1000}, 0)
	var err error
	for range 1000 {
		if err = s.Add([]byte("key"), make([]byte, 50)); err != nil {
			break
		}
	}
	if !errors.Is(err, vfs.ErrNoSpace) {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || sp.Used() != 0 {
		t.Fatal(err, sp.Used())
	}
}

func TestOpenRemovesWhatAKilledProcessLeft(t *testing.T) {
	fsys := memfs.New()
	tape := NewTape(Allowance{Space: space(t, fsys, 0)}, "test")
	if err := tape.Append([]byte("value")); err != nil || files(t, fsys) != 1 {
		t.Fatal(err)
	}
	if space(t, fsys, 0); files(t, fsys) != 0 {
		t.Fatal("files are left")
	}
}

// TestTape reads values back at random, from memory and from a file.
// TestDirectoryIsThereForFilesOnly: a space that nobody needed leaves no directory, and one that was needed removes it.
func TestDirectoryIsThereForFilesOnly(t *testing.T) {
	fsys := memfs.New()
	exists := func() bool { _, err := fsys.List("scratch"); return err == nil }
	s := space(t, fsys, 0)
	if exists() {
		t.Error("a directory without files")
	}
	f, err := s.create()
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if !exists() {
		t.Fatal("a file that is in use has lost its directory")
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if exists() {
		t.Error("the directory stays")
	}
	if err := fsys.MkdirAll("scratch"); err != nil {
		t.Fatal(err)
	}
	if space(t, fsys, 0).Close(); !exists() {
		t.Error("somebody else's directory was removed")
	}
}

func TestTape(t *testing.T) {
	for _, memory := range []int64{0, 50_000, 1 << 30} {
		fsys := memfs.New()
		tape := NewTape(Allowance{Space: space(t, fsys, 0), Memory: memory}, "test")
		const n = 20_000
		for i := range n {
			if err := tape.Append([]byte(fmt.Sprint(i, " is the value"))); err != nil {
				t.Fatal(err)
			}
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 1000 {
			i := r.Int64N(n)
			if r.IntN(2) == 0 {
				i = r.Int64N(3) * (n / 2) * (n - 1) / n
			}
			got, err := tape.At(i)
			if err != nil || string(got) != fmt.Sprint(i, " is the value") {
				t.Fatalf("%d: %q %v", i, got, err)
			}
		}
		if tape.Len() != n {
			t.Fatal(tape.Len())
		}
		if err := errors.Join(tape.Close(), tape.Close()); err != nil || files(t, fsys) != 0 {
			t.Fatal(err)
		}
	}
	if err := NewTape(Allowance{Memory: 10}, "test").Append(make([]byte, 100)); !errors.Is(err, mongoerror.QueryExceededMemoryLimitNoDiskUseAllowed) {
		t.Fatal(err)
	}
}

func BenchmarkSorter(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, 200)
	for b.Loop() {
		s := NewSorter(Allowance{Memory: 1 << 30}, 0)
		for range 100_000 {
			if err := s.Add(binary.BigEndian.AppendUint64(nil, r.Uint64()), value); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Sort(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/record")
}
