package segment

import (
	"slices"
	"testing"
)

// everyKind is what a checkpoint writes, in some order.
var everyKind = []Kind{KindLeaf, KindDelta, KindFilter, KindLeaf, KindDelta, KindInner, KindIndexDelta, KindIndex, KindDictionary, KindInner}

// A Writer that was told to keeps what the next checkpoints replace out of the segments of what stays: when that is freed whole segments
// are empty.
func TestSplit(t *testing.T) {
	s := emptyStore(t)
	w := s.NewWriter(Nodes, 7)
	w.Split()
	w.Split() // once more changes nothing
	homes := [lifetimes]map[uint32]bool{{}, {}, {}}
	pointers := map[Pointer][]byte{}
	var replaced []Pointer
	add := func(kind Kind, size int) Pointer {
		raw := noise(uint64(len(pointers)), size)
		p := mustAppend(t, w, kind, None, raw)
		pointers[p] = raw
		return p
	}
	for i := range 100 {
		for _, kind := range everyKind {
			p := add(kind, 1000+i*100)
			homes[kind.lifetime()][p.Segment] = true
			if kind.lifetime() != lasting {
				replaced = append(replaced, p)
			}
		}
	}
	for lifetime, home := range homes {
		if len(home) < 2 {
			t.Errorf("of lifetime %d no segment was full: %v", lifetime, home)
		}
		for id := range home {
			if homes[(lifetime+1)%lifetimes][id] {
				t.Errorf("segment %d has several", id)
			}
		}
	}
	sizes := map[uint32]int64{}
	for _, i := range w.Table() {
		sizes[i.ID] = i.Size
	}
	must(t, w.Sync())
	w.Commit()
	for p, raw := range pointers {
		mustRead(t, s, p, raw)
	}
	for _, i := range s.Segments() {
		if sizes[i.ID] != i.Size || i.Live != i.Size-FileHeaderSize {
			t.Errorf("segment %d: size %d, foretold %d, %d live", i.ID, i.Size, sizes[i.ID], i.Live)
		}
	}

	w = s.NewWriter(Nodes, 7)
	for _, p := range replaced {
		w.Free(p)
	}
	w.Commit()
	for _, i := range s.Segments() {
		if empty := i.Live == 0; empty == homes[lasting][i.ID] {
			t.Errorf("segment %d: %d bytes live", i.ID, i.Live)
		}
	}
}

// A catalogue lies behind all that its Writer wrote before it, wherever that is: salvage tells by that what belongs to it.
func TestCatalogueComesLast(t *testing.T) {
	for first, kinds := range map[string][]Kind{
		"leaves": {KindLeaf, KindInner, KindLeaf}, "nodes": {KindInner, KindLeaf, KindInner}, "all": {KindDelta, KindInner, KindLeaf}, "only leaves": {KindLeaf}, "only nodes": {KindInner}, "nothing": nil,
	} {
		t.Run(first, func(t *testing.T) {
			s := emptyStore(t)
			w := s.NewWriter(Nodes, 7)
			w.Split()
			var before []Pointer
			for i := range 40 { // segments are left on the way
				for _, kind := range kinds {
					before = append(before, mustAppend(t, w, kind, None, noise(uint64(i), 40<<10)))
				}
				c := mustAppend(t, w, KindCatalogue, S2, text(uint64(i), 200))
				if last := slices.MaxFunc(append(before, c), comparePointers); last != c {
					t.Fatalf("catalogue at %v, something at %v", c, last)
				}
			}
			must(t, w.Sync())
			w.Commit()
		})
	}
}

// What is to go away goes away with all of its segments.
func TestAbortAfterSplit(t *testing.T) {
	s := emptyStore(t)
	w := s.NewWriter(Nodes, 7)
	w.Split()
	for i, kind := range everyKind {
		mustAppend(t, w, kind, None, noise(uint64(i), 1000))
	}
	must(t, w.Flush())
	must(t, w.Abort())
	names, err := s.options.FS.List(s.dir)
	if err != nil || len(names) > 0 || len(s.Segments()) > 0 {
		t.Errorf("left: %v, %v, %v", names, s.Segments(), err)
	}
}
