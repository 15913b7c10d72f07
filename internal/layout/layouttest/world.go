// Package layouttest is the test suite that every layout must pass: random programs of changes and range deletes against a
// model, with old roots, reloaded roots, damaged blobs and an audit of live bytes after every step.
//
// A layout's own tests call Run with its constructor. World is for further tests of a layout that need the same surroundings.
package layouttest

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pandodb/pando/internal/cache"
	"github.com/pandodb/pando/internal/epoch"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs/memfs"
)

// RefSize is the length of an encoded reference to a value apart in these tests, as in package value: a pointer and a length.
const RefSize = segment.PointerSize + 8

// Keyspace is the keyspace of every world.
const Keyspace = 7

// Model is what a root must answer: every key with its record.
type Model map[string]record.Record

// Clone returns a copy that later changes leave alone.
func (m Model) Clone() Model { return maps.Clone(m) }

// Keys returns the keys of records not expired at now that lie in [lo, hi), sorted.
func (m Model) Keys(lo, hi []byte, now uint64) []string {
	var keys []string
	for k, r := range m {
		if k >= string(lo) && (hi == nil || k < string(hi)) && !r.Expired(now) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// World is a layout with what it is built on, the current root and its model.
type World struct {
	T      testing.TB
	FS     *memfs.FS
	Env    *layout.Environment
	Layout layout.Layout
	Root   layout.Root
	Model  Model
	Now    uint64 // grows; records that expired before it may be gone
	Rand   *rand.Rand

	ordered bool
}

// NewWorld returns an empty world whose cache has so many bytes. It is closed when the test ends.
func NewWorld(t testing.TB, c Config, seed uint64, cacheBytes, segmentBytes int64) *World {
	t.Helper()
	fs := memfs.New()
	store, err := segment.Open(segment.Options{FS: fs, Dir: "db", SegmentBytes: segmentBytes}, nil, 1)
	must(t, err)
	domain := epoch.New()
	w := &World{
		T: t, FS: fs, Layout: c.New(), Model: Model{}, Now: 1000, ordered: c.Ordered,
		Rand: rand.New(rand.NewPCG(seed, 1)),
		Env: &layout.Environment{
			Store: store, Cache: cache.New(cacheBytes, domain), Epoch: domain,
			FreeValue: freeValue, WalkValue: walkValue,
		},
	}
	w.Root, err = w.Layout.Load(w.Env, Keyspace, nil)
	must(t, err)
	t.Cleanup(func() {
		if n := w.Env.Cache.Stats().Pinned; n != 0 {
			t.Errorf("%d pages are still pinned", n)
		}
		domain.Close()
		must(t, w.Env.Cache.Close())
		must(t, store.Close())
	})
	return w
}

// Forge appends a blob that verifies, whatever it says.
func (w *World) Forge(kind segment.Kind, raw []byte) segment.Pointer {
	w.T.Helper()
	writer := w.Env.Store.NewWriter(segment.Nodes, Keyspace)
	p, err := writer.Append(kind, Keyspace, segment.None, 0, raw)
	must(w.T, err)
	must(w.T, writer.Flush())
	writer.Commit()
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func freeValue(w *segment.Writer, ref []byte) error {
	p, err := segment.DecodePointer(ref)
	if err != nil || len(ref) != RefSize {
		return fmt.Errorf("reference of %d bytes: %w", len(ref), err)
	}
	w.Free(p)
	return nil
}

func walkValue(ref []byte, fn func(p segment.Pointer, kind segment.Kind) error) error {
	p, err := segment.DecodePointer(ref)
	if err != nil {
		return err
	}
	return fn(p, segment.KindValue)
}

// Apart stores a value apart and returns the record that refers to it.
func (w *World) Apart(value []byte) record.Record {
	w.T.Helper()
	p, err := w.Env.Store.AppendValue(Keyspace, segment.None, value)
	must(w.T, err)
	w.Env.Store.Live(p, int64(p.Length)) // as the engine does when it hands the record to Apply
	ref := binary.LittleEndian.AppendUint64(segment.AppendPointer(nil, p), uint64(len(value)))
	return record.Record{Kind: record.Apart, Value: ref}
}

// Inline returns the record of a value beside its key.
func Inline(value string) record.Record {
	return record.Record{Kind: record.Inline, Value: []byte(value)}
}

// Apply applies to the root and to the model. Changes need not be sorted; a later one of the same key wins.
func (w *World) Apply(ranges []layout.Range, changes []layout.Change, o layout.ApplyOptions) {
	w.T.Helper()
	sorted := SortChanges(changes)
	if o.Now != 0 {
		w.Now = max(w.Now, o.Now)
	}
	writer := w.Env.Store.NewWriter(segment.Nodes, Keyspace)
	if len(changes)%2 == 0 {
		writer.Split() // what a layout writes may lie in several segments, or in one
	}
	root, err := w.Layout.Apply(context.Background(), w.Root, ranges, &layout.SliceChanges{Changes: sorted}, writer, o)
	must(w.T, err)
	must(w.T, writer.Sync())
	writer.Commit()
	w.Root = root
	w.Env.Epoch.Collect()
	for _, r := range ranges {
		for _, k := range w.Model.Keys(r.Lo, r.Hi, 0) {
			delete(w.Model, k)
		}
	}
	for _, c := range sorted {
		if c.Record.Kind == record.Tombstone {
			delete(w.Model, string(c.Key))
			continue
		}
		r := c.Record
		r.Value = slices.Clone(r.Value)
		w.Model[string(c.Key)] = r
	}
}

// SortChanges sorts changes by key and keeps the last one of each key.
func SortChanges(changes []layout.Change) []layout.Change {
	last := map[string]layout.Change{}
	for _, c := range changes {
		last[string(c.Key)] = c
	}
	keys := slices.Sorted(maps.Keys(last))
	out := make([]layout.Change, len(keys))
	for i, k := range keys {
		out[i] = last[k]
	}
	return out
}

// Reload loads the current root anew, as after opening the database.
func (w *World) Reload() layout.Root {
	w.T.Helper()
	root, err := w.Layout.Load(w.Env, Keyspace, w.Root.Encode(nil))
	must(w.T, err)
	return root
}

// Audit compares the live bytes of each segment with what is reachable from the current root.
func (w *World) Audit() {
	w.T.Helper()
	live := map[uint32]int64{}
	seen := map[segment.Pointer]bool{}
	err := w.Layout.Walk(context.Background(), w.Root, func(p segment.Pointer, kind segment.Kind) error {
		if seen[p] {
			w.T.Errorf("blob %+v of kind %d is reachable twice", p, kind)
		}
		seen[p] = true
		live[p.Segment] += int64(p.Length)
		return nil
	})
	must(w.T, err)
	for _, s := range w.Env.Store.Segments() {
		if s.Live != live[s.ID] {
			w.T.Errorf("segment %d: %d live bytes in the table, %d are reachable", s.ID, s.Live, live[s.ID])
		}
	}
}

// Segments returns those of the store's segments that are wanted.
func (w *World) Segments(wanted func(id uint32) bool) *segment.Set {
	set := new(segment.Set)
	for _, s := range w.Env.Store.Segments() {
		if wanted(s.ID) {
			set.Add(s.ID)
		}
	}
	return set
}

// LiesIn reports whether a blob of the layout under root lies in one of the segments, those of values apart left out.
func (w *World) LiesIn(root layout.Root, segments *segment.Set) (lies bool) {
	w.T.Helper()
	must(w.T, w.Layout.Walk(context.Background(), root, func(p segment.Pointer, kind segment.Kind) error {
		lies = lies || kind != segment.KindValue && kind != segment.KindValueIndex && segments.Has(p.Segment)
		return nil
	}))
	return lies
}

// Check fails the test when the layout finds damage under root.
func (w *World) Check(root layout.Root) {
	w.T.Helper()
	must(w.T, w.Layout.Check(context.Background(), root, func(err error) { w.T.Errorf("check: %v", err) }))
}
