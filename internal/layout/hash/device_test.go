package hash

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
)

// failing is a world whose device can be told to fail, with a clock that stands still. Segments have a few KiB, so that they can fail apart.
func failing(t *testing.T) (*layouttest.World, *faultfs.FS, *clock.Manual) {
	t.Helper()
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	ffs, hand := faultfs.New(w.FS), clock.NewManual(time.Unix(0, 0))
	store, err := segment.Open(segment.Options{FS: ffs, Dir: "db", SegmentBytes: 4 << 10, Clock: hand}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	w.Env.Store = store
	w.Env.Damaged, w.Env.Dropped = func(error) {}, func(error) {}
	return w, ffs, hand
}

// fail makes every read of a segment fail, until the device works again.
func fail(ffs *faultfs.FS, id uint32) {
	ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpReadAt), Name: segment.FileName(id), Times: -1})
}

// TestUnreadableIndexPage: what is written while a page cannot be read settles, and all is there when the device works again.
func TestUnreadableIndexPage(t *testing.T) {
	w, ffs, _ := failing(t)
	w.Apply(nil, put("old", names(0, 300)...), layout.ApplyOptions{})
	page := blobs(t, w, segment.KindIndex)[0]
	w.Apply(nil, put("b", "more"), layout.ApplyOptions{}) // a delta, and a group in a segment that can be read
	if group := blobs(t, w, segment.KindInner)[0]; group.Segment == page.Segment || blobs(t, w, segment.KindIndex)[0] != page {
		t.Fatalf("the group is %+v, the page %+v", group, page)
	}
	told := 0
	w.Env.Damaged = func(err error) {
		if told++; errors.Is(err, corrupt.Err) || !errors.Is(err, segment.ErrUnreadable) {
			t.Error(err)
		}
	}
	w.Root = w.Reload()
	fail(ffs, page.Segment)
	since := map[string]bool{}
	for round := range 20 {
		for _, key := range names(0, 9) {
			since[key] = true
		}
		w.Apply(nil, append(put(string(rune('a'+round)), names(0, 6)...), remove(names(6, 9)...)...), layout.ApplyOptions{})
		truthful(t, w, w.Reload(), since)
	}
	if told != 20 {
		t.Errorf("somebody was told %d times", told)
	}
	ffs.Set()
	w.Verify(w.Reload(), w.Model, w.Now)
	w.Check(w.Root)
	w.Audit()
	w.Apply(nil, nil, layout.ApplyOptions{Rewrite: &layout.Stretch{}})
	holds(t, w)
}

// TestUnreadableGroup: as long as a group may be readable again nothing takes its place, since what it has would be lost; later it is damage.
func TestUnreadableGroup(t *testing.T) {
	w, ffs, hand := failing(t)
	w.Apply(nil, put("old", names(0, 300)...), layout.ApplyOptions{})
	group := blobs(t, w, segment.KindInner)[0]
	apply := func() error {
		writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
		_, err := w.Layout.Apply(context.Background(), w.Reload(), nil, &layout.SliceChanges{Changes: put("new", "new")}, writer, layout.ApplyOptions{})
		return errors.Join(err, writer.Abort())
	}
	fail(ffs, group.Segment)
	for range 12 {
		if err := apply(); !errors.Is(err, segment.ErrUnreadable) || errors.Is(err, corrupt.Err) {
			t.Fatalf("a group that cannot be read: %v", err)
		}
		hand.Advance(time.Second)
	}
	ffs.Set()
	holds(t, w)
	fail(ffs, group.Segment)
	for range 12 {
		_ = apply()
		hand.Advance(5 * time.Second)
	}
	w.Root = w.Reload()
	w.Apply(nil, put("new", "new"), layout.ApplyOptions{})
	truthful(t, w, w.Reload(), map[string]bool{"new": true})
}

// TestUnreadableRecord: records of a segment that the device does not give back are replaced and deleted all the same.
func TestUnreadableRecord(t *testing.T) {
	w, ffs, _ := failing(t)
	keys := names(0, 300)
	w.Apply(nil, put("old", keys...), layout.ApplyOptions{})
	w.Apply(nil, put("b", "more"), layout.ApplyOptions{MaxDeltas: -1}) // the page and its group lie in another segment
	at := recordOf(t, w, keys[5])
	fail(ffs, at.Segment)
	if _, _, err := get(t, w, w.Root, keys[5]); !errors.Is(err, segment.ErrUnreadable) || errors.Is(err, corrupt.Err) {
		t.Errorf("a record that cannot be read: %v", err)
	}
	since := map[string]bool{keys[5]: true, keys[6]: true}
	w.Apply(nil, append(put("new", keys[5]), remove(keys[6])...), layout.ApplyOptions{})
	truthful(t, w, w.Reload(), since)
	ffs.Set()
	w.Verify(w.Reload(), w.Model, w.Now)
	w.Audit()
	w.Check(w.Root)
	w.Apply(nil, nil, layout.ApplyOptions{Rewrite: &layout.Stretch{}})
	holds(t, w)
}

// TestDropWaitsForTheDevice: dropping everything ends with the error of a device that fails, and frees all once that works again.
func TestDropWaitsForTheDevice(t *testing.T) {
	w, ffs, _ := failing(t)
	w.Apply(nil, put("old", names(0, 300)...), layout.ApplyOptions{})
	fail(ffs, blobs(t, w, segment.KindIndex)[0].Segment)
	free := func() (*segment.Writer, error) {
		writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
		return writer, w.Layout.Free(context.Background(), w.Reload(), writer)
	}
	writer, err := free()
	if !errors.Is(err, segment.ErrUnreadable) {
		t.Errorf("everything is freed though it cannot be read: %v", err)
	}
	if err := writer.Abort(); err != nil {
		t.Fatal(err)
	}
	ffs.Set()
	holds(t, w)
	writer, err = free()
	if err != nil {
		t.Fatal(err)
	}
	writer.Commit()
	for _, s := range w.Env.Store.Segments() {
		if s.Live != 0 {
			t.Errorf("segment %d has %d live bytes", s.ID, s.Live)
		}
	}
}

// TestNoSpace: a device that is full fails the Apply, and leaves the root as it was.
func TestNoSpace(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 1<<20, 0)
	w.Apply(nil, put("old", names(0, 1000)...), layout.ApplyOptions{})
	w.FS.SetCapacity(w.FS.Used() + 8<<10)
	writer := w.Env.Store.NewWriter(segment.Nodes, layouttest.Keyspace)
	_, err := w.Layout.Apply(context.Background(), w.Root, nil, &layout.SliceChanges{Changes: put("new", names(0, 30_000)...)}, writer, layout.ApplyOptions{})
	if !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("want no space, got %v", err)
	}
	if err := writer.Abort(); err != nil {
		t.Fatal(err)
	}
	w.FS.SetCapacity(0)
	holds(t, w)
}

// TestWhatHasExpiredStaysInFrontOfWhatCouldNotBeRead: a record that the device did not give back when its key was written stays behind the newer
// one. When that has expired it still tells that the key is absent, whoever comes by: the cleaner, or a range that is deleted elsewhere.
func TestWhatHasExpiredStaysInFrontOfWhatCouldNotBeRead(t *testing.T) {
	for name, o := range map[string]func(newer segment.Pointer) ([]layout.Range, layout.ApplyOptions){
		"its segment is emptied": func(newer segment.Pointer) ([]layout.Range, layout.ApplyOptions) {
			return nil, layout.ApplyOptions{Now: 3000, Victims: segment.SetOf(newer.Segment)}
		},
		"a range is deleted": func(segment.Pointer) ([]layout.Range, layout.ApplyOptions) {
			return []layout.Range{{Lo: []byte("x"), Hi: []byte("y")}}, layout.ApplyOptions{Now: 3000}
		},
		"all is written anew": func(segment.Pointer) ([]layout.Range, layout.ApplyOptions) {
			return nil, layout.ApplyOptions{Now: 3000, Rewrite: &layout.Stretch{}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, ffs, _ := failing(t)
			keys := names(0, 300)
			w.Apply(nil, put("old", keys...), layout.ApplyOptions{})
			w.Apply(nil, put("b", "more"), layout.ApplyOptions{MaxDeltas: -1}) // the page and its group lie in another segment
			fail(ffs, recordOf(t, w, keys[5]).Segment)
			newer := put("new", keys[5])
			newer[0].Record.Expiry = 2000
			w.Apply(nil, newer, layout.ApplyOptions{})
			ffs.Set()
			ranges, options := o(recordOf(t, w, keys[5]))
			w.Apply(ranges, put("c", "more"), options)
			w.Audit()
			for _, r := range []layout.Root{w.Root, w.Reload()} {
				w.Verify(r, w.Model, w.Now)
				w.Check(r)
			}
		})
	}
}

// TestGroupThatIsReadWronglyOnce: a group is not given up, and its pages with it, for a fault on the way from the disk, nor is anything left behind
// where it is dropped.
func TestGroupThatIsReadWronglyOnce(t *testing.T) {
	w, ffs, _ := failing(t)
	w.Apply(nil, put("old", names(0, 300)...), layout.ApplyOptions{})
	group := blobs(t, w, segment.KindInner)[0]
	flip := func() {
		w.Root = w.Reload()
		ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpReadAt), Name: segment.FileName(group.Segment), Fault: faultfs.FlipBit, Bit: 300})
	}
	flip()
	w.Apply(nil, put("new", names(5, 9)...), layout.ApplyOptions{})
	if ffs.Triggered() == 0 {
		t.Fatal("nothing was read wrongly")
	}
	ffs.Set()
	holds(t, w)
	group = blobs(t, w, segment.KindInner)[0]
	flip()
	w.Apply([]layout.Range{{}}, put("new", "new"), layout.ApplyOptions{})
	ffs.Set()
	holds(t, w)
}
