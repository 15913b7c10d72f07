package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/osfs"
)

// readAll reads everything from a sequence number on.
func readAll(t testing.TB, l *Log, fromSeq uint64) replayed {
	t.Helper()
	r, err := l.NewReader(fromSeq)
	must(t, err)
	defer func() { must(t, r.Close()) }()
	var got replayed
	for {
		seq, p, err := r.Next()
		if err == io.EOF {
			return got
		}
		must(t, err)
		must(t, got.add(seq, p, false))
	}
}

// checkReaders reads from every sequence number that is still there; those before it are refused.
func checkReaders(t *testing.T, l *Log, h *history) {
	t.Helper()
	_, oldest := l.Oldest()
	last := h.seqs[len(h.seqs)-1]
	for from := uint64(0); from <= last+2; from++ {
		if from < oldest && !(from == 0 && oldest == 1) {
			if _, err := l.NewReader(from); !errors.Is(err, ErrRecycled) {
				t.Fatalf("read from %d, oldest is %d: %v", from, oldest, err)
			}
			continue
		}
		got := readAll(t, l, from)
		skip := 0
		for skip < len(h.seqs) && h.seqs[skip] < from {
			skip++
		}
		n, err := got.prefixOf(h, skip)
		if err != nil || skip+n != len(h.seqs) {
			t.Fatalf("read from %d: %d records behind %d of %d: %v", from, n, skip, len(h.seqs), err)
		}
	}
	r, err := l.NewOldestReader()
	must(t, err)
	if r.from != oldest {
		t.Fatalf("the reader of the oldest reads from %d, oldest is %d", r.from, oldest)
	}
	must(t, r.Close())
}

func TestReader(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		o := options(newFS(t), plain)
		o.KeepBytes = 30000
		l, err := Create(o, 1)
		must(t, err)
		var h history
		from, settled := Position{Segment: 1}, 0
		for i := range 40 {
			must(t, h.append(t, l, []int{10, 3000, 9000, 0, 25000, 100}[i%6]))
			switch {
			case i%10 == 9:
				settled = len(h.seqs) - 2
				from = h.ends[settled-1]
				must(t, l.Recycle(from))
			case i%13 == 12:
				must(t, l.Shrink())
			case i%7 == 6:
				must(t, l.Close())
				o.Seq = 0
				if settled > 0 {
					o.Seq = h.seqs[settled-1]
				}
				l, _ = recoverAll(t, o, from, &h, settled, len(h.seqs))
			}
			if i%4 == 0 {
				checkReaders(t, l, &h)
			}
		}
		if _, oldest := l.Oldest(); oldest == 1 || oldest > h.seqs[settled-1] {
			t.Fatalf("oldest is %d, %d records have settled", oldest, h.seqs[settled-1])
		}
		if l.Size() < o.KeepBytes {
			t.Fatalf("only %d bytes are kept", l.Size())
		}
		must(t, l.Close())
	})
}

// A reader that is left behind keeps the segment that it is in, and is told when it wants the next one.
func TestReaderIsLeftBehind(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		o := options(newFS(t), plain)
		o.SpareSegments = -1
		l, err := Create(o, 1)
		must(t, err)
		var h history
		must(t, h.append(t, l, 3000))
		must(t, h.append(t, l, 3000))
		r, err := l.NewReader(1)
		must(t, err)
		seq, _, err := r.Next()
		must(t, err)
		if seq != h.seqs[0] {
			t.Fatalf("record %d", seq)
		}
		for range 20 {
			must(t, h.append(t, l, 5000))
			must(t, l.Recycle(l.Position()))
		}
		_, p, err := r.Next()
		must(t, err)
		if !bytes.Equal(p, h.payloads[1]) {
			t.Fatal("the pinned segment was overwritten")
		}
		if _, _, err := r.Next(); !errors.Is(err, ErrRecycled) {
			t.Fatal(err)
		}
		names, err := o.FS.List(dir)
		must(t, err)
		must(t, r.Close())
		must(t, r.Close())
		if _, _, err := r.Next(); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
		after, err := o.FS.List(dir)
		must(t, err)
		if len(after) >= len(names) {
			t.Fatalf("closing the reader freed nothing: %v, %v", names, after)
		}
		must(t, l.Close())
	})
}

// The same of a reader that came to its segment from an earlier one.
func TestReaderKeepsTheSegmentThatItHasComeTo(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		o := options(newFS(t), plain)
		o.SegmentBytes, o.SpareSegments = 16*MinSegmentBytes, 1 // more than a reader reads at once, and written again
		l, err := Create(o, 1)
		must(t, err)
		var h history
		for range 19 { // most of the second segment
			must(t, h.append(t, l, 3*MinSegmentBytes/2))
		}
		r, err := l.NewReader(1)
		must(t, err)
		read := 0
		for first := r.segment; r.segment == first; read++ {
			_, _, err = r.Next()
			must(t, err)
		}
		for range 100 {
			must(t, h.append(t, l, MinSegmentBytes))
			must(t, l.Recycle(l.Position()))
		}
		for here := r.segment; r.segment == here; read++ {
			_, p, err := r.Next()
			if errors.Is(err, ErrRecycled) {
				break
			}
			must(t, err)
			if !bytes.Equal(p, h.payloads[read]) {
				t.Fatalf("record %d is not what was written", read)
			}
		}
		if read < 15 {
			t.Fatalf("only %d records were read", read)
		}
		must(t, r.Close())
		must(t, l.Close())
	})
}

// A record that begins in a segment of its own, since the one before is full, can be read from there, however many segments it goes on for.
func TestReaderOfARecordThatBeginsASegment(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		l, err := Create(options(newFS(t), plain), 1)
		must(t, err)
		var h history
		must(t, h.append(t, l, 100))
		must(t, h.append(t, l, int(l.limit-l.offset-frameHeader))) // to the last byte
		full := l.Position()
		for range 3 {
			must(t, h.append(t, l, 3*MinSegmentBytes))
		}
		must(t, l.Recycle(Position{Segment: full.Segment + 1}))
		if at, oldest := l.Oldest(); at.Segment != full.Segment+1 || oldest != h.seqs[1]+1 {
			t.Errorf("oldest is %d at %v, want what comes behind %d in segment %d", oldest, at, h.seqs[1], full.Segment+1)
		}
		checkReaders(t, l, &h)
		must(t, l.Close())
	})
}

func TestReaderLimit(t *testing.T) {
	l, err := Create(options(newFS(t), false), 1)
	must(t, err)
	r, err := l.NewReader(0)
	must(t, err)
	if _, _, err := r.Next(); err != io.EOF {
		t.Fatal(err)
	}
	var h history
	for _, n := range []int{10, 20000, 10} {
		must(t, h.append(t, l, n))
	}
	for i, seq := range h.seqs {
		r.Limit(seq - 1)
		if _, _, err := r.Next(); err != io.EOF {
			t.Fatalf("record above the limit %d: %v", seq-1, err)
		}
		r.Limit(seq)
		got, p, err := r.Next()
		if err != nil || got != seq || !bytes.Equal(p, h.payloads[i]) {
			t.Fatalf("record %d: %d, %v", seq, got, err)
		}
	}
	must(t, l.Close())
	if _, _, err := r.Next(); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if _, err := l.NewReader(1); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if _, err := l.NewOldestReader(); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	must(t, r.Close())
}

// One goroutine appends; others sync, prepare, recycle and read meanwhile.
func TestConcurrency(t *testing.T) {
	for _, fsys := range []struct {
		name string
		vfs.FS
		dir string
	}{{"memfs", newFS(t), dir}, {"osfs", osfs.New(), t.TempDir()}} {
		for _, m := range modes {
			t.Run(fsys.name+"/"+m.name, func(t *testing.T) {
				o := options(fsys, m.plain)
				o.Dir = fsys.dir + "/" + m.name
				o.KeepBytes = 1 << 20
				must(t, vfs.MkdirAllSync(fsys, o.Dir))
				runConcurrently(t, o)
			})
		}
	}
}

func runConcurrently(t *testing.T, o Options) {
	l, err := Create(o, 1)
	must(t, err)
	const records = 800
	done := make(chan struct{})
	var group sync.WaitGroup
	background := func(step func() error) {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := step(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	background(l.Sync)
	background(l.Prepare)
	background(func() error {
		synced := l.Synced() // before Position, which goes on growing
		if l.Unsynced() < 0 || l.Size() < 0 || l.Position().Less(synced) {
			return fmt.Errorf("unsynced %d, size %d", l.Unsynced(), l.Size())
		}
		return l.Recycle(l.Synced())
	})
	group.Go(func() {
		if err := follow(l, records); err != nil {
			t.Error(err)
		}
	})
	for seq := uint64(1); seq <= records; seq++ {
		if _, err := l.Append(seq, payload(seq, int(seq*7%600))); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	group.Wait()
	must(t, l.Close())
}

// follow reads record after record; where it is left behind, it starts again at the oldest.
func follow(l *Log, last uint64) error {
	r, err := l.NewReader(1)
	for next := uint64(1); next <= last; {
		var seq uint64
		var p []byte
		if err == nil {
			seq, p, err = r.Next()
		}
		switch {
		case err == io.EOF:
			err = nil
		case errors.Is(err, ErrRecycled):
			if r != nil {
				if err := r.Close(); err != nil {
					return err
				}
			}
			if r, err = l.NewOldestReader(); err != nil {
				return err // it cannot come too late
			}
			next = r.from
		case err != nil:
			return err
		case seq != next || !bytes.Equal(p, payload(seq, int(seq*7%600))):
			return fmt.Errorf("record %d, want %d", seq, next)
		default:
			next++
		}
	}
	return r.Close()
}

// A database may go on without its log and come back. What it did meanwhile the log does not have: whoever asks for it is told, and does
// not get what came afterwards in its place.
func TestReaderMeetsWhatTheLogNeverHad(t *testing.T) {
	const without = 1000 // the last command that the log does not have
	inModes(t, func(t *testing.T, plain bool) {
		for _, reopened := range []bool{false, true} {
			o := options(newFS(t), plain)
			o.KeepBytes = 1 << 20
			l, err := Create(o, 1)
			must(t, err)
			for seq := range uint64(5) {
				_, err := l.Append(seq+1, payload(seq, 100))
				must(t, err)
			}
			end := l.Position()
			must(t, l.Close())
			o.Seq = without
			l, _, err = Recover(o, end, (&replayed{}).add)
			must(t, err)
			if _, oldest := l.Oldest(); oldest != without+1 {
				t.Errorf("the oldest is %d", oldest)
			}
			_, err = l.Append(without+1, nil)
			must(t, err)
			if reopened {
				end = l.Position()
				must(t, l.Close())
				o.Seq = without + 1
				l, _, err = Recover(o, end, (&replayed{}).add)
				must(t, err)
				_, err = l.Append(without+2, nil)
				must(t, err)
			}
			for from := uint64(1); from <= without+1; from += 3 {
				if err := readFrom(l, from); (err != nil) != (from <= without) || err != nil && !errors.Is(err, ErrRecycled) {
					t.Errorf("reopened %v, from %d: %v", reopened, from, err)
				}
			}
			must(t, l.Close())
		}
	})
}

// A reader goes on behind a segment whose file cannot be removed when he leaves it.
func TestReaderLeavesAFileThatCannotBeRemoved(t *testing.T) {
	inModes(t, func(t *testing.T, plain bool) {
		faults := faultfs.New(newFS(t))
		o := options(faults, plain)
		o.SpareSegments = -1
		l, err := Create(o, 1)
		must(t, err)
		var h history
		must(t, h.append(t, l, 9000))
		r, err := l.NewReader(1)
		must(t, err)
		for range 6 {
			must(t, h.append(t, l, 9000))
		}
		must(t, l.Sync())
		must(t, l.Recycle(Position{Segment: 2})) // the reader is in the first one still
		faults.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpRemove), Times: -1})
		for i := range h.seqs {
			if seq, _, err := r.Next(); err != nil || seq != h.seqs[i] {
				t.Fatalf("record %d of %d: %d, %v", i, len(h.seqs), seq, err)
			}
		}
		if faults.Triggered() == 0 {
			t.Error("nothing was to be removed")
		}
		must(t, r.Close())
		must(t, l.Close())
	})
}

// readFrom reads to the end.
func readFrom(l *Log, seq uint64) error {
	r, err := l.NewReader(seq)
	for err == nil {
		_, _, err = r.Next()
	}
	if r != nil {
		err = errors.Join(err, r.Close())
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
