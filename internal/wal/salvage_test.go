package wal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// collected is what Salvage told.
type collected struct {
	t    *testing.T
	seqs []uint64
	lost []string
	size map[uint64]int
}

// newest is the record that came last, 0 for none.
func (c *collected) newest() uint64 {
	if len(c.seqs) == 0 {
		return 0
	}
	return c.seqs[len(c.seqs)-1]
}

func (c *collected) Record(seq, before uint64, got []byte, _ bool) error {
	if newest := c.newest(); before < newest {
		c.t.Errorf("record %d comes after %d, its frame says %d", seq, newest, before)
	}
	if string(got) != string(payload(seq, c.size[seq])) {
		c.t.Errorf("record %d is another one", seq)
	}
	c.seqs = append(c.seqs, seq)
	return nil
}

func (c *collected) Lost(after, last uint64, err error) error {
	if newest := c.newest(); after != newest || last != 0 && last <= after {
		c.t.Errorf("records %d to %d are lost behind record %d: %v", after+1, last, newest, err)
	}
	c.lost = append(c.lost, fmt.Sprintf("%d-%d", after, last))
	return nil
}

// aLongLog makes a log of several segments, with records that span some of them, closed in good order.
func aLongLog(t *testing.T) (*memfs.FS, *collected) {
	fsys := newFS(t)
	o := options(fsys, true)
	l, err := Create(o, 1)
	must(t, err)
	c := &collected{t: t, size: map[uint64]int{}}
	for seq := uint64(1); seq <= 60; seq++ {
		c.size[seq] = 1000
		if seq%20 == 0 {
			c.size[seq] = 2 * MinSegmentBytes
		}
		_, err := l.Append(seq, payload(seq, c.size[seq]))
		must(t, err)
		must(t, l.Sync())
	}
	must(t, l.Close())
	return fsys, c
}

func salvage(t *testing.T, fsys vfs.FS, size map[uint64]int) *collected {
	t.Helper()
	c := &collected{t: t, size: size}
	must(t, Salvage(context.Background(), options(fsys, true), c))
	return c
}

func TestSalvageOfAnIntactLog(t *testing.T) {
	fsys, want := aLongLog(t)
	c := salvage(t, fsys, want.size)
	if len(c.seqs) != 60 || len(c.lost) != 0 {
		t.Fatalf("%d records, lost %v", len(c.seqs), c.lost)
	}
	who, err := Databases(fsys, dir)
	must(t, err)
	if who[database] < 4 || len(who) != 1 {
		t.Fatalf("databases: %v", who)
	}
}

// Whatever is damaged, what is whole comes back, what is not is reported, and nothing else is lost.
func TestSalvageOfDamagedLogs(t *testing.T) {
	intact, want := aLongLog(t)
	names, err := intact.List(dir)
	must(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		fsys := intact.KillImage()
		name := dir + "/" + names[rng.IntN(len(names))]
		what := ""
		f, err := fsys.OpenReadWrite(name)
		must(t, err)
		size, err := f.Size()
		must(t, err)
		switch round % 3 {
		case 0:
			at := rng.Int64N(size)
			_, err = f.WriteAt([]byte{byte(rng.Uint32() | 1)}, at)
			what = fmt.Sprintf("a byte of %s at %d", name, at)
		case 1:
			at := rng.Int64N(size)
			err = f.Truncate(at)
			what = fmt.Sprintf("%s cut at %d", name, at)
		case 2:
			_, err = f.WriteAt(make([]byte, 128), 0)
			_, err2 := f.WriteAt(make([]byte, 128), size-blockSize)
			must(t, err2)
			copy := []byte(magic)
			_, err2 = f.WriteAt(copy, 0)
			must(t, err2)
			what = "both headers of " + name
		}
		must(t, err)
		must(t, f.Close())
		c := salvage(t, fsys, want.size)
		if !slices.IsSorted(c.seqs) {
			t.Fatalf("%s: %v", what, c.seqs)
		}
		missing := int(c.newest()) - len(c.seqs)
		if missing > 0 && len(c.lost) == 0 && c.seqs[0] == 1 {
			t.Fatalf("%s: %d records are missing and nothing is reported", what, missing)
		}
		newest := name == dir+"/"+names[len(names)-1]
		if round%3 != 1 && !newest && len(c.seqs) < 60-3 {
			t.Fatalf("%s: %d records, lost %v", what, len(c.seqs), c.lost)
		}
	}
}

func TestSalvageOfNothing(t *testing.T) {
	fsys := memfs.New()
	if c := salvage(t, fsys, nil); len(c.seqs) != 0 {
		t.Fatal(c.seqs)
	}
	if who, err := Databases(fsys, dir); err != nil || len(who) != 0 {
		t.Fatal(who, err)
	}
}

// A database may go on without its log and come back. What was committed since is not taken for a torn end because it does not follow on
// what the log had before.
func TestSalvageBehindWhatTheLogNeverHad(t *testing.T) {
	fsys := newFS(t)
	l, err := Create(options(fsys, true), 1)
	must(t, err)
	size := map[uint64]int{}
	write := func(seq uint64) {
		size[seq] = 100
		_, err := l.Append(seq, payload(seq, size[seq]))
		must(t, err)
		must(t, l.Sync())
	}
	write(1)
	write(2)
	end := l.Position()
	must(t, l.Close())
	o := options(fsys, true)
	o.Seq = 1000
	l, _, err = Recover(o, end, (&replayed{}).add)
	must(t, err)
	write(1001)
	c := salvage(t, fsys.KillImage(), size)
	if !slices.Equal(c.seqs, []uint64{1, 2, 1001}) || len(c.lost) != 0 {
		t.Errorf("records %v, lost %v", c.seqs, c.lost)
	}
	must(t, l.Close())
}
