package spill

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

var frames = []Frame{
	{Payload: []byte("three commands"), Count: 3, Data: 11},
	{Payload: bytes.Repeat([]byte{0xa5}, 5000), Count: 1, Data: 4990},
	{Payload: []byte{}, Count: 0, Data: 0},
}

func write(t *testing.T, fsys vfs.FS, number uint64) {
	t.Helper()
	w, err := Create(fsys, "db", number)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		if err := w.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	if w.Count() != 4 {
		t.Fatalf("Count is %d, want 4", w.Count())
	}
	if err := w.Close(true); err != nil {
		t.Fatal(err)
	}
}

func read(fsys vfs.FS, number uint64) ([]Frame, error) {
	var got []Frame
	err := Read(fsys, "db", number, func(f Frame) error {
		got = append(got, Frame{bytes.Clone(f.Payload), f.Count, f.Data})
		return nil
	})
	return got, err
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	fsys := memfs.New()
	write(t, fsys, 7)
	// What was closed with sync survives a power cut, its directory included.
	if _, err := read(fsys.CrashImage(memfs.Policy{Unsynced: memfs.None}), 7); err != nil {
		t.Fatal(err)
	}
	got, err := read(fsys, 7)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(frames) {
		t.Fatalf("%d frames, want %d", len(got), len(frames))
	}
	for i, f := range frames {
		if !bytes.Equal(got[i].Payload, f.Payload) || got[i].Count != f.Count || got[i].Data != f.Data {
			t.Errorf("frame %d: got %v", i, got[i])
		}
	}
	numbers, err := Sweep(fsys, "db")
	if err != nil || len(numbers) != 1 || numbers[0] != 7 {
		t.Errorf("Sweep: %v, %v", numbers, err)
	}
	if _, err := read(fsys, 8); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestFilesGoOnWhereTheyWereClosed(t *testing.T) {
	fsys := memfs.New()
	w, err := Create(fsys, "db", 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := errors.Join(w.Add(frames[0]), w.Close(true), w.Close(true)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Renumber(2), w.Add(frames[1])); err != nil {
		t.Fatal(err)
	}
	if got, err := read(fsys, 2); len(got) != 4 || w.Count() != 10 || err != nil {
		t.Errorf("%d frames, %d commands, %v", len(got), w.Count(), err)
	}
	if err := w.Remove(); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(frames[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Add to a file that was removed: %v", err)
	}
}

func TestFramesThatFailLeaveNothing(t *testing.T) {
	fsys := memfs.New()
	w, err := Create(fsys, "db", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(frames[0]); err != nil {
		t.Fatal(err)
	}
	size, count := w.Size(), w.Count()
	fsys.SetCapacity(fsys.Used())
	if err := w.Add(frames[1]); !errors.Is(err, vfs.ErrNoSpace) {
		t.Fatalf("on a full disk: %v", err)
	}
	if err := w.Add(Frame{Payload: make([]byte, MaxFrame+1)}); err == nil {
		t.Error("a frame is written that is too long to be read")
	}
	if got, err := read(fsys, 1); len(got) != 1 || err != nil {
		t.Errorf("%d frames, %v", len(got), err)
	}
	fsys.SetCapacity(0)
	if err := errors.Join(w.Add(frames[1]), w.Rewind(size, count), w.Add(frames[2])); err != nil {
		t.Fatal(err)
	}
	if got, err := read(fsys, 1); len(got) != 2 || len(got[1].Payload) != 0 || w.Count() != 3 || err != nil {
		t.Errorf("%d frames, %d commands, %v", len(got), w.Count(), err)
	}
}

func TestFileThatDidNotSyncIsLost(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	w, err := Create(fsys, "db", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(frames[0]); err != nil {
		t.Fatal(err)
	}
	fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync)})
	if err := w.Close(true); err == nil || errors.Is(err, ErrLost) {
		t.Errorf("the sync that fails: %v", err)
	}
	for what, err := range map[string]error{"Close": w.Close(true), "Add": w.Add(frames[1]), "Renumber": w.Renumber(2)} {
		if !errors.Is(err, ErrLost) {
			t.Errorf("%s behind it: %v", what, err)
		}
	}
	if err := w.Remove(); err != nil {
		t.Error(err)
	}
	if leaks := fsys.Leaks(); len(leaks) > 0 {
		t.Errorf("open: %q", leaks)
	}
}

// Whichever call of the file system fails, who writes, reads, lists or sweeps is told.
func TestEveryFailureIsTold(t *testing.T) {
	life := []struct {
		what string
		step func(fsys vfs.FS, w **Writer) error
	}{
		{"create", func(fsys vfs.FS, w **Writer) (err error) { *w, err = Create(fsys, "db", 1); return err }},
		{"add", func(_ vfs.FS, w **Writer) error { return (*w).Add(frames[0]) }},
		{"close", func(_ vfs.FS, w **Writer) error { return (*w).Close(true) }},
		{"add again", func(_ vfs.FS, w **Writer) error { return (*w).Add(frames[1]) }},
		{"renumber", func(_ vfs.FS, w **Writer) error { return (*w).Renumber(2) }},
		{"read", func(fsys vfs.FS, _ **Writer) error { _, err := read(fsys, 2); return err }},
		{"mark", func(fsys vfs.FS, _ **Writer) error { return MarkFailed(fsys, "db", 2) }},
		{"ask for the mark", func(fsys vfs.FS, _ **Writer) error { _, err := Failed(fsys, "db", 2); return err }},
		{"sweep", func(fsys vfs.FS, _ **Writer) error { _, err := Sweep(fsys, "db"); return err }},
		{"remove", func(_ vfs.FS, w **Writer) error { return (*w).Remove() }},
	}
	// Closing what was only read has nothing to tell.
	var calls []faultfs.Op
	for op := faultfs.OpCreate; op < faultfs.OpClose; op++ {
		calls = append(calls, op)
	}
	for i, failing := range life {
		for n, hit := 0, true; hit; n++ {
			fsys := faultfs.New(memfs.New())
			mark := filepath.Join("db", Name(9)+unfinished[len(suffix):])
			if err := errors.Join(fsys.MkdirAll(filepath.Dir(mark)), vfs.WriteFile(fsys, mark, nil)); err != nil {
				t.Fatal(err)
			}
			var w *Writer
			for _, before := range life[:i] {
				if err := before.step(fsys, &w); err != nil {
					t.Fatalf("%s: %v", before.what, err)
				}
			}
			fsys.Set(faultfs.Rule{Ops: faultfs.Ops(calls...), Skip: n})
			err := failing.step(fsys, &w)
			if hit = fsys.Triggered() > 0; errors.Is(err, faultfs.ErrInjected) != hit {
				t.Errorf("%s, of which call %d fails %d times: %v", failing.what, n, fsys.Triggered(), err)
			}
		}
	}
}

func TestEveryFlippedBitAndEveryCutIsFound(t *testing.T) {
	fsys := memfs.New()
	write(t, fsys, 1)
	path := filepath.Join("db", Name(1))
	whole, err := vfs.ReadFile(fsys, path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		for bit := range 8 {
			if i > 64 && bit != i%8 {
				continue // one bit a byte will do inside of a payload
			}
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			if err := vfs.WriteFile(fsys, path, b); err != nil {
				t.Fatal(err)
			}
			if _, err := read(fsys, 1); !errors.Is(err, corrupt.Err) {
				t.Fatalf("bit %d of byte %d flipped: %v", bit, i, err)
			}
		}
	}
	first := frameHeader + len(frames[0].Payload)
	second := first + frameHeader + len(frames[1].Payload)
	for n := range whole {
		if err := vfs.WriteFile(fsys, path, whole[:n]); err != nil {
			t.Fatal(err)
		}
		// A cut between frames cannot be told from the end: whoever refers to the file knows how many commands it holds.
		whole := n == 0 || n == first || n == second
		if _, err := read(fsys, 1); errors.Is(err, corrupt.Err) == whole {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

func TestFormatIsGolden(t *testing.T) {
	const want = "0e000000" + "0e75d724" + "03000000" + "0b000000" + "746872656520636f6d6d616e6473"
	if got := hex.EncodeToString(appendFrame(nil, frames[0])); got != want {
		t.Errorf("frame is\n%s, want\n%s", got, want)
	}
}

func FuzzRead(f *testing.F) {
	var all []byte
	for _, frame := range frames {
		all = appendFrame(all, frame)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, b []byte) {
		fsys := memfs.New()
		if err := fsys.MkdirAll(filepath.Join("db", DirName)); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(fsys, filepath.Join("db", Name(1)), b); err != nil {
			t.Fatal(err)
		}
		got, err := read(fsys, 1)
		var again []byte
		for _, frame := range got {
			again = appendFrame(again, frame)
		}
		if err == nil && !bytes.Equal(again, b) {
			t.Errorf("read without an error, but it is encoded otherwise")
		}
	})
}
