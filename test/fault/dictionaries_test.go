package fault

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

var (
	wordsSeed  = flag.Uint64("words.seed", 1, "the first seed of the compactions that do not come to their end")
	wordsSeeds = flag.Int("words.seeds", 1, "how many seeds there are")
)

// wordsRun is a database whose leaves are compressed with dictionaries, and what it ought to hold.
type wordsRun struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	base *memfs.FS
	fs   *faultfs.FS
	db   *pando.DB
	want map[string]map[string][]byte

	unsure      string // a key of the keyspace "one" whose last write failed
	unsureValue []byte
}

// TestCompactionsWithDictionaries compacts with zstd again and again: to the end, until the context ends, or until a call fails. Between
// them records change, keyspaces go and come, and there are kills and power cuts. All is there each time, and nothing is damaged.
func TestCompactionsWithDictionaries(t *testing.T) {
	for i := range uint64(*wordsSeeds) {
		seed := *wordsSeed + i
		r := &wordsRun{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 13)), base: memfs.New(), want: map[string]map[string][]byte{}}
		r.plug()
		for range usualWordRounds {
			r.round()
		}
		r.put("one", 0, usualWords)
		r.must("compact", r.db.Compact(ctx, pando.CompactOptions{}))
		if !r.hasDictionary() {
			t.Errorf("seed %d: there is no dictionary", seed)
		}
		r.must("close", r.db.Close())
	}
}

func (r *wordsRun) must(what string, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("seed %d: %s: %v", r.seed, what, err)
	}
}

func (r *wordsRun) plug() {
	r.t.Helper()
	r.fs = faultfs.New(r.base)
	r.open()
}

func (r *wordsRun) open() {
	r.t.Helper()
	var err error
	r.db, err = pando.Open("db", &pando.Options{FS: r.fs, MemoryBytes: 1 << 20, Compression: pando.Zstd})
	r.must("open", err)
	r.look("after opening")
}

func (r *wordsRun) keyspace(name string) *pando.Keyspace {
	r.t.Helper()
	ks, err := r.db.Keyspace(name, nil)
	r.must("keyspace", err)
	return ks
}

// words is a value of words that many values have, which columns do not make shorter.
func (r *wordsRun) words() (value []byte) {
	for range 4 + r.rng.IntN(6) {
		value = fmt.Appendf(value, "%x ", uint64(r.rng.IntN(400)+1)*0x9e3779b97f4a7c15)
	}
	return value
}

func (r *wordsRun) put(name string, from, to int) {
	r.t.Helper()
	ks := r.keyspace(name)
	if r.want[name] == nil {
		r.want[name] = map[string][]byte{}
	}
	for i := from; i < to; i++ {
		key, value := fmt.Sprintf("%08d", i), r.words()
		r.must("put", ks.PutUnsynced([]byte(key), value))
		r.want[name][key] = value
	}
	r.must("sync", r.db.Sync())
}

// look compares what there is with what there ought to be.
func (r *wordsRun) look(when string) {
	r.t.Helper()
	for name, pairs := range r.want {
		n := 0
		ks := r.keyspace(name)
		if name == "one" {
			r.decide(ks)
		}
		for k, v := range ks.Range(nil, nil) {
			if want, ok := pairs[string(k)]; !ok || !bytes.Equal(v, want) {
				r.t.Fatalf("seed %d: %s: %q/%s has %d bytes, want %d (there: %t)", r.seed, when, name, k, len(v), len(want), ok)
			}
			n++
		}
		r.must("walk", ks.Err())
		if n != len(pairs) {
			r.t.Fatalf("seed %d: %s: %q has %d pairs, want %d", r.seed, when, name, n, len(pairs))
		}
	}
	r.must("check", verify(r.db))
}

// decide finds out what became of a write that failed.
func (r *wordsRun) decide(one *pando.Keyspace) {
	r.t.Helper()
	if r.unsure == "" {
		return
	}
	got, err := one.Get([]byte(r.unsure))
	r.must("get", err)
	if bytes.Equal(got, r.unsureValue) {
		r.want["one"][r.unsure] = r.unsureValue
	}
	r.unsure = ""
}

// writeBeside writes until it is told to stop, so that memtables settle between the rounds of a compaction, which are short then.
func (r *wordsRun) writeBeside(one *pando.Keyspace, stop chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		key, value := fmt.Sprintf("%08d", i*37%usualWords), fmt.Appendf(nil, "beside %d %0200d", i, i)
		if one.Put([]byte(key), value) != nil {
			r.unsure, r.unsureValue = key, value
			return
		}
		r.want["one"][key] = value
	}
}

func (r *wordsRun) round() {
	r.t.Helper()
	name := []string{"one", "two"}[r.rng.IntN(2)]
	switch {
	case len(r.want[name]) == 0:
		r.put(name, 0, usualWords)
	case r.rng.IntN(6) == 0:
		r.must("drop", r.db.DropKeyspace(name))
		delete(r.want, name)
	default:
		from := r.rng.IntN(usualWords)
		r.put(name, from, from+r.rng.IntN(600))
	}
	snap, then := r.db.Snapshot(), maps.Clone(r.want["one"])
	var one *pando.Keyspace
	if then != nil {
		one = r.keyspace("one")
	}
	var beside sync.WaitGroup
	stop := make(chan struct{})
	if len(then) > 0 && r.rng.IntN(2) == 0 {
		beside.Go(func() { r.writeBeside(one, stop) })
	}
	r.compact()
	close(stop)
	beside.Wait()
	r.fs.Set()
	if one != nil {
		n, err := snap.In(one).Count(nil, nil)
		if r.must("count in a snapshot", err); n != int64(len(then)) {
			r.t.Fatalf("seed %d: a snapshot has %d pairs, want %d", r.seed, n, len(then))
		}
	}
	r.must("close a snapshot", snap.Close())
	r.restart()
}

// compact compacts, and may be ended.
func (r *wordsRun) compact() {
	r.t.Helper()
	c, cancel := context.WithCancel(ctx)
	defer cancel()
	o := pando.CompactOptions{}
	what := r.rng.IntN(4)
	switch what {
	case 0:
		part := 1 + r.rng.Int64N(10)
		o.Progress = func(done, total int64) {
			if done*10 > total*part {
				cancel()
			}
		}
	case 1:
		r.fs.Set(faultfs.Rule{Skip: r.rng.IntN(120), Fault: []faultfs.Fault{faultfs.Fail, faultfs.ShortWrite, faultfs.DropSync}[r.rng.IntN(3)]})
	case 2:
		r.fs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt, faultfs.OpCreate), Skip: r.rng.IntN(120), Times: 3, Err: vfs.ErrNoSpace})
	}
	err := r.db.Compact(c, o)
	ended := what == 0 && errors.Is(err, context.Canceled)
	if !ended && !errors.Is(err, faultfs.ErrInjected) && !errors.Is(err, pando.ErrDiskFull) {
		r.must("compact", err)
	}
}

// restart goes on with what is left, if anything happens.
func (r *wordsRun) restart() {
	r.t.Helper()
	what := r.rng.IntN(5)
	failed := r.db.Put([]byte("k"), nil) != nil
	switch {
	case what == 0:
		image := r.base.KillImage()
		_ = r.db.Close()
		r.base = image
		r.plug()
	case what == 1:
		image := r.base.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: r.rng.Uint64(), Torn: 512, Reordered: r.rng.IntN(2) == 0})
		_ = r.db.Close()
		r.base = image
		r.plug()
	case what == 2 || failed:
		_ = r.db.Close() // which may say that it has failed
		r.open()
	default:
		r.look("later")
	}
}

// hasDictionary reports whether a segment has a compression dictionary.
func (r *wordsRun) hasDictionary() bool {
	r.t.Helper()
	const kindAt, storedAt = 8, 16
	names, err := r.base.List("db/segments")
	r.must("list", err)
	for _, name := range names {
		b, err := vfs.ReadFile(r.base, "db/segments/"+name, 1<<30)
		r.must("read", err)
		for at := segment.FileHeaderSize; at+segment.HeaderSize <= len(b); {
			if segment.Kind(b[at+kindAt]) == segment.KindDictionary {
				return true
			}
			at += segment.HeaderSize + int(binary.LittleEndian.Uint32(b[at+storedAt:]))
		}
	}
	return false
}
