package wal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/test/entropy"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
	"github.com/pandodb/pando/vfs/osfs"
)

var database = [16]byte{'t', 'e', 's', 't'}

const dir = "log"

// modes are the two ways in which bytes get into a segment; every test of behaviour runs with both.
var modes = []struct {
	name  string
	plain bool
}{{"mapped", false}, {"plain", true}}

func inModes(t *testing.T, test func(t *testing.T, plain bool)) {
	t.Helper()
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) { test(t, m.plain) })
	}
}

// salts gives salts that differ between all logs of a test, but are the same in every run.
var saltsMade uint64

func salts() func() uint64 {
	saltsMade++
	rng := rand.New(rand.NewPCG(saltsMade, 2))
	return rng.Uint64
}

func options(fsys vfs.FS, plain bool) Options {
	return Options{FS: fsys, Dir: dir, Database: database, SegmentBytes: MinSegmentBytes, Plain: plain, Salt: salts()}
}

func newFS(t testing.TB) *memfs.FS {
	t.Helper()
	fsys := memfs.New()
	must(t, vfs.MkdirAllSync(fsys, dir))
	return fsys
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// payload is the content of record seq: reproducible, and different for each.
func payload(seq uint64, n int) []byte {
	return entropy.Bytes(rand.New(rand.NewPCG(seq, 7)), n)
}

// history is what was appended.
type history struct {
	seqs     []uint64
	payloads [][]byte
	ends     []Position
}

func (h *history) append(t testing.TB, l *Log, n int) error {
	t.Helper()
	var last uint64
	if len(h.seqs) > 0 {
		last = h.seqs[len(h.seqs)-1]
	}
	seq := last + 1 + uint64(len(h.seqs)%3)
	p := payload(seq, n)
	end, err := l.Append(seq, p)
	if err != nil {
		return err
	}
	if end != l.Position() {
		t.Fatalf("Append returned %v, Position is %v", end, l.Position())
	}
	h.seqs, h.payloads, h.ends = append(h.seqs, seq), append(h.payloads, p), append(h.ends, end)
	return nil
}

// through is how many records lie wholly below p.
func (h *history) through(p Position) int {
	n := 0
	for n < len(h.ends) && !p.Less(h.ends[n]) {
		n++
	}
	return n
}

// replayed collects what recovery delivers.
type replayed struct {
	seqs     []uint64
	payloads [][]byte
}

func (r *replayed) add(seq uint64, payload []byte, _ bool) error {
	r.seqs, r.payloads = append(r.seqs, seq), append(r.payloads, bytes.Clone(payload))
	return nil
}

// prefixOf returns how many records of h were replayed, which must be the first ones after skip.
func (r *replayed) prefixOf(h *history, skip int) (int, error) {
	for i, seq := range r.seqs {
		if skip+i >= len(h.seqs) {
			return 0, fmt.Errorf("record %d was never appended", seq)
		}
		if seq != h.seqs[skip+i] {
			return 0, fmt.Errorf("record %d instead of %d", seq, h.seqs[skip+i])
		}
		if !bytes.Equal(r.payloads[i], h.payloads[skip+i]) {
			return 0, fmt.Errorf("record %d has another payload", seq)
		}
	}
	return len(r.seqs), nil
}

// recoverAll recovers from the position and checks that what comes is a prefix of h behind skip, and at least atLeast long.
func recoverAll(t testing.TB, o Options, from Position, h *history, skip, atLeast int) (*Log, Recovered) {
	t.Helper()
	var r replayed
	l, rec, err := Recover(o, from, r.add)
	if err != nil {
		t.Fatal(err)
	}
	n, err := r.prefixOf(h, skip)
	if err != nil {
		t.Fatal(err)
	}
	if skip+n < atLeast {
		t.Fatalf("recovered %d records, want at least %d", skip+n, atLeast)
	}
	if rec.Records != int64(n) || n > 0 && rec.LastSeq != h.seqs[skip+n-1] || rec.End != l.Position() || l.Position().Less(l.Synced()) ||
		l.Synced().Less(l.Position()) && !o.SettleLater {
		t.Fatalf("recovered %+v, delivered %d, position %v, synced %v", rec, n, l.Position(), l.Synced())
	}
	return l, rec
}

func TestAppendAndRecover(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		o := options(newFS(t), plain)
		l, err := Create(o, 1)
		must(t, err)
		var h history
		start := l.Position()
		for i, n := range []int{0, 1, 7, 8, 9, 100, 3000, 5000, 8100, 8192, 20000, 0, 100000, 3, 8128, 8129, 8127} {
			must(t, h.append(t, l, n))
			if i%3 == 0 {
				must(t, l.Sync())
			}
		}
		must(t, l.Close())
		if _, err := l.Append(1000, nil); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
		for range 3 {
			var rec Recovered
			l, rec = recoverAll(t, o, start, &h, 0, len(h.seqs))
			if rec.Cut != nil {
				t.Fatalf("cut at %v after a clean close", rec.Cut)
			}
			must(t, h.append(t, l, 500))
			must(t, l.Close())
		}
		for i := range h.ends {
			o.Seq = h.seqs[i]
			l, _ := recoverAll(t, o, h.ends[i], &h, i+1, len(h.seqs))
			must(t, l.Close())
		}
	})
}

func TestWithoutMapping(t *testing.T) {
	o := options(unmappable{newFS(t)}, false)
	l, err := Create(o, 1)
	must(t, err)
	var h history
	for range 50 {
		must(t, h.append(t, l, 700))
	}
	must(t, l.Close())
	l, _ = recoverAll(t, o, Position{Segment: 1}, &h, 0, 50)
	must(t, l.Close())
}

// unmappable is a file system that cannot map.
type unmappable struct{ vfs.FS }

type unmappableFile struct{ vfs.File }

func (unmappableFile) Map(int64) (vfs.Mapping, error) { return nil, errors.ErrUnsupported }

func (u unmappable) Create(name string) (vfs.File, error) {
	f, err := u.FS.Create(name)
	return unmappableFile{f}, err
}

func TestBounds(t *testing.T) {
	o := options(newFS(t), false)
	if _, err := Create(Options{FS: o.FS, Dir: dir, SegmentBytes: 5000}, 1); err == nil {
		t.Fatal("segment size 5000 was accepted")
	}
	if _, err := Create(o, 1<<32); err == nil {
		t.Fatal("segment number 2^32 was accepted")
	}
	l, err := Create(o, 7)
	must(t, err)
	if _, err := Create(o, 7); err == nil {
		t.Fatal("a log was created over another")
	}
	if _, err := l.Append(0, nil); err == nil {
		t.Fatal("record 0 was accepted")
	}
	if _, err := l.Append(1, make([]byte, MaxPayload+1)); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
	_, err = l.Append(2, []byte("x"))
	must(t, err)
	if _, err := l.Append(2, nil); err == nil {
		t.Fatal("record 2 was accepted twice")
	}
	if got := l.Unsynced(); got != frameHeader+8 {
		t.Fatalf("unsynced %d", got)
	}
	must(t, l.Sync())
	if l.Unsynced() != 0 || l.Synced() != l.Position() || l.Size() != frameHeader+8 {
		t.Fatalf("unsynced %d, synced %v, size %d", l.Unsynced(), l.Synced(), l.Size())
	}
	must(t, l.Close())
	if err := l.Close(); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	for _, p := range []Position{{Segment: 1 << 32}, {Segment: 7, Offset: -1}, {Segment: 7, Offset: MaxSegmentBytes + 1}, {Segment: 6}} {
		if _, err := Replay(o, p, nil); err == nil {
			t.Fatalf("position %v was accepted", p)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, m := range modes {
		b.Run(m.name, func(b *testing.B) {
			o := Options{FS: osfs.New(), Dir: b.TempDir(), Database: database, Plain: m.plain, SpareSegments: 4}
			l, err := Create(o, 1)
			must(b, err)
			p := make([]byte, 132)
			seq := uint64(0)
			cycle := func() {
				must(b, l.Sync())
				must(b, l.Recycle(l.Position()))
				must(b, l.Prepare())
			}
			// First bring files into being, so that the measured appends go into recycled ones.
			for range 400_000 {
				seq++
				if _, err := l.Append(seq, p); err != nil {
					b.Fatal(err)
				}
				if seq%100_000 == 0 {
					cycle()
				}
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				seq++
				if _, err := l.Append(seq, p); err != nil {
					b.Fatal(err)
				}
				if seq%100_000 == 0 {
					b.StopTimer()
					cycle()
					b.StartTimer()
				}
			}
			b.StopTimer()
			must(b, l.Close())
		})
	}
}

func BenchmarkRecover(b *testing.B) {
	o := Options{FS: osfs.New(), Dir: b.TempDir(), Database: database}
	l, err := Create(o, 1)
	must(b, err)
	p := make([]byte, 100)
	for seq := uint64(1); l.Size() < 64<<20; seq++ {
		if _, err := l.Append(seq, p); err != nil {
			b.Fatal(err)
		}
	}
	must(b, l.Close())
	b.SetBytes(64 << 20)
	for b.Loop() {
		if _, err := Replay(o, Position{Segment: 1}, func(uint64, []byte, bool) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
