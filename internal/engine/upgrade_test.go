package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// setFormat writes a version into both slots of a root file. The places of version and checksum are the same in all formats.
func setFormat(t *testing.T, fsys vfs.FS, version uint32) {
	t.Helper()
	const slot, offsetVersion = 4096, 16
	b, err := vfs.ReadFile(fsys, "db/"+root.Name, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for s := b; len(s) > 0; s = s[slot:] {
		binary.LittleEndian.PutUint32(s[offsetVersion:], version)
		binary.LittleEndian.PutUint32(s[slot-4:], crc32.Checksum(s[:slot-4], crc32.MakeTable(crc32.Castagnoli)))
	}
	if err := vfs.WriteFile(fsys, "db/"+root.Name, b); err != nil {
		t.Fatal(err)
	}
}

func newDatabase(t *testing.T) *memfs.FS {
	t.Helper()
	fsys := memfs.New()
	e, err := Open(Options{FS: fsys, Dir: "db", MemoryBytes: leastMemory})
	if err == nil {
		err = e.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

func TestOtherFormats(t *testing.T) {
	for _, c := range []struct {
		version uint32
		says    []string
	}{
		{root.Version + 1, []string{fmt.Sprintf("format %d", root.Version+1), fmt.Sprintf("up to %d", root.Version)}},
		{1 << 31, []string{"format 2147483648", fmt.Sprintf("up to %d", root.Version)}},
		{0, []string{"format 0 is too old", fmt.Sprintf("format %d", root.Version)}},
	} {
		fsys := newDatabase(t)
		setFormat(t, fsys, c.version)
		for _, readOnly := range []bool{false, true} {
			_, err := Open(Options{FS: fsys, Dir: "db", MemoryBytes: leastMemory, ReadOnly: readOnly})
			if !errors.Is(err, ErrVersion) {
				t.Fatalf("format %d: %v", c.version, err)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("format %d: the error does not say %q: %v", c.version, s, err)
				}
			}
		}
	}
}

// Every format since the oldest that can be opened leads to the present one.
func TestUpgradesAreComplete(t *testing.T) {
	next := uint32(0)
	for i, s := range upgrades() {
		if i > 0 && s.from != next {
			t.Errorf("a step from format %d follows on one to format %d", s.from, next)
		}
		next = s.from + 1
	}
	if len(upgrades()) > 0 && next != root.Version {
		t.Errorf("the last step leads to format %d, the code has format %d", next, root.Version)
	}
}

func TestUpgradeRunsEveryStepOnce(t *testing.T) {
	var ran []uint32
	failing := uint32(4)
	steps := []upgrade{}
	for from := uint32(2); from < 6; from++ {
		steps = append(steps, upgrade{from: from, run: func(vfs.FS, string) error {
			if from == failing {
				return errors.New("no space")
			}
			ran = append(ran, from)
			return nil
		}})
	}
	cause := &root.VersionError{Found: 3, Supported: 6}
	if err := upgradeFrom(nil, "", cause, steps, true); !errors.Is(err, ErrVersion) || len(ran) > 0 {
		t.Fatalf("read-only: %v, ran %v", err, ran)
	}
	if err := upgradeFrom(nil, "", cause, steps, false); err == nil || errors.Is(err, ErrVersion) {
		t.Fatalf("a step failed: %v", err)
	}
	failing, ran = 0, nil
	if err := upgradeFrom(nil, "", cause, steps, false); err != nil || !slices.Equal(ran, []uint32{3, 4, 5}) {
		t.Fatalf("%v, ran %v", err, ran)
	}
	ran = nil
	for _, cause := range []error{&root.VersionError{Found: 1, Supported: 6}, &root.VersionError{Found: 7, Supported: 6}, errors.New("other")} {
		if err := upgradeFrom(nil, "", cause, steps, false); !errors.Is(err, cause) || len(ran) > 0 {
			t.Errorf("%v: %v, ran %v", cause, err, ran)
		}
	}
}

// A step that changes the root file is followed by an ordinary open.
func TestOpenUpgrades(t *testing.T) {
	fsys := newDatabase(t)
	setFormat(t, fsys, 0)
	e := &Engine{o: Options{FS: fsys, Dir: "db"}}
	step := upgrade{from: 0, run: func(fsys vfs.FS, _ string) error { setFormat(t, fsys, root.Version); return nil }}
	if err := e.openRootFile([]upgrade{step}); err != nil {
		t.Fatal(err)
	}
	if err := e.root.Close(); err != nil {
		t.Fatal(err)
	}
}
