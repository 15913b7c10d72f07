package corrupt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// recycled makes a database whose log was recycled between its last two checkpoints, and whose older segments are gone.
func recycled(t *testing.T) (*memfs.FS, map[string]string) {
	t.Helper()
	fsys := memfs.New()
	want := map[string]string{}
	db, err := pando.Open(dir, options(fsys))
	must(t, err)
	for round := range 4 {
		for i := range 3000 {
			key, value := fmt.Sprintf("key %d", i%500), fmt.Sprintf("round %d %s", round, strings.Repeat("x", 100))
			must(t, db.Put([]byte(key), []byte(value)))
			want[key] = value
		}
		must(t, db.Checkpoint(context.Background()))
	}
	must(t, db.Put([]byte("last"), []byte("behind the last checkpoint")))
	want["last"] = "behind the last checkpoint"
	must(t, db.Sync())
	image := fsys.KillImage()
	must(t, db.Close())
	return image, want
}

func read(t *testing.T, db *pando.DB) map[string]string {
	t.Helper()
	got := map[string]string{}
	for k, v := range db.Range(nil, nil) {
		got[string(k)] = string(v)
	}
	must(t, db.Err())
	return got
}

func same(a, b map[string]string) bool {
	return (content{"": a}).equal(content{"": b})
}

// When the slot in force is damaged, the other one leads to an older state, of which the log is not complete any more. It must
// never pass for the database. Salvage finds the newer state, whether or not somebody has tried to open it.
func TestOlderRootSlotIsNoAnswer(t *testing.T) {
	// A checkpoint in the background may have made both slots say nearly the same: then either of them is an answer.
	for range 20 {
		if damageSlots(t) == 2 {
			return
		}
	}
	t.Error("never refused: the log was not recycled, or the damaged slot was not noticed")
}

// damageSlots damages one slot after the other and returns how often Open refused the database.
func damageSlots(t *testing.T) (refused int) {
	t.Helper()
	intact, want := recycled(t)
	for slot := range 2 {
		for _, readOnly := range []bool{false, true} {
			fsys := intact.KillImage()
			change(t, fsys, dir+"/ROOT", func(b []byte) []byte { b[slot*4096+90] ^= 4; return b })
			o := options(fsys)
			o.ReadOnly = readOnly
			db, err := pando.Open(dir, o)
			switch {
			case err == nil:
				if got := read(t, db); !same(got, want) {
					t.Fatalf("slot %d damaged: an older state was opened: %d keys", slot, len(got))
				}
				must(t, db.Close())
			case !errors.Is(err, pando.ErrCorrupt):
				t.Fatal(err)
			default:
				refused++
			}
			report, err := pando.Salvage(context.Background(), dir, "new", options(fsys))
			must(t, err)
			db, err = pando.Open("new", options(fsys))
			must(t, err)
			if got := read(t, db); !same(got, want) {
				t.Fatalf("slot %d damaged: salvage gave %d keys of %d\n%s", slot, len(got), len(want), report)
			}
			must(t, db.Close())
			if report.Older > 0 {
				t.Errorf("slot %d damaged: older versions were taken\n%s", slot, report)
			}
		}
	}
	return refused
}

// unreadSlot is a file system on a device that does not give one slot of ROOT back.
type unreadSlot struct {
	vfs.FS
	slot int64
}

type unreadFile struct {
	vfs.File
	from int64
}

func (u unreadSlot) Open(name string) (vfs.File, error) { return u.spoil(u.FS.Open(name)) }

func (u unreadSlot) OpenReadWrite(name string) (vfs.File, error) {
	return u.spoil(u.FS.OpenReadWrite(name))
}

func (u unreadSlot) spoil(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	if size, err := f.Size(); err != nil || size != 2*slotBytes {
		return f, err // it is not ROOT
	}
	return &unreadFile{f, u.slot * slotBytes}, nil
}

const slotBytes = 4096

func (f *unreadFile) ReadAt(b []byte, offset int64) (int, error) {
	if offset < f.from+slotBytes && f.from < offset+int64(len(b)) {
		return 0, errDevice
	}
	return f.File.ReadAt(b, offset)
}

// A slot that the device does not give back keeps nobody out when it is not the one in force. When it is, the device is what is wrong, and not
// the database: all of it is there when the slot can be read again.
func TestRootSlotThatCannotBeRead(t *testing.T) {
	intact, want := recycled(t)
	opened := 0
	for slot := range int64(2) {
		for _, readOnly := range []bool{true, false} {
			fsys := intact.KillImage()
			o := options(unreadSlot{fsys, slot})
			o.ReadOnly = readOnly
			db, err := pando.Open(dir, o)
			if err != nil {
				if !errors.Is(err, errDevice) || errors.Is(err, pando.ErrCorrupt) {
					t.Errorf("slot %d: %v", slot, err)
				}
				db, err = pando.Open(dir, options(fsys))
				must(t, err)
			} else {
				opened++
			}
			if got := read(t, db); !same(got, want) {
				t.Errorf("slot %d cannot be read: %d keys, want %d", slot, len(got), len(want))
			}
			must(t, db.Close())
		}
	}
	if opened < 2 {
		t.Error("nobody came in beside the slot that is not in force")
	}
}

// Without ROOT, and then without any catalogue either.
func TestSalvageWithoutRoot(t *testing.T) {
	intact, want := recycled(t)
	fsys := intact.KillImage()
	must(t, fsys.Remove(dir+"/ROOT"))
	for _, o := range []*pando.Options{{MustExist: true}, {ReadOnly: true}, {}} {
		o.FS, o.MemoryBytes = fsys, 1<<20
		if _, err := pando.Open(dir, o); !errors.Is(err, pando.ErrCorrupt) {
			t.Fatalf("without ROOT: %v", err)
		}
	}
	report, err := pando.Salvage(context.Background(), dir, "new", options(fsys))
	must(t, err)
	db, err := pando.Open("new", options(fsys))
	must(t, err)
	if got := read(t, db); !same(got, want) || report.Older > 0 {
		t.Fatalf("%d keys of %d\n%s", len(got), len(want), report)
	}
	must(t, db.Close())
}

func TestSalvageWithoutCatalogues(t *testing.T) {
	intact, want := recycled(t)
	// An empty file waits to be a segment again, and has no catalogue.
	segments := slices.DeleteFunc(list(t, intact, dir+"/segments"), func(name string) bool { return size(t, intact, name) == 0 })
	newest := len(segments) - 1
	for ; lastKind(contents(t, intact, segments[newest])) != segment.KindCatalogue; newest-- {
	}
	for _, c := range []struct {
		name     string
		from     int // the first segment whose catalogue is damaged
		rootless bool
	}{
		{"none, nor ROOT", 0, true},
		{"none", 0, false},
		{"the newest is damaged", newest, false},
		{"the newest is damaged, no ROOT", newest, true},
	} {
		fsys, damaged := intact.KillImage(), 0
		if c.rootless {
			must(t, fsys.Remove(dir+"/ROOT"))
		}
		for _, name := range segments[c.from:] {
			// The catalogue is the last blob of a checkpoint, in the last of its segments.
			change(t, fsys, name, func(b []byte) []byte {
				if lastKind(b) == segment.KindCatalogue {
					b[len(b)-1] ^= 1
					damaged++
				}
				return b
			})
		}
		if damaged == 0 {
			t.Fatalf("%s: there was none", c.name)
		}
		report, err := pando.Salvage(context.Background(), dir, "new", options(fsys))
		must(t, err)
		db, err := pando.Open("new", options(fsys))
		must(t, err)
		if got := read(t, db); !same(got, want) || len(report.Lost) == 0 {
			t.Fatalf("%s: %d keys of %d\n%s", c.name, len(got), len(want), report)
		}
		must(t, db.Close())
	}
}

// TestSalvageOfTheLongestKeys: what a leaf says of keys that are as long as they can be is said of the keys between them, too.
func TestSalvageOfTheLongestKeys(t *testing.T) {
	fsys, o, db := uncompressed(t)
	last := bytes.Repeat([]byte{0xff}, pando.MaxKeyBytes)
	want := map[string]string{string(last): "of the last key", string(last[:9]) + "z": "between"}
	want[string(bytes.Repeat([]byte{'k'}, pando.MaxKeyBytes))] = "of another long key"
	for key, value := range want {
		must(t, db.Put([]byte(key), []byte(value)))
	}
	must(t, db.Checkpoint(context.Background()))
	db.Snapshot() // keeps what is replaced
	for key := range want {
		must(t, db.Put([]byte(key), []byte("lost")))
	}
	must(t, db.Close())
	must(t, vfs.RemoveAll(fsys, dir+"/wal"))
	if damageValues(t, fsys, []byte("lost")) == 0 {
		t.Fatal("the values are not where they were looked for")
	}
	report, err := pando.Salvage(t.Context(), dir, "new", o)
	must(t, err)
	db, err = pando.Open("new", o)
	must(t, err)
	if got := read(t, db); !same(got, want) {
		t.Errorf("%d keys of %d\n%s", len(got), len(want), report)
	}
	must(t, db.Close())
}

// TestSalvageOfAPartOfALongValue: where a long value has lost its beginning, and its key, its end does not pass for a value.
func TestSalvageOfAPartOfALongValue(t *testing.T) {
	fsys, o, db := uncompressed(t)
	long := append(distinct(1), make([]byte, 1<<20)...)
	must(t, db.Put([]byte("long"), long))
	must(t, db.Put([]byte("short"), []byte("lost")))
	must(t, db.Close())
	must(t, vfs.RemoveAll(fsys, dir+"/wal"))
	if damageValues(t, fsys, []byte("lost")) == 0 || damageValues(t, fsys, distinct(1)) == 0 {
		t.Fatal("the values are not where they were looked for")
	}
	report, err := pando.Salvage(t.Context(), dir, "new", o)
	must(t, err)
	db, err = pando.Open("new", o)
	must(t, err)
	if got := read(t, db); len(got) > 0 || len(report.Lost) == 0 {
		t.Errorf("%d keys, of the long one %d bytes\n%s", len(got), len(got["long"]), report)
	}
	must(t, db.Close())
}

// lastKind returns the kind of the last blob of a segment file.
func lastKind(file []byte) (kind segment.Kind) {
	const kindAt, storedAt = 8, 16
	for at := segment.FileHeaderSize; at+segment.HeaderSize <= len(file); {
		kind = segment.Kind(file[at+kindAt])
		at += segment.HeaderSize + int(binary.LittleEndian.Uint32(file[at+storedAt:]))
	}
	return kind
}

func TestSalvageRefuses(t *testing.T) {
	fsys, _ := recycled(t)
	salvage := func(from, to string) error {
		_, err := pando.Salvage(context.Background(), from, to, options(fsys))
		return err
	}
	if err := salvage("nowhere", "new"); err == nil {
		t.Error("salvaged nothing")
	}
	must(t, fsys.MkdirAll("other"))
	f, err := fsys.Create("other/thing")
	must(t, err)
	must(t, f.Close())
	if err := salvage(dir, "other"); err == nil {
		t.Error("the target held something")
	}
	if err := salvage("other", "new"); !errors.Is(err, pando.ErrNotDatabase) {
		t.Errorf("a directory of other things: %v", err)
	}
	if err := salvage(dir, dir+"/new"); err == nil {
		t.Error("the target lay inside of the damaged database")
	}
	db, err := pando.Open(dir, options(fsys))
	must(t, err)
	if err := salvage(dir, "new"); !errors.Is(err, pando.ErrLocked) {
		t.Errorf("the database is in use: %v", err)
	}
	must(t, db.Close())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := pando.Salvage(ctx, dir, "new", options(fsys)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
