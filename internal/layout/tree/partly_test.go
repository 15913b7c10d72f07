package tree

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/pandodb/pando/internal/cache"
	"github.com/pandodb/pando/internal/epoch"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/test/entropy"
	"github.com/pandodb/pando/vfs/osfs"
)

// partedTree is a tree on the real file system, whose leaves are mapped and stored by parts and do not fit into the cache, with what
// keys makes of numbers below n, most of them with a few deltas. Values have at least so many bytes, and up to twice as many more. Its
// records in the order of their keys come with it.
func partedTree(t *testing.T, n int, keys func(i int) []byte, least int) (*root, []layout.Change) {
	t.Helper()
	store, err := segment.Open(segment.Options{FS: osfs.New(), Dir: t.TempDir(), MapBytes: 1 << 30}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	domain := epoch.New()
	env := &layout.Environment{Store: store, Cache: cache.New(256<<10, domain), Epoch: domain}
	t.Cleanup(func() {
		domain.Close()
		_ = env.Cache.Close()
		_ = store.Close()
	})
	random := rand.New(rand.NewPCG(1, 2))
	all := map[string]layout.Change{}
	tree := New()
	r, err := tree.Load(env, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 5 {
		some := map[string]layout.Change{}
		for i := range n {
			if round > 0 && random.IntN(40) > 0 {
				continue
			}
			c := layout.Change{Key: keys(i)}
			if round == 0 || random.IntN(3) > 0 {
				value := entropy.Bytes(random, least+random.IntN(2*least))
				c.Record = record.Record{Kind: record.Inline, Value: value}
			}
			if round == 4 && i > n/2 && i < n/2+40 {
				c.Record = record.Record{} // whole parts are removed
			}
			some[string(c.Key)], all[string(c.Key)] = c, c
		}
		w := store.NewWriter(segment.Nodes, 1)
		o := layout.ApplyOptions{Codec: segment.S2, Fanout: 8}
		if r, err = tree.Apply(context.Background(), r, nil, &layout.SliceChanges{Changes: inOrder(some)}, w, o); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		w.Commit()
		tree.Published(r)
	}
	live := slices.DeleteFunc(inOrder(all), func(c layout.Change) bool { return c.Record.Kind == record.Tombstone })
	return r.(*root), live
}

func inOrder(changes map[string]layout.Change) []layout.Change {
	var list []layout.Change
	for _, c := range changes {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b layout.Change) int { return bytes.Compare(a.Key, b.Key) })
	return list
}

// TestWalksByParts: a walk that begins in the middle of a leaf of which parts are read goes over the same records as any other, forward
// and back, wherever it turns, and whichever way the leaf is read once it has begun.
func TestWalksByParts(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	alike := func(i int) []byte { return fmt.Appendf(nil, "prefix/%06d", i) }
	for _, c := range []struct {
		name  string
		keys  func(i int) []byte
		least int // bytes of a value
	}{
		{"apart", func(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)*0x9E3779B97F4A7C15) }, 50},
		{"alike", alike, 50},
		{"alike, and short: more than 127 records are read at once, or fewer", alike, 6},
		{"heads alike", func(i int) []byte { return fmt.Appendf(nil, "%c/the same/%06d", 'a'+i/4000, i) }, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, live := partedTree(t, 600_000/c.least, c.keys, c.least)
			all := r.NewCursor()
			for ok := all.First(); ok; ok = all.Next() { // reads all leaves, so that they are marked as near
			}
			if err := all.Close(); err != nil || all.Err() != nil {
				t.Fatal(err, all.Err())
			}
			random, byParts := rand.New(rand.NewPCG(3, 4)), 0
			for range 3000 {
				byParts += walkSomewhere(t, r, live, random)
			}
			// Parts are read out of mapped files. There are none where addresses are short.
			const mapped = strconv.IntSize > 32 && runtime.GOOS != "windows"
			if mapped && byParts < 1000 {
				t.Errorf("parts were read %d times in 3000 walks", byParts)
			}
		})
	}
}

// walkSomewhere goes to some key, walks from there, and tells whether it read parts.
func walkSomewhere(t *testing.T, r *root, live []layout.Change, random *rand.Rand) (byParts int) {
	t.Helper()
	c := r.NewCursor().(*cursor)
	defer c.Close()
	at := random.IntN(len(live))
	key := bytes.Clone(live[at].Key)
	if random.IntN(3) == 0 {
		key = append(key, 0)
		at++
	}
	ok := c.SeekGE(key)
	if c.part.parts > 0 {
		byParts = 1
	}
	for step := range random.IntN(200) {
		if c.Err() != nil || ok != (at >= 0 && at < len(live)) {
			t.Fatalf("step %d from %q: %v at record %d of %d, %v", step, key, ok, at, len(live), c.Err())
		}
		if ok && (!bytes.Equal(c.Key(), live[at].Key) || !bytes.Equal(c.Record().Value, live[at].Record.Value)) {
			t.Fatalf("step %d from %q: %q, want %q", step, key, c.Key(), live[at].Key)
		}
		switch n := random.IntN(100); {
		case !ok:
			return byParts
		case n < 3 && at > 0:
			at--
			ok = c.Prev()
		case n < 30 && c.part.parts > c.part.next && c.at == c.page.Len()-1:
			// As where the parts that follow cannot be read out of the mapping any more.
			c.memory.resume, c.memory.passed = append(c.memory.resume[:0], c.Key()...), true
			at++
			ok = c.resumeWhole(c.path[len(c.path)-1]) || c.onward()
		default:
			at++
			ok = c.Next()
		}
	}
	return byParts
}
