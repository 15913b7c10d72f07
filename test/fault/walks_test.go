package fault

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

var (
	walkSeed  = flag.Uint64("walk.seed", 1, "the first seed of the walks over what cannot be read")
	walkSeeds = flag.Int("walk.seeds", usualWalks, "how many seeds there are")
)

// TestWalksWhereReadsFail walks about in a database some reads of which fail, or bring a wrong bit: in an order of keys or without one, over
// pairs that have settled with their values or apart from them, and beside changes that have not settled. A walk shows what is there, pair
// by pair, until a read fails: then it says so, and moves no more. It never ends early without an error, and passes over nothing.
func TestWalksWhereReadsFail(t *testing.T) {
	ended := 0
	for i := range uint64(*walkSeeds) {
		f := newFailing(t, *walkSeed+i)
		for range 60 {
			f.walk()
			f.many()
		}
		f.must(f.db.Close())
		ended += f.ended
	}
	if ended == 0 {
		t.Error("nothing has failed")
	}
}

// failing is such a database.
type failing struct {
	t      *testing.T
	seed   uint64
	rng    *rand.Rand
	fs     *faultfs.FS
	db     *pando.DB
	ks     *pando.Keyspace
	hashed bool
	want   map[string][]byte
	sorted []string
	keys   []string // in the order of the present walk
	ended  int      // reads that have failed, as far as they were told of
}

func newFailing(t *testing.T, seed uint64) *failing {
	f := &failing{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 7)), want: map[string][]byte{}}
	f.fs, f.hashed = faultfs.New(&sectors{FS: memfs.New()}), f.rng.IntN(4) == 0 // files of sectors are not mapped: each read is a call
	o := &pando.Options{FS: f.fs, MemoryBytes: 1 << 20, ValueThreshold: []int{100, 1024, 20000}[f.rng.IntN(3)]}
	compression := pando.Compression(f.rng.IntN(4))
	kind := &pando.KeyspaceOptions{LeafBytes: []int{256, 0, 32 << 10, 256 << 10}[f.rng.IntN(4)], Compression: &compression}
	if f.hashed {
		kind = &pando.KeyspaceOptions{Layout: pando.Hash, Compression: &compression}
	}
	open := func() {
		var err error
		f.db, err = pando.Open("db", o)
		f.must(err)
		f.ks, err = f.db.Keyspace("walked", kind)
		f.must(err)
	}
	open()
	prefix := bytes.Repeat([]byte("p"), f.rng.IntN(3)*100)
	for range 1 + f.rng.IntN(4) {
		f.write(prefix, 4000, 2<<20)
		f.must(f.db.Checkpoint(ctx))
	}
	f.must(f.db.Close())
	open() // now nothing is in memory
	if f.rng.IntN(3) > 0 {
		f.write(prefix, 1+f.rng.IntN(500), 300<<10)
	}
	f.sorted = slices.Sorted(maps.Keys(f.want))
	return f
}

func (f *failing) must(err error) {
	f.t.Helper()
	if err != nil {
		f.wrong("%v", err)
	}
}

func (f *failing) wrong(format string, args ...any) {
	f.t.Helper()
	f.t.Fatalf("seed %d: %s", f.seed, fmt.Sprintf(format, args...))
}

// write changes some keys at a distance from each other, and may delete a range.
func (f *failing) write(prefix []byte, most, room int) {
	lengths := [][]int{{60}, {1500}, {9000, 60}, {60, 60, 60, 60, 40000}, {0, 30, 1024, 1025, 8200, 17000}}[f.rng.IntN(5)]
	from, by := f.rng.IntN(4000), 1+f.rng.IntN(9)
	key := func(i int) []byte { return fmt.Appendf(bytes.Clone(prefix), "%06d", i) }
	for i := 0; i < most && room > 0; i++ {
		k := key((from + i*by) % 4000)
		if f.rng.IntN(8) == 0 {
			f.must(f.ks.Delete(k))
			delete(f.want, string(k))
			continue
		}
		v := bytes.Repeat(fmt.Appendf(nil, "%d,", f.rng.Uint64()), lengths[f.rng.IntN(len(lengths))]/15+1)
		f.must(f.ks.Put(k, v))
		f.want[string(k)] = v
		room -= len(k) + len(v)
	}
	if !f.hashed && f.rng.IntN(3) == 0 {
		lo, hi := key(from), key(from+f.rng.IntN(300))
		f.must(f.ks.DeleteRange(lo, hi))
		maps.DeleteFunc(f.want, func(k string, _ []byte) bool { return k >= string(lo) && k < string(hi) })
	}
}

// fault makes reads fail after a while: one, or all, or one that brings a wrong bit. Or it leaves them as they are.
func (f *failing) fault() {
	skip := f.rng.IntN(1 << f.rng.IntN(9))
	f.fs.Set([]faultfs.Rule{
		{Ops: faultfs.Ops(faultfs.OpReadAt), Err: errDevice, Skip: skip},
		{Ops: faultfs.Ops(faultfs.OpReadAt), Err: errDevice, Skip: skip, Times: -1},
		{Fault: faultfs.FlipBit, Skip: skip, Bit: f.rng.Int64N(1 << 20)},
		{Skip: 1 << 30},
	}[f.rng.IntN(4)])
}

// failed accepts the error with which something ended, if there is one.
func (f *failing) failed(err error) bool {
	f.t.Helper()
	if err == nil {
		return false
	}
	if f.ended++; !errors.Is(err, errDevice) && !errors.Is(err, pando.ErrCorrupt) || f.fs.Triggered() == 0 {
		f.wrong("%v", err)
	}
	return true
}

// walk walks about until a read fails.
func (f *failing) walk() {
	f.t.Helper()
	it, at := f.ks.Iter(&pando.IterOptions{Once: f.rng.IntN(2) == 0}), -1
	defer it.Close()
	if f.keys = f.sorted; f.hashed {
		f.keys, at = f.learn(it), len(f.sorted)
	}
	f.fault()
	defer f.fs.Set()
	for n := 0; n < 12; n++ {
		look, move := []int{0, 1, 1, 4}[f.rng.IntN(4)], f.rng.IntN(5)
		for range 1 + f.rng.IntN(200) {
			ok, to := f.move(it, at, move)
			there := to >= 0 && to < len(f.keys)
			switch at = to; {
			case it.Err() != nil:
				f.end(it, at, ok)
				return
			case ok != there || ok && string(it.Key()) != f.keys[at]:
				f.wrong("a move to %d of %d leads to %v %q", at, len(f.keys), ok, it.Key())
			case ok && look > 0 && f.rng.IntN(look) == 0:
				value := it.Value()
				if it.Err() != nil {
					f.end(it, at, value == nil)
					return
				}
				if !bytes.Equal(value, f.want[f.keys[at]]) {
					f.wrong("%s has %.20q", it.Key(), value)
				}
			}
		}
	}
}

// learn is the order of an iterator over what has none. It is left behind the last pair.
func (f *failing) learn(it *pando.Iterator) (keys []string) {
	f.t.Helper()
	for it.Next() {
		keys = append(keys, string(it.Key()))
	}
	if f.must(it.Err()); !slices.Equal(slices.Sorted(slices.Values(keys)), f.sorted) {
		f.wrong("%d keys instead of %d", len(keys), len(f.sorted))
	}
	return keys
}

// move moves, and says where to.
func (f *failing) move(it *pando.Iterator, at, move int) (ok bool, to int) {
	f.t.Helper()
	n := len(f.keys)
	switch {
	case move == 0 && !f.hashed && f.rng.IntN(20) == 0:
		if at = f.rng.IntN(n); f.rng.IntN(2) == 0 {
			return it.SeekLT([]byte(f.keys[at])), at - 1
		}
		return it.SeekGE([]byte(f.keys[at])), at
	case move == 1:
		odd := byte(1 + f.rng.IntN(9))
		ok = it.NextWanted(func(value []byte) bool {
			if at++; at >= n || !bytes.Equal(value, f.want[f.keys[at]]) {
				f.wrong("at %d of %d it is asked about %.20q", at, n, value)
			}
			return value[0]%odd == 0
		})
		if !ok || it.Err() != nil {
			at++
		}
		return ok, min(at, n)
	case move == 2 && at >= 0:
		return it.Prev(), at - 1
	}
	return it.Next(), min(at+1, n)
}

// end: a walk that has failed moves no more, and goes on saying why. On a pair whose value cannot be read it stays there.
func (f *failing) end(it *pando.Iterator, at int, on bool) {
	f.t.Helper()
	err := it.Err()
	if f.failed(err); on && string(it.Key()) != f.keys[at] || it.Value() != nil {
		f.wrong("%q %.20q with %v", it.Key(), it.Value(), err)
	}
	if it.Next() || it.Prev() || it.First() || it.Last() || it.NextWanted(func([]byte) bool { return true }) || it.Err() != err {
		f.wrong("behind %v it goes on to %q, %v", err, it.Key(), it.Err())
	}
}

// many reads several keys at once, and asks how many there are.
func (f *failing) many() {
	f.t.Helper()
	f.fault()
	defer f.fs.Set()
	var r pando.Reader
	f.must(r.Open(f.db, f.ks))
	defer r.Close()
	from := f.rng.IntN(len(f.sorted))
	part := f.sorted[from:min(from+60, len(f.sorted))]
	var keys, got pando.List
	var each [][]byte
	for _, k := range part {
		keys.Append([]byte(k))
		each = append(each, []byte(k), []byte(k+"x"))
	}
	if !f.failed(r.GetMany(&got, f.ks, &keys, 0, keys.Len())) && got.Len() != len(part) {
		f.wrong("%d values of %d", got.Len(), len(part))
	}
	for i := range got.Len() {
		if !bytes.Equal(got.At(i), f.want[part[i]]) {
			f.wrong("%s has %.20q", part[i], got.At(i))
		}
	}
	absent := make([]bool, len(each))
	if !f.failed(r.Absent(absent, f.ks, each)) {
		for i := range absent {
			if absent[i] != (i%2 == 1) {
				f.wrong("absent(%q) is %v", each[i], absent[i])
			}
		}
	}
	if f.hashed {
		if n, err := f.ks.Count(nil, nil); !f.failed(err) && int(n) != len(f.sorted) {
			f.wrong("count says %d, not %d", n, len(f.sorted))
		}
		return
	}
	if n, err := f.ks.Count([]byte(part[0]), nil); !f.failed(err) && int(n) != len(f.sorted)-from {
		f.wrong("count says %d, not %d", n, len(f.sorted)-from)
	}
	if k, v, err := f.ks.Nth(nil, nil, int64(from)); !f.failed(err) && (string(k) != part[0] || !bytes.Equal(v, f.want[part[0]])) {
		f.wrong("the pair number %d is %s %.20q", from, k, v)
	}
}
