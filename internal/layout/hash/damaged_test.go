package hash

import (
	"bytes"
	"context"
	"errors"
	"path"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// blobs lists what of some kinds is reachable from the present root.
func blobs(t *testing.T, w *layouttest.World, kinds ...segment.Kind) (list []segment.Pointer) {
	t.Helper()
	err := w.Layout.Walk(context.Background(), w.Root, func(p segment.Pointer, kind segment.Kind) error {
		for _, k := range kinds {
			if k == kind {
				list = append(list, p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// spoil damages blobs or pieces, and returns how to undo that.
func spoil(t *testing.T, w *layouttest.World, list ...segment.Pointer) (undo func()) {
	t.Helper()
	flip := func() {
		for _, p := range list {
			f, err := w.FS.OpenReadWrite(path.Join("db", segment.FilePath(p.Segment)))
			if err != nil {
				t.Fatal(err)
			}
			b, at := make([]byte, 1), int64(p.Offset)+int64(p.Length)/2
			_, failed := f.ReadAt(b, at)
			_, err = f.WriteAt([]byte{b[0] ^ 0x10}, at)
			if err := errors.Join(failed, err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	flip()
	return flip
}

// recordOf is where the newest record of a key lies, of those that have its hash.
func recordOf(t *testing.T, w *layouttest.World, key string) segment.Pointer {
	t.Helper()
	r := w.Root.(*root)
	q := pageOf(keyHash(key), r.depth)
	b, err := r.load(new(segment.Buffer), int(q/groupSlots))
	if err != nil {
		t.Fatal(err)
	}
	m, s := new(reader), new(layout.Scratch)
	_ = r.candidates(m, b, q, keyHash(key))
	for _, at := range m.found {
		if same, err := r.readRecord(s, at, []byte(key)); err == nil && same {
			return at.Pointer()
		}
	}
	t.Fatalf("no record of %q", key)
	return segment.Pointer{}
}

// get asks a root for a key in both ways and expects the same of them.
func get(t *testing.T, w *layouttest.World, r layout.Root, key string) (string, bool, error) {
	var s layout.Scratch
	guard := w.Env.Epoch.Enter()
	_, at, status := r.Get(keyHash(key), []byte(key))
	guard.Exit()
	found, err := false, error(nil)
	if status == layout.NotResident {
		found, err = r.GetFrom(&s, at, keyHash(key), []byte(key))
	}
	value := string(s.Record.Value)
	got, ok, failed := r.GetRead(&s, keyHash(key), []byte(key))
	if found != ok || (err == nil) != (failed == nil) || ok && string(got.Value) != value {
		t.Helper() // not before, since it takes longer than the look
		t.Errorf("%s: %q %v %v at first, then %q %v %v", key, value, found, err, got.Value, ok, failed)
	}
	return string(got.Value), ok, failed
}

// truthful expects that all answers under a root are right or tell of damage, and that what was changed since is there.
func truthful(t *testing.T, w *layouttest.World, r layout.Root, since map[string]bool) {
	t.Helper()
	keys := w.Model.Keys(nil, nil, 0)
	for range 100 {
		keys = append(keys, string(w.Key()))
	}
	for _, key := range keys {
		want, there := w.Model[key]
		got, ok, err := get(t, w, r, key)
		switch {
		case segment.IsUnreadable(err) && !since[key]:
		case err != nil:
			t.Fatalf("key %x, written since: %v: %v", key, since[key], err)
		case ok != there || ok && got != string(want.Value):
			t.Fatalf("key %x: %x %v, want %v %v", key, got, ok, want, there)
		}
	}
	for _, forward := range []bool{true, false} {
		c, n := r.NewCursor(), 0
		step := c.Next
		if !forward {
			step = c.Prev
		}
		for ok := step(); ok; ok = step() {
			n++
			if want, there := w.Model[string(c.Key())]; !there || !bytes.Equal(c.Record().Value, want.Value) {
				t.Fatalf("a walk comes to %x, which is not what the model has", c.Key())
			}
		}
		if err := c.Err(); err == nil && n != len(w.Model) || err != nil && !segment.IsUnreadable(err) {
			t.Fatalf("a walk ends after %d of %d: %v", n, len(w.Model), err)
		}
		_ = c.Close()
	}
	if n, err := r.Count(nil, nil, 0); err == nil && n != int64(len(w.Model)) || err != nil && !segment.IsUnreadable(err) {
		t.Fatalf("%d records, %v; the model has %d", n, err, len(w.Model))
	}
	if n, exact := r.Records(); n < int64(len(w.Model)) || exact && n != int64(len(w.Model)) {
		t.Fatalf("at most %d records (exactly: %v); the model has %d", n, exact, len(w.Model))
	}
	if r.Empty() && len(w.Model) > 0 {
		t.Fatal("a table with records calls itself empty")
	}
}

// drop removes everything, and expects that damage is not in the way and that no segment has less than nothing.
func drop(t *testing.T, w *layouttest.World) {
	t.Helper()
	w.Root = w.Reload()
	w.Apply([]layout.Range{{}}, put("new", "new"), layout.ApplyOptions{})
	w.Check(w.Reload())
	truthful(t, w, w.Reload(), map[string]bool{"new": true})
	for _, s := range w.Env.Store.Segments() {
		if s.Live < 0 {
			t.Errorf("segment %d has %d live bytes", s.ID, s.Live)
		}
	}
}

// countDamage counts how often somebody is told of damage, which must be that.
func countDamage(t *testing.T, w *layouttest.World) *int {
	told := new(int)
	w.Env.Damaged = func(err error) {
		if *told++; !errors.Is(err, corrupt.Err) {
			t.Error(err)
		}
	}
	return told
}

// TestDamagedIndexPage changes keys of a page that cannot be read: it settles beside it.
func TestDamagedIndexPage(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	told := countDamage(t, w)
	w.Apply(nil, put("old", names(0, 200)...), layout.ApplyOptions{})
	w.Root = w.Reload()
	spoil(t, w, blobs(t, w, segment.KindIndex)...)
	since := map[string]bool{}
	for round := range 40 {
		changed, gone := names(round%7, round%7+3), names(100+round%5, 101+round%5)
		if round%3 == 0 {
			changed, gone = gone, changed
		}
		for _, key := range append(changed, gone...) {
			since[key] = true
		}
		w.Apply(nil, append(put(string(rune('a'+round)), changed...), remove(gone...)...), layout.ApplyOptions{})
		if *told != round+1 {
			t.Fatalf("in round %d somebody has been told of damage %d times", round, *told)
		}
		truthful(t, w, w.Reload(), since)
		s := w.Layout.Stats(w.Root)
		if s.Deltas > layout.DefaultMaxDeltas || s.DeltaBytes > 64<<10 {
			t.Fatalf("round %d: %+v", round, s)
		}
	}
	if _, _, err := get(t, w, w.Root, "name000050"); !errors.Is(err, corrupt.Err) {
		t.Errorf("a key that was not changed since: %v", err)
	}
	if n, exact := w.Root.Records(); exact {
		t.Errorf("exactly %d records", n)
	}
	// What was deleted, and written anew meanwhile, does not gather: of each key there is one record.
	live := int64(0)
	for _, s := range w.Env.Store.Segments()[1:] {
		live += s.Live
	}
	if live > 8<<10 {
		t.Errorf("%d bytes are live of 20 changed keys", live)
	}
	for _, o := range []layout.ApplyOptions{{Rewrite: &layout.Stretch{}}, {Victims: w.Segments(func(uint32) bool { return true })}} {
		writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
		if _, err := w.Layout.Apply(context.Background(), w.Root, nil, nil, writer, o); !errors.Is(err, corrupt.Err) {
			t.Errorf("%+v beside damage: %v", o, err)
		}
		if err := writer.Abort(); err != nil {
			t.Fatal(err)
		}
	}
	drop(t, w)
}

// TestRangeOfDamagedIndexPage: nobody can tell what of a page that cannot be read a range takes away, so that is refused, and does not
// only seem to be done.
func TestRangeOfDamagedIndexPage(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	w.Apply(nil, put("old", names(0, 200)...), layout.ApplyOptions{})
	w.Root = w.Reload()
	undo := spoil(t, w, blobs(t, w, segment.KindIndex)...)
	writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
	_, err := w.Layout.Apply(context.Background(), w.Root, []layout.Range{{Lo: []byte("name0000")}}, nil, writer, layout.ApplyOptions{})
	if !errors.Is(err, corrupt.Err) {
		t.Errorf("a range is removed beside damage: %v", err)
	}
	if err := writer.Abort(); err != nil {
		t.Fatal(err)
	}
	undo()
	holds(t, w)
}

// TestDamagedGroup: a group that is damaged is replaced by one of lost pages, beside which things settle.
func TestDamagedGroup(t *testing.T) {
	c := config()
	c.New = func() layout.Layout { return &Hash{most: 4, least: 1} }
	w := layouttest.NewWorld(t, c, 1, 0, 0)
	told := 0
	w.Env.Damaged = func(error) { told++ }
	w.Env.Dropped = func(error) { told++ }
	w.Apply(nil, put("old", names(0, 3000)...), layout.ApplyOptions{})
	w.Root = w.Reload()
	groups := blobs(t, w, segment.KindInner)
	if len(groups) < 2 {
		t.Fatalf("%d groups", len(groups))
	}
	w.Root = w.Reload()
	spoil(t, w, groups[1])
	since := map[string]bool{}
	for round := range 12 {
		changed, gone := names(0, 10), names(10+round, 20+round)
		for _, key := range append(changed, gone...) {
			since[key] = true
		}
		w.Apply(nil, append(put(string(rune('a'+round)), changed...), remove(gone...)...), layout.ApplyOptions{})
		if told != round+1 {
			t.Fatalf("in round %d somebody has been told of damage %d times", round, told)
		}
		w.Root = w.Reload()
		truthful(t, w, w.Root, since)
	}
	damaged := 0
	for key := range w.Model {
		if _, _, err := get(t, w, w.Root, key); err != nil {
			damaged++
		}
	}
	if most := len(w.Model) * 3 / 4 * 2 / len(groups); damaged == 0 || damaged > most {
		t.Errorf("of %d keys %d cannot be read, with one of %d groups damaged", len(w.Model), damaged, len(groups))
	}
	reports := 0
	if err := w.Layout.Check(context.Background(), w.Root, func(error) { reports++ }); err != nil || reports == 0 {
		t.Errorf("%d reports of damage, %v", reports, err)
	}
	drop(t, w)
}

// TestDamagedRecord: a record that is damaged is an error to who asks for its key, until it is written again or deleted.
func TestDamagedRecord(t *testing.T) {
	for _, cached := range []int64{0, 1 << 20} {
		w := layouttest.NewWorld(t, config(), 1, cached, 0)
		told := 0
		w.Env.Damaged = func(error) { told++ }
		keys := append(names(0, 100), keysOfOneHash()[0]...)
		w.Apply(nil, put("old", keys...), layout.ApplyOptions{})
		spoil(t, w, recordOf(t, w, keys[1]), recordOf(t, w, keys[2]), recordOf(t, w, keys[101]))
		for _, key := range keys {
			_, ok, err := get(t, w, w.Root, key)
			switch hit := key == keys[1] || key == keys[2] || key == keys[101]; {
			case hit && !errors.Is(err, corrupt.Err):
				t.Errorf("%s is damaged: %v, %v", key, ok, err)
			case !hit && key < "name" && segment.IsUnreadable(err): // it may have the damaged record before it
			case !hit && (err != nil || !ok):
				t.Errorf("%s beside damage: %v, %v", key, ok, err)
			}
		}
		w.Apply(nil, append(put("new", keys[1], keys[101]), remove(keys[2])...), layout.ApplyOptions{})
		if told != 1 {
			t.Errorf("somebody was told of damage %d times", told)
		}
		since := map[string]bool{keys[1]: true, keys[2]: true, keys[101]: true}
		truthful(t, w, w.Root, since)
		truthful(t, w, w.Reload(), since)
		if value, ok, err := get(t, w, w.Root, keys[1]); !ok || value != "new of "+keys[1] {
			t.Errorf("written again: %q, %v, %v", value, ok, err)
		}
		if _, ok, err := get(t, w, w.Root, keys[2]); ok || err != nil {
			t.Errorf("deleted: %v, %v", ok, err)
		}
		// Once more, and the other way round; and again and again.
		for round := range 30 {
			changes := append(put("again", keys[2]), remove(keys[1], keys[101])...)
			if round%2 == 1 {
				changes = append(put("again", keys[1], keys[101]), remove(keys[2])...)
			}
			w.Apply(nil, changes, layout.ApplyOptions{})
			truthful(t, w, w.Reload(), since)
		}
		if n, _ := w.Root.Records(); n > int64(len(keys)+6) {
			t.Errorf("%d entries of %d keys", n, len(keys))
		}
		drop(t, w)
	}
}

// TestVictimsLeaveDamagedRecords: what cannot be read stays where it is when its segment is emptied, and all else there moves.
func TestVictimsLeaveDamagedRecords(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	told := 0
	w.Env.Damaged = func(error) { told++ }
	keys := names(0, 300)
	w.Apply(nil, put("old", keys...), layout.ApplyOptions{})
	w.Root = w.Reload()
	bad := recordOf(t, w, keys[7])
	undo := spoil(t, w, bad)
	w.Apply(nil, nil, layout.ApplyOptions{Victims: segment.SetOf(bad.Segment)})
	if told != 1 {
		t.Errorf("somebody was told of damage %d times", told)
	}
	truthful(t, w, w.Reload(), nil)
	for _, s := range w.Env.Store.Segments() {
		if s.ID == bad.Segment && s.Live != int64(bad.Length) {
			t.Errorf("%d bytes are live in the segment, the damaged record has %d", s.Live, bad.Length)
		}
	}
	writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
	if _, err := w.Layout.Apply(context.Background(), w.Root, nil, nil, writer, layout.ApplyOptions{Rewrite: &layout.Stretch{}}); !errors.Is(err, corrupt.Err) {
		t.Errorf("everything is written anew beside a damaged record: %v", err)
	}
	if err := writer.Abort(); err != nil {
		t.Fatal(err)
	}
	undo()
	holds(t, w)
}

// TestDamageThatPasses settles changes beside what cannot be read, all of which can be later on. Then every answer is right, nothing has
// been freed twice or lost, and what is written anew has one record a key.
func TestDamageThatPasses(t *testing.T) {
	told, seeds := 0, uint64(usualDamages)
	if testing.Short() {
		seeds = 8 // there is one goroutine: the race detector has nothing to find here
	}
	for seed := range seeds {
		c := config()
		c.New = func() layout.Layout { return &Hash{most: []int64{4, 64, 512}[seed%3], least: 1} }
		w := layouttest.NewWorld(t, c, seed, int64(seed%2)<<16, 0)
		w.Env.Damaged = func(error) { told++ }
		w.Env.Dropped = func(error) {}
		o := layout.ApplyOptions{MaxDeltas: w.Rand.IntN(6) - 1}
		for range 1 + w.Rand.IntN(6) {
			w.Apply(nil, w.Changes(400>>w.Rand.IntN(6), 3), o)
		}
		holds(t, w)
		oneIn := 1 + w.Rand.IntN(10)
		var chosen []segment.Pointer
		groups := seed%4 == 0
		for _, p := range blobs(t, w, segment.KindIndex, segment.KindIndexDelta, segment.KindPieces) {
			if w.Rand.IntN(oneIn) == 0 {
				chosen = append(chosen, p)
			}
		}
		if groups {
			chosen = append(chosen, blobs(t, w, segment.KindInner)...)
		}
		w.Root = w.Reload()
		undo := spoil(t, w, chosen...)
		since := map[string]bool{}
		for range 1 + w.Rand.IntN(20) {
			changes := w.Changes(1+200>>w.Rand.IntN(8), 2+w.Rand.IntN(3))
			for _, c := range changes {
				since[string(c.Key)] = true
			}
			w.Apply(nil, changes, o)
			truthful(t, w, w.Reload(), since)
			if w.Rand.IntN(2) == 0 {
				w.Root = w.Reload()
			}
		}
		undo()
		truthful(t, w, w.Reload(), since)
		if !groups {
			w.Root = w.Reload()
			w.Verify(w.Root, w.Model, w.Now)
			w.Check(w.Root)
			w.Audit()
			o.Rewrite = &layout.Stretch{}
			w.Apply(nil, w.Changes(5, 2), o)
			holds(t, w)
			if n, exact := w.Root.Records(); n != int64(len(w.Model)) || !exact {
				t.Errorf("written anew: %d records (exactly: %v) of %d", n, exact, len(w.Model))
			}
		}
		if drop(t, w); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if told == 0 {
		t.Error("nobody was told of damage")
	}
}

// TestDeltasJoinedBesideDamage: deltas from before the damage become one with those from behind it. What was freed with them is not freed
// once more, and what they took away does not come back with the page.
func TestDeltasJoinedBesideDamage(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	o := layout.ApplyOptions{MaxDeltas: 6}
	keys := names(0, 300)
	w.Apply(nil, put("old", keys...), o)
	page := blobs(t, w, segment.KindIndex)
	w.Apply(nil, put("first", "a", "b", keys[0]), o)
	w.Apply(nil, append(put("second", "a", keys[0], keys[1]), remove("b", keys[2])...), o)
	w.Apply(nil, put("third", "b", keys[1]), o)
	if s := w.Layout.Stats(w.Root); s.Deltas != 3 {
		t.Fatalf("%+v", s)
	}
	w.Root = w.Reload()
	undo := spoil(t, w, page...)
	since := map[string]bool{}
	for round := range 9 {
		for _, key := range []string{"a", "b", keys[0], keys[2], keys[3]} {
			since[key] = true
		}
		w.Apply(nil, append(put(string(rune('a'+round)), "a", keys[0], keys[2]), remove("b", keys[3])...), o)
		truthful(t, w, w.Reload(), since)
	}
	if s := w.Layout.Stats(w.Root); s.Deltas > 6 {
		t.Errorf("%+v", s)
	}
	undo()
	w.Verify(w.Root, w.Model, w.Now)
	w.Check(w.Root)
	w.Audit()
	o.Rewrite = &layout.Stretch{}
	w.Apply(nil, nil, o)
	holds(t, w)
}

// TestTombstoneIsNoRecord: a tombstone that stands for a key whose record is damaged hides it, and no other of its hash.
func TestTombstoneIsNoRecord(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	line := keysOfOneHash()[0]
	w.Apply(nil, put("old", line...), layout.ApplyOptions{})
	undo := spoil(t, w, recordOf(t, w, line[1]))
	w.Apply(nil, remove(line[1]), layout.ApplyOptions{})
	if _, ok, err := get(t, w, w.Root, line[1]); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	undo()
	w.Verify(w.Root, w.Model, w.Now)
	if n, err := w.Root.Count(nil, nil, 0); err != nil || n != 2 {
		t.Errorf("%d records, %v", n, err)
	}
	w.Apply(nil, nil, layout.ApplyOptions{Rewrite: &layout.Stretch{}})
	holds(t, w)
	var r record.Record
	for _, p := range blobs(t, w, segment.KindPieces) {
		piece, err := w.Env.Store.ReadPiece(segment.Piece{Segment: p.Segment, Offset: p.Offset, Length: p.Length}, layouttest.Keyspace, new(segment.Buffer))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parsePiece(piece, &r); err != nil || r.Kind == record.Tombstone {
			t.Errorf("%+v, %v", r, err)
		}
	}
}
