package layouttest

import (
	"context"
	"errors"
	"path"
	"sync"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// testDamage flips a byte in each blob in turn: Check must report it, and reads must answer rightly or with corrupt.Err.
func testDamage(t *testing.T, c Config) {
	w := NewWorld(t, c, 1, 0, 0)
	for range 6 {
		w.Apply(nil, w.Changes(60, 6), layout.ApplyOptions{LeafBytes: 1000, Fanout: 4})
	}
	var blobs []segment.Pointer
	must(t, w.Layout.Walk(context.Background(), w.Root, func(p segment.Pointer, kind segment.Kind) error {
		if kind != segment.KindValue {
			blobs = append(blobs, p)
		}
		return nil
	}))
	for _, p := range blobs {
		at := int64(p.Offset) + int64(w.Rand.IntN(int(p.Length)))
		restore := w.flip(p.Segment, at)
		w.survive(p)
		restore()
		if t.Failed() {
			return
		}
	}
	w.Verify(w.Reload(), w.Model, w.Now)
}

// flip changes one byte of a segment file and returns how to undo it.
func (w *World) flip(id uint32, at int64) func() {
	f, err := w.FS.OpenReadWrite(path.Join("db", segment.FilePath(id)))
	must(w.T, err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, at)
	must(w.T, err)
	_, err = f.WriteAt([]byte{b[0] ^ 0x40}, at)
	must(w.T, err)
	return func() {
		_, err = f.WriteAt(b, at)
		must(w.T, err)
		must(w.T, f.Close())
	}
}

// survive asks everything of a damaged root.
func (w *World) survive(p segment.Pointer) {
	w.T.Helper()
	root, reports := w.Reload(), 0
	must(w.T, w.Layout.Check(context.Background(), root, func(err error) {
		reports++
		if !errors.Is(err, corrupt.Err) {
			w.T.Errorf("Check of damage in %+v: %v", p, err)
		}
	}))
	if reports == 0 {
		w.T.Errorf("Check does not find the damage in %+v", p)
	}
	var s layout.Scratch
	for k, want := range w.Model {
		r, ok, err := root.GetRead(&s, record.Hash(Keyspace, []byte(k)), []byte(k))
		if err != nil && !errors.Is(err, corrupt.Err) {
			w.T.Errorf("GetRead(%x): %v", k, err)
		}
		if err == nil && !want.Expired(w.Now) && (!ok || !same(r, want)) {
			w.T.Errorf("GetRead(%x): wrong answer after damage in %+v", k, p)
		}
	}
	c := root.NewCursor()
	defer c.Close()
	n := 0
	for ok := c.First(); ok; ok = c.Next() {
		n++
	}
	if c.Err() == nil && n < len(w.Model.Keys(nil, nil, w.Now)) {
		w.T.Errorf("scan ends after %d records without an error after damage in %+v", n, p)
	}
	if c.Err() != nil && !errors.Is(c.Err(), corrupt.Err) {
		w.T.Errorf("scan: %v", c.Err())
	}
	writer := w.Env.Store.NewWriter(segment.Nodes, Keyspace)
	_, err := w.Layout.Apply(context.Background(), root, nil, nil, writer, layout.ApplyOptions{Rewrite: &layout.Stretch{}})
	if err != nil && !errors.Is(err, corrupt.Err) {
		w.T.Errorf("Apply: %v", err)
	}
	must(w.T, writer.Abort())
	w.discard(p)
}

// discard gets rid of a damaged root, in both ways in which that can be done: damage must not be in the way.
func (w *World) discard(p segment.Pointer) {
	w.T.Helper()
	writer := w.Env.Store.NewWriter(segment.Nodes, Keyspace)
	empty, err := w.Layout.Apply(context.Background(), w.Reload(), []layout.Range{{}}, nil, writer, layout.ApplyOptions{})
	if err != nil {
		w.T.Errorf("everything is deleted, after damage in %+v: %v", p, err)
	} else if n, _ := empty.Records(); n != 0 {
		w.T.Errorf("everything is deleted, after damage in %+v, but %d records", p, n)
	}
	must(w.T, writer.Abort())
	writer = w.Env.Store.NewWriter(segment.Nodes, Keyspace)
	if err := w.Layout.Free(context.Background(), w.Reload(), writer); err != nil {
		w.T.Errorf("Free after damage in %+v: %v", p, err)
	}
	must(w.T, writer.Abort())
}

// testConcurrent reads old and new roots from several goroutines while Apply makes further ones.
func testConcurrent(t *testing.T, c Config) {
	w := NewWorld(t, c, 1, 1<<16, 0)
	w.Env.InnerBytes = 4 << 10
	o := layout.ApplyOptions{LeafBytes: 500, Fanout: 4}
	w.Apply(nil, w.Changes(300, 8), o)
	for range 8 {
		root, model := w.Root, w.Model.Clone()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { readAll(t, w, root, model) })
		}
		w.Apply(nil, w.Changes(80, 4), o)
		w.Layout.Published(w.Root)
		wg.Wait()
	}
	w.Verify(w.Root, w.Model, w.Now)
}

func readAll(t *testing.T, w *World, root layout.Root, m Model) {
	var s layout.Scratch
	cur := root.NewCursor()
	defer cur.Close()
	for k, want := range m {
		key := []byte(k)
		hash := record.Hash(Keyspace, key)
		guard := w.Env.Epoch.Enter()
		r, _, status := root.Get(hash, key)
		if status == layout.Absent || (status == layout.Found && !same(r, want)) {
			t.Errorf("Get(%x): %v", key, status)
		}
		guard.Exit()
		r, ok, err := root.GetRead(&s, hash, key)
		if err != nil || !ok || !same(r, want) {
			t.Errorf("GetRead(%x): %v %v", key, ok, err)
		}
	}
	n := 0
	for ok := cur.First(); ok; ok = cur.Next() {
		n++
	}
	if n != len(m) || cur.Err() != nil {
		t.Errorf("scan: %d records of %d, %v", n, len(m), cur.Err())
	}
	if got, err := root.Count(nil, nil, 0); err != nil || got != int64(len(m)) {
		if !errors.Is(err, layout.ErrNoOrder) {
			t.Errorf("Count: %d of %d, %v", got, len(m), err)
		}
	}
}
