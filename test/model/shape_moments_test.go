package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// usual is what may come behind each step of a program, moments what may come behind some: those of ownMoments, and operations of other programs.
var (
	usual   = []string{"none", "none", "checkpoint", "checkpoint", "reread", "cold", "pause", "kill", "powerCut", "cutInside", "reopen", "checkpointBeside", "walkBeside"}
	moments = []string{
		"checkpoint", "checkpoint", "sync", "reread", "pause", "longPause", "kill", "powerCut", "cutInside", "reopen", "reopenOther", "readOnly",
		"compact", "backup", "salvage", "changes", "check", "metrics", "counts", "renew",
		"checkpointBeside", "compactBeside", "walkBeside",
		"snapOpen", "snapOpen", "snapRead", "snapCheckAll", "snapIter", "snapClose", "iterOpen", "iterMove", "iterClose", "valueOpen", "valueRead",
		"txBegin", "txRead", "txWrite", "txCommit",
	}
	ownMoments = map[string]func(*world){
		"none":      func(*world) {},
		"pause":     func(w *world) { time.Sleep(time.Duration(w.rng.IntN(200)) * time.Millisecond) },
		"longPause": func(w *world) { time.Sleep(time.Duration(1+w.rng.IntN(20)) * time.Second) },
		"reread":    (*world).reread,
		"cold":      func(w *world) { w.opReopen(); w.reread() },
		"cutInside": (*world).cutInside,
		"counts":    (*world).counts,
		"salvage":   (*world).salvage,
		"renew":     (*world).renew,

		"checkpointBeside": func(w *world) { w.startBeside(func(db *pando.DB) error { return db.Checkpoint(ctx) }) },
		"compactBeside": func(w *world) {
			w.startBeside(func(db *pando.DB) error { return db.Compact(ctx, pando.CompactOptions{}) })
		},
		"walkBeside": (*world).walkBeside,
	}
	ctx = context.Background()
)

// moment does what a name says. What is at work beside the program goes on to the end of the next step.
func (w *world) moment(name string) {
	w.trace = append(w.trace, name)
	if own := ownMoments[name]; own != nil {
		own(w)
		return
	}
	at := slices.IndexFunc(ops, func(o op) bool { return o.name == name })
	if at < 0 {
		w.fail("there is no moment %q", name)
	}
	ops[at].run(w)
}

// startBeside begins what goes on beside the next step. When the database is closed meanwhile, it ends with that error.
func (w *world) startBeside(fn func(*pando.DB) error) {
	if w.beside != nil {
		return
	}
	done, db := make(chan error, 1), w.db
	w.beside = done
	go func() {
		defer func() {
			if x := recover(); x != nil {
				done <- fmt.Errorf("%v", x)
			}
		}()
		done <- fn(db)
	}()
}

func (w *world) endBeside() {
	if w.beside != nil {
		err := <-w.beside
		w.beside = nil
		if !errors.Is(err, pando.ErrClosed) {
			w.must(err, "what went on beside a step")
		}
	}
}

// walkBeside looks at everything as it is now, while it changes.
func (w *world) walkBeside() {
	if w.beside != nil {
		return
	}
	snap, state := w.db.Snapshot(), w.state.Clone()
	spaces := maps.Clone(w.ks)
	w.startBeside(func(*pando.DB) (err error) {
		defer func() {
			if _, closed := snap.Get(nil); errors.Is(closed, pando.ErrClosed) {
				err = closed
				if x := recover(); x != nil {
					_ = x.(failure)
				}
			}
		}()
		for name := range state {
			w.checkAll(snap.In(spaces[name]), state, name)
		}
		return snap.Close()
	})
}

// reread settles everything and asks for some keys as often as a cache may want to be asked before it takes a page.
func (w *world) reread() {
	w.must(w.db.Checkpoint(ctx), "checkpoint")
	for range 3 {
		for range 20 {
			n := w.name()
			w.checkGet(w.ks[n], w.state, n, w.key())
		}
	}
}

// counts compares the number of records that a keyspace is known to have with the model. Those that have expired may be among them.
func (w *world) counts() {
	w.must(w.db.Checkpoint(ctx), "checkpoint")
	list, err := w.db.Keyspaces()
	w.must(err, "keyspaces")
	for _, k := range list {
		live := int64(len(w.state.Pairs(k.Name, Bounds{})))
		if most := int64(len(w.state[k.Name])); k.Exact && (k.Records < live || k.Records > most) {
			w.fail("%q has %d records, want %d to %d", k.Name, k.Records, live, most)
		}
	}
}

// renew drops a keyspace and makes it again, perhaps with other options.
func (w *world) renew() {
	before := w.state.Names()
	w.opDropKeyspace()
	for _, name := range before {
		if w.state[name] == nil {
			w.create(name, w.kindOf(name))
		}
	}
}

// salvage saves what is not damaged at all: nothing is lost.
func (w *world) salvage() {
	if w.opts.Profile == pando.Bench {
		w.must(w.db.Checkpoint(ctx), "checkpoint")
	}
	o := w.opts
	o.FS = w.fs.afterKill()
	r, err := pando.Salvage(ctx, "db", "salvaged", &o)
	w.must(err, "salvage")
	w.must(r.Err(), "salvage of what is whole")
	db, err := pando.Open("salvaged", &o)
	w.must(err, "open what was salvaged")
	defer db.Close()
	for _, name := range w.state.Names() {
		ks, err := db.Keyspace(name, nil)
		w.must(err, "open a keyspace that was salvaged")
		w.checkAll(ks, w.state, name)
	}
}

// watched is a simulated disk whose calls can be watched.
type watched struct {
	*faultfs.FS
	base *memfs.FS
}

func newWatched(base *memfs.FS) disk { return watched{faultfs.New(base), base} }

func (f watched) afterKill() disk                   { return newWatched(f.base.KillImage()) }
func (f watched) afterPowerCut(p memfs.Policy) disk { return newWatched(f.base.CrashImage(p)) }

// settle is a checkpoint, or a compaction.
func (w *world) settle() error {
	if w.rng.IntN(3) > 0 {
		return w.db.Checkpoint(ctx)
	}
	return w.db.Compact(ctx, pando.CompactOptions{Compression: pando.Compression(w.rng.IntN(4))})
}

// cutInside goes on with what a power cut in the midst of a checkpoint or a compaction leaves.
func (w *world) cutInside() {
	if w.opts.Profile == pando.Bench {
		w.must(w.settle(), "settle")
		return
	}
	w.must(w.db.Sync(), "sync")
	at, fs := int64(w.rng.IntN(40)), w.fs.(watched)
	policy := memfs.Policy{Unsynced: memfs.Unsynced(w.rng.IntN(3)), Seed: w.rng.Uint64(), Torn: 512, Reordered: w.rng.IntN(2) == 0, Stale: w.rng.IntN(2) == 0}
	var calls atomic.Int64
	var image atomic.Pointer[disk]
	fs.OnCall(func(faultfs.Op, string) error {
		if calls.Add(1) == at {
			cut := fs.afterPowerCut(policy)
			image.Store(&cut)
		}
		return nil
	})
	w.must(w.settle(), "settle")
	fs.OnCall(nil)
	if cut := image.Load(); cut != nil {
		w.endBeside()
		w.dropHeld()
		w.must(w.db.Close(), "close")
		w.fs = *cut
		w.open()
		w.must(w.db.Checkpoint(ctx), "checkpoint") // a slot of the root may be torn until then
		w.checkEverything()
	}
}

// together compares what a Reader tells of several keys at once with the model.
func (w *world) together(p *plot) {
	var r pando.Reader
	ks := w.ks[p.ks]
	w.must(r.Open(w.db, ks), "open a reader")
	defer r.Close()
	var keys, there, got pando.List
	var asked [][]byte
	var want []string
	for range 1 + w.rng.IntN(40) {
		key := w.key()
		asked = append(asked, key)
		if v, ok := w.state.Get(p.ks, string(key)); ok {
			there.Append(key)
			want = append(want, v)
		}
		keys.Append(key)
	}
	absent := make([]bool, len(asked))
	w.must(r.Absent(absent, ks, asked), "absent")
	for i, key := range asked {
		if _, ok := w.state.Get(p.ks, string(key)); ok == absent[i] {
			w.fail("%q of %q is absent: %t", short(string(key)), p.ks, absent[i])
		}
	}
	w.must(r.GetMany(&got, ks, &there, 0, len(want)), "get many")
	for i, v := range want {
		if !bytes.Equal(got.At(i), []byte(v)) {
			w.fail("get many of %q: %q is %q, want %q", p.ks, short(string(there.At(i))), short(string(got.At(i))), short(v))
		}
	}
}
