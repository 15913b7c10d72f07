// Package fault makes every call that changes what is stored fail once, in every way that file systems know, and every call that
// reads, and looks at what the database makes of it: errors that say what happened, nothing acknowledged lost, nothing left open. TestStorm
// and its like have faults that last: under random programs, of documents and clients of the server too, and under several writers at once.
package fault

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

var deep = flag.Bool("deep", false, "every call instead of one of many, and more storms")

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // there is little that stays, and much that is garbage soon
	goleak.VerifyTestMain(m)
}

// fact is one commit: pairs that are written together, and whether that was acknowledged.
type fact struct {
	pairs map[string][]byte
	acked bool
}

// run carries a workload out on a file system that fails once.
type run struct {
	o     *pando.Options
	db    *pando.DB
	facts []fact
	errs  []error
	n     int
}

func (r *run) note(err error) {
	if err != nil {
		r.errs = append(r.errs, err)
	}
}

func (r *run) put(length int) {
	r.n++
	k, v := fmt.Sprintf("key%05d", r.n), bytes.Repeat([]byte{byte(r.n)}, length)
	err := r.db.Put([]byte(k), v)
	r.note(err)
	r.facts = append(r.facts, fact{map[string][]byte{k: v}, err == nil})
}

func (r *run) batch(count, length int) {
	f := fact{pairs: map[string][]byte{}}
	b := r.db.NewBatch()
	defer b.Reset()
	var err error
	for i := range count {
		r.n++
		k, v := fmt.Sprintf("key%05d", r.n), bytes.Repeat([]byte{byte(i)}, length)
		f.pairs[k] = v
		if e := b.Put([]byte(k), v); e != nil {
			err = e
		}
	}
	if e := r.db.Write(b); e != nil || err != nil {
		err = errors.Join(err, e)
		if e == nil {
			err = fmt.Errorf("a batch that refused a write was written: %w", err)
		}
	}
	r.note(err)
	f.acked = err == nil
	r.facts = append(r.facts, f)
}

func (r *run) must(err error) { r.note(err) }

// pairs counts what the first n commits have written, of those that were acknowledged.
func (r *run) pairs(n int) (pairs int64) {
	for _, f := range r.facts[:n] {
		if f.acked {
			pairs += int64(len(f.pairs))
		}
	}
	return pairs
}

var ctx = context.Background()

// workloads end with the database open. They go on after errors.
var workloads = map[string]func(*run){
	"write": func(r *run) {
		for range 20 {
			r.put(20)
		}
		r.put(5000)
		r.batch(20, 50)
		r.must(r.db.Sync())
	},
	"checkpoint": func(r *run) {
		for range 3 {
			for range 10 {
				r.put(300)
			}
			r.must(r.db.Checkpoint(ctx))
		}
		r.put(20)
	},
	"fill": func(r *run) { // rolls logs, freezes memtables
		for range 60 {
			r.put(9000)
			r.batch(4, 90)
		}
	},
	"bulk": func(r *run) {
		r.put(20)
		r.batch(3000, 90)
		r.put(20)
	},
	"compact": func(r *run) {
		for range 30 {
			r.put(3000)
		}
		r.must(r.db.Checkpoint(ctx))
		r.must(r.db.Compact(ctx, pando.CompactOptions{}))
		r.put(3000)
	},
	"backup": func(r *run) {
		r.put(3000)
		r.must(r.db.Backup(ctx, "backup"))
		r.put(3000)
		r.must(r.db.Backup(ctx, "backup"))
	},
	"codec": func(r *run) {
		for range 20 {
			r.put(3000)
		}
		r.must(r.db.Compact(ctx, pando.CompactOptions{Compression: pando.Zstd}))
		r.put(300)
		r.must(r.db.Compact(ctx, pando.CompactOptions{Compression: pando.None}))
		r.put(300)
		r.must(r.db.Checkpoint(ctx))
	},
	"restore": func(r *run) {
		r.batch(20, 300)
		r.must(r.db.Backup(ctx, "backup"))
		o := *r.o
		o.ReadOnly = true
		backup, err := pando.Open("backup", &o)
		if err == nil {
			r.must(backup.Backup(ctx, "restored"))
			r.must(backup.Close())
		} else if !errors.Is(err, pando.ErrUnfinished) && !errors.Is(err, pando.ErrNotFound) || len(r.errs) == 0 {
			r.must(err)
		}
		r.put(20)
	},
	"held": func(r *run) { // memtables and values that a snapshot keeps
		r.batch(20, 90)
		snap := r.db.Snapshot()
		defer func() { r.must(snap.Close()) }()
		want := len(r.facts)
		for range 30 {
			r.put(9000)
			r.batch(4, 90)
		}
		r.must(r.db.DeleteRange([]byte("a"), []byte("b")))
		r.must(r.db.Default().PutReader([]byte("key00000"), bytes.NewReader(make([]byte, 300_000))))
		r.must(r.db.Checkpoint(ctx))
		r.must(r.db.Checkpoint(ctx))
		if n, err := snap.Count(nil, nil); err != nil {
			r.must(err)
		} else if at := r.pairs(want); n != at {
			r.must(fmt.Errorf("a snapshot of %d pairs has %d", at, n))
		}
	},
	"keyspaces": func(r *run) {
		for i := range 4 {
			ks, err := r.db.Keyspace(fmt.Sprint("space", i), &pando.KeyspaceOptions{Layout: []pando.Layout{pando.Tree, pando.Hash}[i%2]})
			r.must(err)
			if err == nil {
				r.must(ks.Put([]byte("k"), make([]byte, 3000)))
			}
			r.must(r.db.Checkpoint(ctx))
			if err == nil {
				r.must(r.db.DropKeyspace(fmt.Sprint("space", i)))
			}
			r.put(20)
		}
	},
	"transactions": func(r *run) {
		for range 5 {
			f := fact{pairs: map[string][]byte{}}
			err := r.db.Update(func(tx *pando.Tx) error {
				for range 10 {
					r.n++
					k, v := fmt.Sprintf("key%05d", r.n), make([]byte, 150)
					f.pairs[k] = v
					if err := tx.Put([]byte(k), v); err != nil {
						return err
					}
				}
				_, err := tx.Count(nil, nil)
				return err
			})
			r.note(err)
			f.acked = err == nil
			r.facts = append(r.facts, f)
		}
	},
}

// check compares what a database holds with the facts.
func (r *run) check(db *pando.DB) error {
	for _, f := range r.facts {
		found := 0
		for k, v := range f.pairs {
			got, err := db.Get([]byte(k))
			switch {
			case errors.Is(err, pando.ErrNotFound):
			case err != nil:
				return fmt.Errorf("get %s: %w", k, err)
			case !bytes.Equal(got, v):
				return fmt.Errorf("%s has %d bytes, want %d", k, len(got), len(v))
			default:
				found++
			}
		}
		if found != len(f.pairs) && (f.acked || found > 0) {
			return fmt.Errorf("%d of %d pairs of a commit are there, acknowledged: %v", found, len(f.pairs), f.acked)
		}
	}
	return verify(db)
}

// verify checks a database. A root slot that was being written may be damaged; the next checkpoint repairs it.
func verify(db *pando.DB) error {
	rep, err := db.Check(ctx)
	if err != nil {
		return err
	}
	for _, d := range rep.Damage {
		var where *pando.CorruptError
		if errors.As(d.Err, &where) && where.File == "ROOT" {
			continue
		}
		err = errors.Join(err, d.Err)
	}
	return err
}

var kinds = map[string]faultfs.Rule{
	"io error":       {Ops: faultfs.Mutating},
	"disk full":      {Ops: faultfs.Mutating &^ faultfs.Ops(faultfs.OpSync, faultfs.OpSyncDir, faultfs.OpLock), Err: vfs.ErrNoSpace},
	"short write":    {Ops: faultfs.Ops(faultfs.OpWriteAt), Fault: faultfs.ShortWrite},
	"short, full":    {Ops: faultfs.Ops(faultfs.OpWriteAt), Fault: faultfs.ShortWrite, Err: vfs.ErrNoSpace},
	"sync":           {Ops: faultfs.Ops(faultfs.OpSync, faultfs.OpSyncDir)},
	"sync drops":     {Ops: faultfs.Ops(faultfs.OpSync), Fault: faultfs.DropSync},
	"sync says once": {Ops: faultfs.Ops(faultfs.OpSync), Fault: faultfs.DropSyncOnce},
	"full from then": {Ops: faultfs.Ops(faultfs.OpCreate, faultfs.OpLink, faultfs.OpMkdirAll, faultfs.OpWriteAt, faultfs.OpAllocate), Err: vfs.ErrNoSpace, Times: -1},
	"no mapping":     {Ops: faultfs.Ops(faultfs.OpMap), Err: errors.ErrUnsupported},
}

func TestEveryCallFails(t *testing.T) {
	for name, work := range workloads {
		for kind, rule := range kinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				step := usualCallStep
				if rule.Ops&^faultfs.Ops(faultfs.OpSync, faultfs.OpSyncDir, faultfs.OpMap) == 0 {
					step = usualSyncStep // there are few of them
				}
				if *deep {
					step = 1
				}
				hits := 0
				for k := len(name) % step; ; k += step {
					rule.Skip = k
					var hit bool
					var err error
					synctest.Test(t, func(*testing.T) { hit, err = once(work, rule, kind) }) // where pauses cost no time
					if err != nil {
						t.Errorf("call %d: %v", k, err)
						if hits++; hits > 2 {
							return
						}
					}
					if !hit {
						return
					}
				}
			})
		}
	}
}

// once runs a workload with one fault in it. hit tells whether it came to that.
func once(work func(*run), rule faultfs.Rule, kind string) (hit bool, err error) {
	base := memfs.New()
	ffs := faultfs.New(base)
	o := &pando.Options{FS: ffs, MemoryBytes: 1 << 20, ValueThreshold: 100}
	r := &run{o: o}
	ffs.Set(rule)
	r.db, err = pando.Open("db", o)
	if err != nil {
		if ffs.Triggered() == 0 {
			return false, fmt.Errorf("open: %w", err)
		}
		if leaks := ffs.Leaks(); len(leaks) > 0 {
			return true, fmt.Errorf("open failed (%w) and left open %v", err, leaks)
		}
		ffs.Set()
		if r.db, err = pando.Open("db", o); err != nil {
			return true, fmt.Errorf("second open: %w", err)
		}
		return true, r.db.Close()
	}
	work(r)
	hit = ffs.Triggered() > 0
	if !hit && len(r.errs) > 0 {
		return hit, fmt.Errorf("errors without a fault: %w", errors.Join(r.errs...))
	}
	for _, e := range r.errs {
		if err := judge(e, rule.Err); err != nil {
			return hit, errors.Join(err, r.db.Close())
		}
	}
	if err := r.check(r.db); err != nil {
		return hit, errors.Join(fmt.Errorf("while open: %w (errors so far: %v)", err, r.errs), r.db.Close())
	}
	ffs.Set()
	if errors.Is(rule.Err, vfs.ErrNoSpace) || kind == "no mapping" {
		r.errs = nil
		for range 5 {
			r.put(2000)
		}
		r.must(r.db.Checkpoint(ctx))
		if len(r.errs) > 0 {
			return hit, errors.Join(fmt.Errorf("space is back, but: %w", errors.Join(r.errs...)), r.db.Close())
		}
	}
	cut := base.CrashImage(memfs.Policy{})
	closed := r.db.Close()
	if closed != nil && len(r.errs) == 0 && hit && judge(closed, rule.Err) != nil {
		return hit, fmt.Errorf("close: %w", closed)
	}
	if leaks := ffs.Leaks(); len(leaks) > 0 {
		return hit, fmt.Errorf("left open: %v", leaks)
	}
	if !hit && kind != "io error" {
		return hit, nil // it is the same for all kinds
	}
	for what, image := range map[string]*memfs.FS{"power cut": cut, "reopen": base, "power cut behind close": base.CrashImage(memfs.Policy{})} {
		db, err := pando.Open("db", &pando.Options{FS: image, MemoryBytes: 1 << 20, ValueThreshold: 100})
		if err != nil {
			return hit, fmt.Errorf("%s: %w (errors before: %v)", what, err, r.errs)
		}
		if err := errors.Join(r.check(db), db.Put([]byte("z"), nil), db.Close()); err != nil {
			return hit, fmt.Errorf("%s: %w (errors before: %v)", what, err, r.errs)
		}
	}
	return hit, nil
}

// judge checks that an error says what happened.
func judge(err, injected error) error {
	switch {
	case errors.Is(err, pando.ErrFailed), errors.Is(err, faultfs.ErrInjected):
		return nil
	case injected != nil && errors.Is(err, injected):
		if errors.Is(injected, vfs.ErrNoSpace) && !errors.Is(err, pando.ErrDiskFull) {
			return fmt.Errorf("a full disk is not called that: %w", err)
		}
		return nil
	}
	return fmt.Errorf("an error that says nothing of its cause: %w", err)
}

// noise is a value that belongs to a key and does not compress.
func noise(key string) []byte {
	h := sha256.Sum256([]byte(key))
	b := make([]byte, 480)
	_, _ = rand.NewChaCha8(h).Read(b)
	return b
}

// TestDiskFull fills a small disk to the byte, deletes, and goes on, many times.
func TestDiskFull(t *testing.T) {
	base := memfs.New()
	base.SetCapacity(4 << 20)
	o := &pando.Options{FS: base, MemoryBytes: 1 << 20, ValueThreshold: 100}
	db, err := pando.Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	rounds := usualFullings
	if *deep {
		rounds = 100
	}
	for round := range rounds {
		var acked []string
		full := false
		for i := range 20000 {
			k := fmt.Sprintf("%d/%05d", round, i)
			err := db.Put([]byte(k), noise(k))
			if err == nil {
				acked = append(acked, k)
				continue
			}
			if !errors.Is(err, pando.ErrDiskFull) {
				t.Fatalf("round %d, put %d: %v", round, i, err)
			}
			full = true
			break
		}
		if !full {
			t.Fatalf("round %d: the disk is never full", round)
		}
		for _, k := range acked {
			if v, err := db.Get([]byte(k)); err != nil || !bytes.Equal(v, noise(k)) {
				t.Fatalf("round %d: %s: %d bytes, %v", round, k, len(v), err)
			}
		}
		if round%2 == 1 { // reopen a full disk
			if err := db.Close(); err != nil && !errors.Is(err, pando.ErrDiskFull) {
				t.Fatalf("round %d: close: %v", round, err)
			}
			base.SetCapacity(5 << 20) // recovery wants a log to write to
			if db, err = pando.Open("db", o); err != nil {
				t.Fatalf("round %d: reopen: %v", round, err)
			}
		} else {
			base.SetCapacity(5 << 20)
		}
		if n, err := db.Count(nil, nil); err != nil || n != int64(len(acked)) {
			t.Fatalf("round %d: %d pairs, %v, want %d", round, n, err, len(acked))
		}
		if err := db.DeleteRange(nil, nil); err != nil {
			t.Fatalf("round %d: delete: %v", round, err)
		}
		for range 3 {
			if err := db.Checkpoint(ctx); err != nil {
				t.Fatalf("round %d: checkpoint: %v (%d bytes used)", round, err, base.Used())
			}
		}
		base.SetCapacity(4 << 20)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
