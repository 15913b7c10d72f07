package corrupt

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

var (
	stride = flag.Int("sweep.stride", defaultStride, "damage every n-th byte, sector and length")
	bits   = flag.Int("sweep.bits", 1, "flip so many bits of each byte, one at a time")
	seed   = flag.Uint64("sweep.seed", 1, "of the random choices")
)

// mostTime is how long one damaged database may keep anybody busy: far more than any machine takes, far less than what a file could ask for.
const mostTime = 3 * time.Minute

// sweep is one kind of damage, swept over the sample.
type sweep struct {
	t    *testing.T
	s    *sample
	keys map[string][]string
	rng  *rand.Rand

	stride                                 int
	cases, harmless, refused, partial, cut int
}

func newSweep(t *testing.T) *sweep {
	w := &sweep{t: t, s: newSample(t), keys: map[string][]string{}, rng: rand.New(rand.NewPCG(*seed, 0)), stride: *stride}
	for ks, pairs := range w.s.history {
		all := slices.Sorted(maps.Keys(pairs))
		for i := 0; i < len(all); i += 1 + len(all)/200 { // iteration sees them all
			w.keys[ks] = append(w.keys[ks], all[i])
		}
	}
	if testing.Short() {
		w.stride *= 8
	}
	t.Cleanup(func() {
		t.Logf("seed %d: %d cases: %d harmless, %d refused by Open, %d answered in part, %d without the end of the log",
			*seed, w.cases, w.harmless, w.refused, w.partial, w.cut)
	})
	return w
}

// inLog reports whether a file belongs to the log, damage to whose end may be taken for a torn tail.
func inLog(name string) bool { return strings.Contains(name, "/wal/") }

// run tries one damage to a file. least is the number of the oldest state that may come back.
func (w *sweep) run(what, name string, least int, damage func(fsys *memfs.FS)) {
	w.t.Helper()
	w.cases++
	fsys := w.s.image.KillImage()
	damage(fsys)
	start := time.Now()
	states := w.s.states[least:]
	possible := func(ks, key, value string, ok bool) bool {
		return slices.ContainsFunc(states, func(c content) bool {
			v, there := c[ks][key]
			return there == ok && v == value
		})
	}
	a, err := readAll(fsys, w.s.names, possible, w.keys)
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	state := w.judge(what, a, states)
	w.salvage(what, name, fsys, a, state, least)
	if d := time.Since(start); d > mostTime {
		w.t.Errorf("%s: took %v", what, d)
	}
}

// judge checks that what was answered in full is one of the states.
func (w *sweep) judge(what string, a *answers, states []content) content {
	w.t.Helper()
	if a.opened != nil {
		w.refused++
		return nil
	}
	if a.damage > 0 {
		w.partial++
	}
	for i, c := range slices.Backward(states) {
		fits := true
		for ks := range c {
			if got, ok := a.content[ks]; !ok || !a.partial[ks] && !maps.Equal(got, c[ks]) {
				fits = false
			}
		}
		if fits && len(a.content) == len(c) {
			if i < len(states)-1 {
				w.cut++
			} else if a.damage == 0 {
				w.harmless++
			}
			return c
		}
	}
	w.t.Fatalf("%s: what is readable fits none of the %d states: keyspaces %v", what, len(states), slices.Sorted(maps.Keys(a.content)))
	return nil
}

// salvage recovers the database, as Open and Close have left it, and compares. What Open answered in full must come back in
// full.
func (w *sweep) salvage(what, name string, fsys *memfs.FS, a *answers, state content, least int) {
	w.t.Helper()
	before := map[string][]byte{}
	for _, f := range list(w.t, fsys, dir) {
		if path.Base(f) != "LOCK" {
			before[f] = contents(w.t, fsys, f)
		}
	}
	report, err := pando.Salvage(context.Background(), dir, "new", options(fsys))
	if err != nil {
		if errors.Is(err, pando.ErrVersion) {
			return
		}
		w.t.Fatalf("%s: salvage: %v", what, err)
	}
	for f, want := range before {
		if !bytes.Equal(contents(w.t, fsys, f), want) {
			w.t.Fatalf("%s: salvage changed %s", what, f)
		}
	}
	got := readSalvaged(w.t, fsys)
	for ks := range got {
		// A keyspace that only the log knew has lost its name together with the record that made it.
		if strings.HasPrefix(ks, "keyspace-") && got["late"] == nil && len(report.Lost) > 0 {
			got["late"] = got[ks]
			delete(got, ks)
		}
	}
	w.compare(what, name, got, report, least)
	if a.opened == nil && a.damage == 0 && !got.equal(state) && !got.equal(w.s.final()) {
		w.t.Fatalf("%s: Open answers in full, Salvage does not\n%s", what, report)
	}
}

// readSalvaged returns all that the new database holds.
func readSalvaged(t *testing.T, fsys *memfs.FS) content {
	t.Helper()
	db, err := pando.Open("new", options(fsys))
	must(t, err)
	defer db.Close()
	got := content{}
	infos, err := db.Keyspaces()
	must(t, err)
	for _, info := range infos {
		k, err := db.Keyspace(info.Name, nil)
		must(t, err)
		got[info.Name] = map[string]string{}
		for key, value := range k.Range(nil, nil) {
			got[info.Name][string(key)] = string(value)
		}
		must(t, k.Err())
	}
	report, err := db.Check(context.Background())
	must(t, err)
	must(t, report.Err())
	return got
}

// compare checks that every difference from one of the states that may come back is one that the report speaks of, and that
// no key has a value that it never had.
func (w *sweep) compare(what, name string, got content, report *pando.SalvageReport, least int) {
	w.t.Helper()
	var wrong string
	for _, c := range slices.Backward(w.s.states[least:]) {
		d := w.differences(name, c, got, report)
		if d == "" {
			return
		}
		if wrong == "" {
			wrong = d
		}
	}
	w.t.Fatalf("%s: salvage %s\n%s", what, wrong, report)
}

// differences returns the first difference between what should have come back and what has, unless it was reported.
func (w *sweep) differences(name string, want, got content, report *pando.SalvageReport) string {
	all := false // something was lost of which the keys are not known
	for _, l := range report.Lost {
		all = all || !l.Keys
	}
	reported := func(ks, key string) bool {
		return slices.ContainsFunc(report.Lost, func(l pando.Loss) bool {
			if ks == table && !l.Keys {
				return l.Keyspace == ks // of a hash table the keys that are lost are those of certain hashes
			}
			return l.Keys && l.Keyspace == ks && string(l.Lo) <= key && (l.Hi == nil || key < string(l.Hi))
		})
	}
	for ks, pairs := range w.s.history {
		for key, values := range pairs {
			v, ok := got[ks][key]
			have, there := want[ks][key]
			switch {
			case ok == there && v == have:
			case ok && !values[v]:
				return fmt.Sprintf("gives %q in %q a value that it never had", key, ks)
			case reported(ks, key) || all && !exact(name):
			default:
				return fmt.Sprintf("lost %q in %q (there: %v) without saying so", key, ks, ok)
			}
		}
	}
	for ks, pairs := range got {
		for key := range pairs {
			if w.s.history[ks][key] == nil {
				return fmt.Sprintf("made %q in %q up", key, ks)
			}
		}
	}
	return ""
}

// exact reports whether nothing at all may be lost when only this file is damaged.
func exact(name string) bool { return path.Base(name) == "ROOT" }

// least returns the number of the oldest state that damage to a file may bring back: nothing in the log says of its last
// record that it was synced, so that damage to it, or to the value that it refers to, looks like a torn tail. n is how many
// records one damage can hide together with all that says so.
func (w *sweep) least(name string, n int) int {
	switch {
	case name == w.s.tail:
		n = 1
	case !inLog(name):
		n = 0
	}
	return max(len(w.s.states)-1-n, 0)
}

func TestIntact(t *testing.T) {
	w := newSweep(t)
	w.run("no damage", "", len(w.s.states)-1, func(*memfs.FS) {})
	if w.harmless != 1 {
		t.Fatal("the sample itself is not readable")
	}
	for _, f := range w.s.files {
		t.Log(f, size(t, w.s.image, f))
	}
}

// places chooses the bytes of a file to damage: every stride-th one, and of those in the middle of zeros, of which a log file
// has many, fewer.
func (w *sweep) places(name string) []int {
	b, err := vfs.ReadFile(w.s.image, name, 1<<30)
	must(w.t, err)
	const near, rarely = 64, 64
	var out []int
	for at, wait := 0, w.rng.IntN(w.stride); at < len(b); at++ {
		cost := 1
		if len(bytes.Trim(b[max(at-near, 0):min(at+near, len(b))], "\x00")) > 0 {
			cost = rarely
		}
		if wait -= cost; wait < 0 {
			out = append(out, at)
			wait += w.stride * rarely
			if w.stride == 1 {
				wait = 0
			}
		}
	}
	return out
}

func TestFlippedBits(t *testing.T) {
	w := newSweep(t)
	for _, name := range w.s.files {
		for _, at := range w.places(name) {
			for _, bit := range w.rng.Perm(8)[:*bits] {
				w.run(fmt.Sprintf("bit %d of byte %d of %s", bit, at, name), name, w.least(name, 1), func(fsys *memfs.FS) {
					change(t, fsys, name, func(b []byte) []byte { b[at] ^= 1 << bit; return b })
				})
			}
		}
	}
}

const (
	sector = 512
	// sectorShare is how many times as dense the damage to sectors is as that to bytes, by number.
	sectorShare = 100
)

func TestZeroedSectors(t *testing.T) {
	w := newSweep(t)
	step := max(w.stride/sectorShare, 1)
	for _, name := range w.s.files {
		n := int(size(t, w.s.image, name)) / sector
		for i := w.rng.IntN(step); i < n; i += step {
			w.run(fmt.Sprintf("sector %d of %s zeroed", i, name), name, w.least(name, 9), func(fsys *memfs.FS) {
				change(t, fsys, name, func(b []byte) []byte { clear(b[i*sector:][:sector]); return b })
			})
		}
	}
}

func TestCutFiles(t *testing.T) {
	w := newSweep(t)
	for _, name := range w.s.files {
		for _, at := range w.places(name) {
			w.run(fmt.Sprintf("%s cut at %d", name, at), name, w.least(name, 9), func(fsys *memfs.FS) {
				change(t, fsys, name, func(b []byte) []byte { return b[:at] })
			})
		}
	}
}

func TestSwappedBlocks(t *testing.T) {
	w := newSweep(t)
	step := max(w.stride/sectorShare, 1)
	for _, name := range w.s.files {
		n := int(size(t, w.s.image, name)) / sector
		for i := w.rng.IntN(step); i < n; i += step {
			j := w.rng.IntN(n)
			w.run(fmt.Sprintf("sectors %d and %d of %s swapped", i, j, name), name, w.least(name, 9), func(fsys *memfs.FS) {
				change(t, fsys, name, func(b []byte) []byte {
					x := bytes.Clone(b[i*sector:][:sector])
					copy(b[i*sector:][:sector], b[j*sector:][:sector])
					copy(b[j*sector:], x)
					return b
				})
			})
		}
	}
}

func TestGarbageAndMissingFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	w := newSweep(t)
	for _, name := range w.s.files {
		for _, n := range []int{1, 100, 5000} {
			w.run(fmt.Sprintf("%d bytes of garbage behind %s", n, name), name, w.least(name, 9), func(fsys *memfs.FS) {
				change(t, fsys, name, func(b []byte) []byte {
					for range n {
						b = append(b, byte(w.rng.Uint32()))
					}
					return b
				})
			})
		}
		w.run(name+" removed", name, w.least(name, 9), func(fsys *memfs.FS) { must(t, fsys.Remove(name)) })
	}
	for _, name := range []string{"notes.txt", "segments/0000ffff.seg", "segments/x", "wal/0000ffff.wal", "wal/x", "spill/x"} {
		w.run("garbage in "+name, name, len(w.s.states)-1, func(fsys *memfs.FS) {
			must(t, fsys.MkdirAll(path.Dir(path.Join(dir, name))))
			f, err := fsys.Create(path.Join(dir, name))
			must(t, err)
			_, err = f.WriteAt(bytes.Repeat([]byte("garbage "), 1000), 0)
			must(t, err)
			must(t, f.Close())
		})
	}
}
