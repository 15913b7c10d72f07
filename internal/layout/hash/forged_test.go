package hash

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// What verifies and makes no sense was written by a faulty program, or on purpose. It has to be what damage is to a checkpoint: an error with
// a place where nothing can be done without it, and else something beside which the rest settles.

// forgePage puts an index page that is made of the entries of page q in its place.
func forgePage(t *testing.T, w *layouttest.World, q uint64, make func(depth int, list []entry) []byte) {
	t.Helper()
	r := w.Reload().(*root)
	group, m := int(q/groupSlots), new(reader)
	b, err := r.load(new(segment.Buffer), group)
	if err == nil {
		err = r.entries(m, b, q)
	}
	if err != nil {
		t.Fatal(err)
	}
	page := w.Forge(segment.KindIndex, make(r.depth, m.list))
	slot := &b.slots[q%groupSlots]
	old := append(slot.deltas, slot.base, r.groups[group].ptr)
	slot.base, slot.deltas = page, nil
	r.groups[group].ptr = w.Forge(segment.KindInner, appendGroup(nil, b.slots))
	free(t, w, old...)
	w.Root = load(t, w, r)
}

// free accounts blobs or pieces dead, as those who replace them do.
func free(t *testing.T, w *layouttest.World, list ...segment.Pointer) {
	t.Helper()
	writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
	for _, p := range list {
		writer.Free(p)
	}
	if err := writer.Flush(); err != nil {
		t.Fatal(err)
	}
	writer.Commit()
}

// forgeRecords writes pieces in the places of the records of some keys.
func forgeRecords(t *testing.T, w *layouttest.World, keys []string, raw [][]byte) (places []segment.Piece) {
	t.Helper()
	writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
	var all []byte
	var ends []int
	for _, piece := range raw {
		all = append(all, piece...)
		ends = append(ends, len(all))
	}
	at, err := writer.AppendPieces(layouttest.Keyspace, all, ends)
	if err := errors.Join(err, writer.Flush()); err != nil {
		t.Fatal(err)
	}
	writer.Commit()
	for i, key := range keys {
		at.Length = uint32(len(raw[i]))
		places = append(places, at)
		at.Offset += at.Length
		forgePage(t, w, pageOf(keyHash(key), w.Root.(*root).depth), func(depth int, list []entry) []byte {
			for j := range list {
				if list[j].hash == keyHash(key)&keptBits {
					free(t, w, list[j].at.Pointer())
					list[j].at, list[j].apart = places[i], len(raw[i]) > segment.PieceSumSize && raw[i][segment.PieceSumSize] == byte(record.Apart)
				}
			}
			return new(imager).append(nil, depth, pageOf(keyHash(key), depth), list)
		})
	}
	return places
}

// refuses expects an Apply to end with an error that names a place, and to change nothing.
func refuses(t *testing.T, w *layouttest.World, place string, ranges []layout.Range, o layout.ApplyOptions) {
	t.Helper()
	writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
	_, err := w.Layout.Apply(context.Background(), w.Root, ranges, nil, writer, o)
	if named := new(corrupt.Error); !errors.As(err, &named) || !strings.Contains(err.Error(), place) {
		t.Errorf("ranges %v, %+v: %v, want damage at %s", ranges, o, err, place)
	}
	if err := writer.Abort(); err != nil {
		t.Fatal(err)
	}
}

// nonsense are records for a key, none of which can be.
func nonsense(w *layouttest.World, key string) map[string][]byte {
	whole := appendPiece(nil, []byte(key), &record.Record{Kind: record.Inline, Value: []byte("a value")})
	with := func(at int, b byte) []byte {
		out := append([]byte(nil), whole...)
		out[at] = b
		return out
	}
	return map[string][]byte{
		"unknown kind":             with(segment.PieceSumSize, byte(record.Apart)+1),
		"an expiry that ends it":   with(segment.PieceSumSize, byte(record.Inline)|pieceExpires)[:pieceHead+5],
		"key longer than it":       with(pieceHead, 200),
		"value longer than it":     with(pieceHead+1, 100),
		"bytes behind the value":   append(with(0, 0), 1, 2, 3),
		"nothing but the checksum": whole[:segment.PieceSumSize],
		"of another key":           appendPiece(nil, []byte("name000008"), &record.Record{Kind: record.Inline, Value: []byte("forged")}),
		"of a key that is not there": appendPiece(nil, []byte("never written"),
			&record.Record{Kind: record.Apart, Value: w.Apart([]byte("of nobody")).Value}),
	}
}

// forgedRecord is a table in which a record makes no sense, in a segment with others, and where it lies.
func forgedRecord(t *testing.T, name string) (w *layouttest.World, key string, at segment.Piece, told *int) {
	t.Helper()
	w = layouttest.NewWorld(t, config(), 1, 0, 0)
	told = countDamage(t, w)
	w.Env.Dropped = func(error) {}
	w.Apply(nil, put("old", names(0, 700)...), layout.ApplyOptions{})
	key = "name000007"
	keys := append([]string{key}, names(9, 29)...)
	raw := [][]byte{nonsense(w, key)[name]}
	for _, key := range keys[1:] {
		raw = append(raw, appendPiece(nil, []byte(key), &record.Record{Kind: record.Inline, Value: []byte("old of " + key)}))
	}
	return w, key, forgeRecords(t, w, keys, raw)[0], told
}

// truthfulReads is truthful without walks: those do not compare records with the index.
func truthfulReads(t *testing.T, w *layouttest.World, since map[string]bool) {
	t.Helper()
	r := w.Reload()
	for key, want := range w.Model {
		if key > "name000030" && keyHash(key)%8 > 0 { // some of those to which nothing has been done
			continue
		}
		switch got, ok, err := get(t, w, r, key); {
		case errors.Is(err, corrupt.Err) && key == "name000007" && !since[key]:
		case err != nil || !ok || got != string(want.Value):
			t.Fatalf("key %s, written since: %v: %q, %v, %v", key, since[key], got, ok, err)
		}
	}
	for key := range since {
		if _, there := w.Model[key]; !there {
			if _, ok, err := get(t, w, r, key); ok || err != nil {
				t.Fatalf("key %s, deleted since: %v, %v", key, ok, err)
			}
		}
	}
}

// TestRecordThatMakesNoSense changes, deletes, moves and drops a record that verifies and makes no sense, and others beside it.
func TestRecordThatMakesNoSense(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for name := range nonsense(layouttest.NewWorld(t, config(), 1, 0, 0), "") {
		for what, act := range map[string]func(w *layouttest.World, key string, at segment.Piece) (since map[string]bool){
			"changed": func(w *layouttest.World, key string, _ segment.Piece) map[string]bool {
				w.Apply(nil, put("new", key), layout.ApplyOptions{})
				return map[string]bool{key: true}
			},
			"deleted": func(w *layouttest.World, key string, _ segment.Piece) map[string]bool {
				w.Apply(nil, remove(key), layout.ApplyOptions{})
				return map[string]bool{key: true}
			},
			"moved": func(w *layouttest.World, _ string, at segment.Piece) map[string]bool {
				w.Apply(nil, put("new", "name000300"), layout.ApplyOptions{Victims: segment.SetOf(at.Segment)})
				if n := liveIn(w, at.Segment); n != int64(at.Length) {
					t.Errorf("%d bytes are live in the segment, the record has %d", n, at.Length)
				}
				return nil
			},
			"changed while moved": func(w *layouttest.World, key string, at segment.Piece) map[string]bool {
				w.Apply(nil, put("new", key), layout.ApplyOptions{Victims: segment.SetOf(at.Segment)})
				return map[string]bool{key: true}
			},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				w, key, at, told := forgedRecord(t, name)
				place := fmt.Sprintf("%s: damaged at offset %d", segment.FilePath(at.Segment), at.Offset)
				if _, _, err := get(t, w, w.Root, key); !errors.Is(err, corrupt.Err) || !strings.Contains(err.Error(), place) {
					t.Errorf("a record at %s: %v", place, err)
				}
				expectReports(t, reports(t, w, w.Root), []string{place})
				salvages(t, w, key, place)
				since := act(w, key, at)
				if *told != 1 {
					t.Errorf("somebody was told of damage %d times", *told)
				}
				truthfulReads(t, w, since)
				refuses(t, w, place, []layout.Range{{Hi: []byte("name0003")}}, layout.ApplyOptions{})
				refuses(t, w, place, nil, layout.ApplyOptions{Rewrite: &layout.Stretch{}})
				w.Apply(nil, put("more", names(700, 1100)...), layout.ApplyOptions{}) // pages split, for which records are not read
				truthfulReads(t, w, since)
				if n, _ := w.Root.Records(); n < int64(len(w.Model)) {
					t.Errorf("%d records of %d", n, len(w.Model))
				}
				drop(t, w)
			})
		}
	}
}

// salvages expects all records to be salvaged but that of a key, which lies at a place.
func salvages(t *testing.T, w *layouttest.World, key, place string) {
	t.Helper()
	var lost []string
	found := map[string]string{}
	err := Salvage(context.Background(), w.Env, layouttest.Keyspace, w.Root.Encode(nil), func(k []byte, r record.Record) error {
		found[string(k)] = string(r.Value)
		return nil
	}, func(from, to uint64, err error) error {
		if keyHash(key) >= from && keyHash(key) <= to {
			lost = append(lost, err.Error())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expectReports(t, lost, []string{place})
	for k, want := range w.Model {
		if found[k] != string(want.Value) && k != key {
			t.Errorf("salvaged: %s is %q, want %q", k, found[k], want.Value)
		}
	}
	if len(found) != len(w.Model)-1 {
		t.Errorf("%d records are salvaged of %d", len(found), len(w.Model))
	}
}

// liveIn is how many bytes of a segment are live.
func liveIn(w *layouttest.World, id uint32) int64 {
	for _, s := range w.Env.Store.Segments() {
		if s.ID == id {
			return s.Live
		}
	}
	return 0
}

// TestIndexPageThatMakesNoSense settles beside index pages that verify and cannot be, and walks over them, empties their segments and drops
// them: they were once believed as soon as their heads made sense, and merging changes into entries without order ended in a panic.
func TestIndexPageThatMakesNoSense(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	exchange := func(x, y []byte) {
		for i := range x {
			x[i], y[i] = y[i], x[i]
		}
	}
	or := func(p image, at int, bits uint64) {
		binary.LittleEndian.PutUint64(p[at:], binary.LittleEndian.Uint64(p[at:])|bits)
	}
	for name, c := range map[string]struct {
		plain bool
		spoil func(p image)
	}{
		"entries in the wrong order": {false, func(p image) { exchange(p[p.words():p.words()+8], p[len(p)-8:]) }},
		"a segment that it does not have": {false, func(p image) {
			or(p, p.words(), uint64(1<<p.widths().segment-1)<<p.widths().offset)
		}},
		"hashes in the wrong order":         {true, func(p image) { exchange(p[p.words():p.words()+4], p[p.places()-4:p.places()]) }},
		"a place in a segment of no number": {true, func(p image) { or(p, p.places(), (maxSegments-1)<<segmentAt) }},
		"a hash of another page":            {true, func(p image) { p[p.words()+3] ^= 0x80 }},
		"a number of another page":          {false, func(p image) { p[offsetPage] ^= 1 }},
		"of another depth":                  {false, func(p image) { p[offsetDepth]++ }},
		"more entries than it has":          {false, func(p image) { p[0]++ }},
		"widths that do not fit":            {false, func(p image) { p[offsetWidth] = 60 }},
	} {
		t.Run(name, func(t *testing.T) {
			w := layouttest.NewWorld(t, config(), 1, 0, 0)
			told := countDamage(t, w)
			w.Env.Dropped = func(error) {}
			changes := put("old", names(0, 700)...)
			if c.plain {
				changes[7].Record = layouttest.Inline(strings.Repeat("long", 16<<10)) // its length takes too many bits of a word
			}
			w.Apply(nil, changes, layout.ApplyOptions{})
			w.Apply(nil, put("old", names(700, 701)...), layout.ApplyOptions{})
			q := pageOf(keyHash("name000007"), w.Root.(*root).depth)
			forgePage(t, w, q, func(depth int, list []entry) []byte {
				p := new(imager).append(nil, depth, q, list)
				if p.packed() == c.plain {
					t.Fatalf("packed: %v", p.packed())
				}
				c.spoil(p)
				return p
			})
			b, _ := w.Reload().(*root).load(new(segment.Buffer), 0)
			at := b.slots[q].base
			place := fmt.Sprintf("%s: damaged at offset %d", segment.FilePath(at.Segment), at.Offset)
			expectReports(t, reports(t, w, w.Root), []string{place})
			refuses(t, w, place, nil, layout.ApplyOptions{Victims: segment.SetOf(at.Segment)})
			refuses(t, w, place, nil, layout.ApplyOptions{Rewrite: &layout.Stretch{}})
			refuses(t, w, place, []layout.Range{{Lo: []byte("name0000")}}, layout.ApplyOptions{})
			since := map[string]bool{}
			for round := range 9 {
				changed, gone := names(round, round+5), names(30+round, 32+round)
				for _, key := range append(changed, gone...) {
					since[key] = true
				}
				o := layout.ApplyOptions{}
				if round%3 == 0 { // what the page refers to is not known, and stays
					o.Victims = w.Segments(func(id uint32) bool { return id < at.Segment && id%2 == uint32(round%2) })
				}
				w.Apply(nil, append(put(string(rune('a'+round)), changed...), remove(gone...)...), o)
				for _, r := range []layout.Root{w.Root, w.Reload()} {
					settled(t, w, r, since)
				}
			}
			if *told == 0 {
				t.Error("nobody was told of damage")
			}
			drop(t, w)
		})
	}
}

// settled expects what was changed since to be there, and nothing else to be made up.
func settled(t *testing.T, w *layouttest.World, r layout.Root, since map[string]bool) {
	t.Helper()
	for key := range since {
		want, there := w.Model[key]
		if got, ok, err := get(t, w, r, key); err != nil && (there || !errors.Is(err, corrupt.Err)) || ok != there || ok && got != string(want.Value) {
			t.Fatalf("key %s, written since: %q, %v, %v", key, got, ok, err)
		}
	}
	for key, want := range w.Model {
		if keyHash(key)%8 > 0 {
			continue
		}
		if got, ok, err := get(t, w, r, key); err != nil && !errors.Is(err, corrupt.Err) || ok && got != string(want.Value) {
			t.Fatalf("key %s: %q, %v, %v", key, got, ok, err)
		}
	}
}

// TestRootThatSaysTooFewOrTooMany deletes records of tables whose root, or a slot, has the wrong number of them: a table was taken for empty, and
// all of it dropped, as soon as that number had come to nothing.
func TestRootThatSaysTooFewOrTooMany(t *testing.T) {
	for name, c := range map[string]struct {
		lie  func(r *root, b *body)
		then []layout.Change
	}{
		"few, all of which are deleted":  {func(r *root, _ *body) { r.count = 3 }, remove(names(0, 3)...)},
		"few, and more are deleted":      {func(r *root, _ *body) { r.count = 2 }, remove(names(0, 3)...)},
		"none":                           {func(r *root, _ *body) { r.count = 0 }, remove(names(0, 3)...)},
		"fewer, and pages are split":     {func(r *root, _ *body) { r.count = 600 }, remove(names(0, 500)...)},
		"few, and pages are joined":      {func(r *root, _ *body) { r.count = 150 }, remove(names(0, 3)...)},
		"many, so that pages are split":  {func(r *root, _ *body) { r.count = 1 << 50 }, put("new", names(0, 3)...)},
		"a slot that says more than all": {func(_ *root, b *body) { b.slots[0].count += 690 }, remove(names(0, 3)...)},
	} {
		t.Run(name, func(t *testing.T) {
			w := layouttest.NewWorld(t, config(), 1, 0, 0)
			told := countDamage(t, w)
			w.Apply(nil, put("old", names(0, 700)...), layout.ApplyOptions{})
			liar := w.Reload().(*root)
			b, err := liar.load(new(segment.Buffer), 0)
			if err != nil {
				t.Fatal(err)
			}
			c.lie(liar, b)
			old := liar.groups[0].ptr
			liar.groups[0].ptr = w.Forge(segment.KindInner, appendGroup(nil, b.slots))
			free(t, w, old)
			w.Root = load(t, w, liar)
			w.Apply(nil, c.then, layout.ApplyOptions{})
			if *told != 1 {
				t.Errorf("somebody was told of damage %d times", *told)
			}
			holds(t, w)
			if d := w.Root.(*root).depth; d > 2 {
				t.Errorf("2^%d pages", d)
			}
		})
	}
}

// TestRecordThatManyEntriesReferTo: an index page of which many entries refer to one and the same record is damaged. A walk would gather that
// as often as it is referred to, and who asks for another key of the hash would read it as often.
func TestRecordThatManyEntriesReferTo(t *testing.T) {
	for _, deltas := range []bool{false, true} {
		w := layouttest.NewWorld(t, config(), 1, 0, 0)
		w.Env.Damaged, w.Env.Dropped = func(error) {}, func(error) {}
		w.Apply(nil, put("old", names(0, 300)...), layout.ApplyOptions{})
		key := "name000007"
		forgePage(t, w, 0, func(depth int, list []entry) []byte {
			var out []entry
			for _, e := range list {
				out = append(out, e)
				for n := 0; n < 100 && e.hash == keyHash(key)&keptBits; n++ {
					out = append(out, e)
				}
			}
			return new(imager).append(nil, depth, 0, out)
		})
		if deltas {
			w.Apply(nil, put("new", names(100, 103)...), layout.ApplyOptions{})
		}
		w.Root = w.Reload()
		c := w.Root.NewCursor()
		for ok := c.First(); ok; ok = c.Next() {
		}
		if !errors.Is(c.Err(), corrupt.Err) {
			t.Errorf("a walk: %v", c.Err())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if found := reports(t, w, w.Root); len(found) == 0 || len(found) > 2 {
			t.Errorf("%d reports of one page", len(found))
		}
		if _, _, err := get(t, w, w.Root, key); !errors.Is(err, corrupt.Err) {
			t.Errorf("its key: %v", err)
		}
		drop(t, w)
	}
}

// TestRecordThatManyChangesReferTo is the same of a delta, for one who looks a single key up and reads no more of the page than that takes.
func TestRecordThatManyChangesReferTo(t *testing.T) {
	for _, drops := range []bool{false, true} { // what the base has of this hash
		w := layouttest.NewWorld(t, config(), 1, 0, 0)
		w.Apply(nil, put("old", names(0, 300)...), layout.ApplyOptions{})
		r, m := w.Root.(*root), new(reader)
		b, err := r.load(new(segment.Buffer), 0)
		if err != nil {
			t.Fatal(err)
		}
		hash := keyHash("name000007")
		if err := r.lookUp(m, b, 0, hash); err != nil || len(m.found) != 1 {
			t.Fatalf("%d places, %v", len(m.found), err)
		}
		ops := slices.Repeat([]op{{entry: entry{hash: hash & keptBits, at: m.found[0]}, flags: opAdd}}, 100)
		if drops {
			ops[0].flags |= opDrop
		}
		slot := &b.slots[0]
		slot.deltas = []segment.Pointer{w.Forge(segment.KindIndexDelta, appendDelta(nil, ops))}
		m.found = m.found[:0]
		if err := r.lookUp(m, b, 0, hash); !errors.Is(err, corrupt.Err) || len(m.found) > 0 {
			t.Errorf("drops %v: a record is to be read %d times, %v", drops, len(m.found), err)
		}
	}
}
