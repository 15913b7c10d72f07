package root

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

const testDir = "db"

func exampleSlot() Slot {
	return Slot{
		Database:    [16]byte{0: 0xd0, 15: 0xdf},
		Catalogue:   segment.Pointer{Segment: 3, Offset: 4096, Length: 777, Sum: 0x1122334455667788},
		NextSegment: 4,
		Log:         Position{Segment: 5, Offset: 640},
		Seq:         1000,
		Clock:       1_700_000_000_000,
	}
}

func newFS(t testing.TB) *memfs.FS {
	t.Helper()
	fsys := memfs.New()
	must(t, vfs.MkdirAllSync(fsys, testDir))
	return fsys
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCreateStoreOpen(t *testing.T) {
	fsys := newFS(t)
	if _, err := Open(fsys, testDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open without a file: %v", err)
	}
	f, err := Create(fsys, testDir, exampleSlot())
	must(t, err)
	if _, err := Create(fsys, testDir, exampleSlot()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create over a file: %v", err)
	}
	want := exampleSlot()
	want.Version, want.Generation = Version, 2
	for range 5 {
		if diff := cmp.Diff(want, f.Current()); diff != "" || f.Damaged() {
			t.Fatalf("current: %s", diff)
		}
		must(t, f.Close())
		must(t, f.Close())
		r, err := OpenReadOnly(fsys, testDir)
		must(t, err)
		if diff := cmp.Diff(want, r.Current()); diff != "" || r.Damaged() {
			t.Fatalf("read-only: %s", diff)
		}
		if err := r.Store(want); !errors.Is(err, ErrReadOnly) {
			t.Errorf("store: %v", err)
		}
		must(t, r.Close())
		f, err = Open(fsys, testDir)
		must(t, err)
		want.Seq++
		must(t, f.Store(want))
		want.Generation++
	}
	other := want
	other.Database[0]++
	if err := f.Store(other); err == nil {
		t.Error("stored the slot of another database")
	}
	must(t, f.Close())
	if err := f.Store(want); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("store after close: %v", err)
	}
}

// written returns the bytes of a root file with generations 2 and 3 in it, and the slots of both.
func written(t testing.TB) (content []byte, older, newer Slot) {
	t.Helper()
	fsys := newFS(t)
	f, err := Create(fsys, testDir, exampleSlot())
	must(t, err)
	older = f.Current()
	newer = older
	newer.Seq += 500
	newer.Catalogue.Segment++
	must(t, f.Store(newer))
	newer = f.Current()
	must(t, f.Close())
	content, err = vfs.ReadFile(fsys, filepath.Join(testDir, Name), 1<<20)
	must(t, err)
	return content, older, newer
}

func openBytes(t testing.TB, fsys vfs.FS, content []byte) (Slot, bool, error) {
	t.Helper()
	must(t, vfs.WriteFile(fsys, filepath.Join(testDir, Name), content))
	f, err := Open(fsys, testDir)
	if err != nil {
		return Slot{}, false, err
	}
	defer f.Close()
	return f.Current(), f.Damaged(), nil
}

// Every single flipped bit is noticed, and leaves a slot that was stored.
func TestEveryFlippedBit(t *testing.T) {
	content, older, newer := written(t)
	newest := bytes.Index(content, appendSlot(nil, newer)) / slotSize
	for i := range len(content) * 8 {
		content[i/8] ^= 1 << (i % 8)
		f := &File{file: inMemory{content}}
		err := f.load()
		want := newer
		if i/8/slotSize == newest {
			want = older
		}
		if err != nil || f.current != want || !f.damaged {
			t.Fatalf("bit %d of byte %d: slot %+v, damaged %v, error %v", i%8, i/8, f.current, f.damaged, err)
		}
		content[i/8] ^= 1 << (i % 8)
	}
}

// inMemory is a vfs.File that can only be read.
type inMemory struct{ content []byte }

func (m inMemory) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(m.content).ReadAt(p, off)
}
func (m inMemory) Size() (int64, error)               { return int64(len(m.content)), nil }
func (m inMemory) Close() error                       { return nil }
func (m inMemory) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }
func (m inMemory) Truncate(int64) error               { return errors.ErrUnsupported }
func (m inMemory) Allocate(int64) error               { return errors.ErrUnsupported }
func (m inMemory) Sync() error                        { return errors.ErrUnsupported }
func (m inMemory) Map(int64) (vfs.Mapping, error)     { return nil, errors.ErrUnsupported }

func TestEveryLength(t *testing.T) {
	content, older, newer := written(t)
	for n := range len(content) + 2 {
		cut := append(bytes.Clone(content), 0, 0)[:n]
		f := &File{file: inMemory{cut}}
		err := f.load()
		switch {
		case n < len(magic):
			if !errors.Is(err, corrupt.Err) {
				t.Fatalf("%d bytes: %v", n, err)
			}
		case n < slotSize:
			if !errors.Is(err, corrupt.Err) {
				t.Fatalf("%d bytes: %v", n, err)
			}
		default:
			if err != nil || f.current != older && f.current != newer || f.damaged != (n != fileSize) {
				t.Fatalf("%d bytes: slot %+v, damaged %v, error %v", n, f.current, f.damaged, err)
			}
		}
	}
}

func TestBothSlotsDamaged(t *testing.T) {
	fsys := newFS(t)
	content, _, newer := written(t)
	damaged := bytes.Clone(content)
	damaged[100] ^= 1
	damaged[slotSize+200] ^= 1
	if _, _, err := openBytes(t, fsys, damaged); !errors.Is(err, corrupt.Err) || errors.Is(err, ErrNotDatabase) {
		t.Errorf("both damaged: %v", err)
	}
	swapped := append(bytes.Clone(content[slotSize:]), content[:slotSize]...)
	if s, _, err := openBytes(t, fsys, swapped); err != nil || s != newer {
		t.Errorf("swapped slots: %+v, %v", s, err)
	}
	for _, foreign := range [][]byte{bytes.Repeat([]byte("something else "), 1000), bytes.Repeat([]byte("x"), 30), make([]byte, fileSize)} {
		if _, _, err := openBytes(t, fsys, foreign); !errors.Is(err, ErrNotDatabase) {
			t.Errorf("foreign file: %v", err)
		}
	}
	twice := append(bytes.Clone(content[:slotSize]), content[:slotSize]...)
	if _, damaged, err := openBytes(t, fsys, twice); err != nil || damaged {
		t.Errorf("the same slot twice: %v", err)
	}
	changed := exampleSlot()
	changed.Version, changed.Generation = Version, 3
	rival := changed
	rival.Seq++
	if _, _, err := openBytes(t, fsys, appendSlot(appendSlot(nil, changed), rival)); !errors.Is(err, corrupt.Err) {
		t.Errorf("two slots of one generation: %v", err)
	}
	rival.Generation, rival.Database[3] = 4, 9
	if _, _, err := openBytes(t, fsys, appendSlot(appendSlot(nil, changed), rival)); !errors.Is(err, corrupt.Err) {
		t.Errorf("slots of two databases: %v", err)
	}
}

// A slot that the device does not give back costs those who make do with what is left that slot, and not the other one too.
func TestSlotsBesideOneThatCannotBeRead(t *testing.T) {
	for slot := range 2 {
		ffs := faultfs.New(newFS(t))
		f, err := Create(ffs, testDir, exampleSlot())
		must(t, err)
		must(t, f.Close())
		ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpReadAt), Skip: slot})
		slots, damage, err := Slots(ffs, testDir)
		if err != nil || len(slots) != 1 || len(damage) != 1 || slots[0].Generation != uint64(2-slot) {
			t.Errorf("slot %d cannot be read: there are %v and %v, %v", slot, slots, damage, err)
		}
		if leaks := ffs.Leaks(); len(leaks) > 0 {
			t.Errorf("left open: %v", leaks)
		}
	}
}

// Whoever makes do with what is left gets the newer slot first, wherever it lies.
func TestSlotsTellTheNewerOneFirst(t *testing.T) {
	content, older, newer := written(t)
	for _, b := range [][]byte{content, append(bytes.Clone(content[slotSize:]), content[:slotSize]...)} {
		fsys := newFS(t)
		must(t, vfs.WriteFile(fsys, filepath.Join(testDir, Name), b))
		slots, damage, err := Slots(fsys, testDir)
		must(t, err)
		if want := []Slot{newer, older}; !slices.Equal(slots, want) || len(damage) > 0 {
			t.Errorf("slots %v and damage %v, want %v", slots, damage, want)
		}
	}
}

// A checksum that fits does not make fields possible.
func TestSlotRefusesWhatCannotBe(t *testing.T) {
	for what, change := range map[string]func(slot []byte){
		"a place before the log":       func(b []byte) { b[offsetLogOffset+7] = 0x80 },
		"something in a reserved byte": func(b []byte) { b[offsetReserved] = 1 },
		"something in the padding":     func(b []byte) { b[offsetSlotChecksum-1] = 1 },
		"a catalogue in no segment":    func(b []byte) { clear(b[offsetCatalogue : offsetCatalogue+4]) },
	} {
		s := exampleSlot()
		s.Version = Version
		b := appendSlot(nil, s)
		change(b)
		if s, err := decodeSlot(sealed(b)); err == nil {
			t.Errorf("%s: %+v", what, s)
		}
	}
}

func TestNewerVersion(t *testing.T) {
	fsys := newFS(t)
	content, _, _ := written(t)
	newer := exampleSlot()
	newer.Version, newer.Generation = Version+1, 1
	copy(content[slotSize:], appendSlot(nil, newer))
	_, _, err := openBytes(t, fsys, content)
	var version *VersionError
	if !errors.Is(err, ErrVersion) || !errors.As(err, &version) || version.Found != Version+1 || version.Supported != Version {
		t.Errorf("newer version: %v", err)
	}
}

func TestFailedSyncPoisons(t *testing.T) {
	for _, fault := range []faultfs.Fault{faultfs.Fail, faultfs.DropSync, faultfs.DropSyncOnce} {
		fsys := faultfs.New(newFS(t))
		f, err := Create(fsys, testDir, exampleSlot())
		must(t, err)
		before := f.Current()
		fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync), Fault: fault})
		next := before
		next.Seq++
		if err := f.Store(next); !errors.Is(err, faultfs.ErrInjected) {
			t.Fatalf("store: %v", err)
		}
		for range 2 {
			if err := f.Store(next); !errors.Is(err, ErrFailed) || !errors.Is(err, faultfs.ErrInjected) {
				t.Errorf("store after a failed sync: %v", err)
			}
		}
		if f.Current() != before {
			t.Error("a slot is in force that was not stored")
		}
		must(t, f.Close())
		if leaks := fsys.Leaks(); len(leaks) > 0 {
			t.Errorf("leaks: %v", leaks)
		}
	}
}

// A crash or an error at every call of a life of creating and storing leaves a slot that was stored, and never an older one than
// the last Store that returned nil.
func TestCrashAtEveryCall(t *testing.T) {
	policies := []memfs.Policy{{Unsynced: memfs.None}, {Unsynced: memfs.All}}
	for seed := range uint64(4) {
		policies = append(policies,
			memfs.Policy{Unsynced: memfs.Random, Seed: seed, Torn: 512},
			memfs.Policy{Unsynced: memfs.Random, Seed: seed, Torn: 512, Reordered: true, Stale: true})
	}
	base := newFS(t)
	fsys := faultfs.New(base)
	stored := uint64(0) // sequence number of the last Store that returned
	begun := uint64(0)
	images := 0
	check := func(image *memfs.FS) {
		images++
		f, err := Open(image, testDir)
		if err != nil {
			if stored == 0 && errors.Is(err, fs.ErrNotExist) {
				return
			}
			t.Fatalf("open after a crash: %v", err)
		}
		defer f.Close()
		if got := f.Current().Seq; got < stored || got > begun {
			t.Fatalf("found sequence number %d, stored %d, begun %d", got, stored, begun)
		}
		want := f.Current()
		want.Seq += 1000
		must(t, f.Store(want))
		again, err := Open(image.CrashImage(memfs.Policy{Unsynced: memfs.None}), testDir)
		must(t, err)
		if again.Current() != f.Current() {
			t.Fatal("a stored slot was lost")
		}
		must(t, again.Close())
	}
	fsys.OnCall(func(faultfs.Op, string) error {
		for _, p := range policies {
			check(base.CrashImage(p))
			check(base.KillImage())
			check(base.KillImage().CrashImage(p))
		}
		return nil
	})
	slot := exampleSlot()
	slot.Seq, begun = 1, 1
	f, err := Create(fsys, testDir, slot)
	must(t, err)
	stored = 1
	for range 4 {
		slot.Seq++
		begun = slot.Seq
		must(t, f.Store(slot))
		stored = slot.Seq
	}
	must(t, f.Close())
	if images < 400 {
		t.Errorf("only %d images", images)
	}
}

// What Open returned is durable, though the process that stored it was killed before it synced.
func TestOpenedSlotSurvivesPowerCut(t *testing.T) {
	base := newFS(t)
	fsys := faultfs.New(base)
	f, err := Create(fsys, testDir, exampleSlot())
	must(t, err)
	defer f.Close()
	var killed *memfs.FS
	fsys.OnCall(func(op faultfs.Op, _ string) error {
		if op == faultfs.OpSync {
			killed = base.KillImage()
		}
		return nil
	})
	next := f.Current()
	next.Seq++
	must(t, f.Store(next))
	second, err := Open(killed, testDir)
	must(t, err)
	defer second.Close()
	third, err := Open(killed.CrashImage(memfs.Policy{Unsynced: memfs.None}), testDir)
	must(t, err)
	defer third.Close()
	if second.Current() != third.Current() {
		t.Errorf("Open returned sequence number %d, a power cut made it %d", second.Current().Seq, third.Current().Seq)
	}
}

// A slot that does not verify, and what lies behind the slots, is damage until the next Store has repaired it: for who opens the file
// then, and for who has it open.
func TestStoreRepairs(t *testing.T) {
	content, _, _ := written(t)
	for what, damaged := range map[string][]byte{
		"one slot is torn":        append(bytes.Clone(content[:100]), append(make([]byte, 60), content[160:]...)...),
		"the last slot is cut":    content[:slotSize+50],
		"there is more behind it": append(bytes.Clone(content), 1, 2, 3),
	} {
		fsys := newFS(t)
		must(t, vfs.WriteFile(fsys, filepath.Join(testDir, Name), damaged))
		for round := range 3 {
			f, err := Open(fsys, testDir)
			must(t, err)
			if f.Damaged() != (round == 0) {
				t.Errorf("%s, open %d: damaged: %v", what, round, f.Damaged())
			}
			must(t, f.Store(f.Current()))
			if f.Damaged() {
				t.Errorf("%s, open %d: still damaged", what, round)
			}
			must(t, f.Close())
		}
	}
}

// Which slot a later Open finds is known after a Store that wrote none as a whole, and not after one that failed later.
func TestCertainAfterStoresThatFail(t *testing.T) {
	content, _, _ := written(t)
	for what, c := range map[string]struct {
		rule    faultfs.Rule
		behind  string // the slots
		certain bool
	}{
		"nothing is written":       {faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt)}, "", true},
		"half of it is written":    {faultfs.Rule{Fault: faultfs.ShortWrite}, "", true},
		"it is not cut behind it":  {faultfs.Rule{Ops: faultfs.Ops(faultfs.OpTruncate)}, "more", false},
		"it is not synced":         {faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync)}, "", false},
		"it is not known what was": {faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt, faultfs.OpReadAt), Times: -1}, "", false},
	} {
		fsys := faultfs.New(newFS(t))
		must(t, vfs.WriteFile(fsys, filepath.Join(testDir, Name), append(bytes.Clone(content), c.behind...)))
		f, err := Open(fsys, testDir)
		must(t, err)
		before := f.Current()
		fsys.Set(c.rule)
		if err := f.Store(before); !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("%s: %v", what, err)
		}
		if f.Certain() != c.certain {
			t.Errorf("%s: certain: %t", what, !c.certain)
		}
		fsys.Set()
		must(t, f.Close())
		if f, err = Open(fsys, testDir); err != nil || c.certain && f.Current() != before {
			t.Fatalf("%s: opened again: %v", what, err)
		}
		must(t, f.Store(f.Current()))
		if !f.Certain() {
			t.Errorf("%s: not certain after a Store", what)
		}
		must(t, f.Close())
	}
}

// After a failed sync the system may call the slot clean that the device never got: the slot that Open finds is there after a power
// cut nevertheless.
func TestSlotOfAFailedSyncIsWrittenAgain(t *testing.T) {
	for _, fault := range []faultfs.Fault{faultfs.DropSync, faultfs.DropSyncOnce} {
		base := newFS(t)
		fsys := faultfs.New(base)
		f, err := Create(fsys, testDir, exampleSlot())
		must(t, err)
		fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync), Fault: fault})
		if err := f.Store(exampleSlot()); !errors.Is(err, faultfs.ErrInjected) {
			t.Fatalf("fault %d: %v", fault, err)
		}
		fsys.Set()
		must(t, f.Close())
		f, err = Open(fsys, testDir)
		must(t, err)
		found := f.Current()
		must(t, f.Close())
		after, err := OpenReadOnly(base.CrashImage(memfs.Policy{}), testDir)
		must(t, err)
		if got := after.Current(); got != found || after.Damaged() {
			t.Errorf("fault %d: generation %d was found, %d after a power cut", fault, found.Generation, got.Generation)
		}
		must(t, after.Close())
	}
}

func FuzzSlot(f *testing.F) {
	f.Add(appendSlot(nil, Slot{Version: Version}))
	s := exampleSlot()
	s.Version = Version
	f.Add(appendSlot(nil, s))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := decodeSlot(b); err == nil && !bytes.Equal(appendSlot(nil, s), b[:slotSize]) {
			t.Fatal("not what was decoded")
		}
		// With a fitting checksum the fields behind it are reached.
		if len(b) >= offsetPadding {
			whole := append(bytes.Clone(b[:offsetPadding]), make([]byte, slotSize-offsetPadding)...)
			copy(whole, magic)
			if s, err := decodeSlot(sealed(whole)); err == nil && !bytes.Equal(appendSlot(nil, s), whole) {
				t.Fatal("not what was decoded")
			}
		}
	})
}
