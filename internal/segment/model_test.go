package segment

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is what a store should hold: every blob that is in use, with its bytes, by pointer.
type model struct {
	store *Store
	t     *rapid.T
	nodes map[Pointer]uint64 // seed of the text
	value map[Pointer]uint64
	seed  uint64
}

const modelBlob = 3000

func (m *model) read(p Pointer, seed uint64) {
	var buf Buffer
	raw, _, err := m.store.Read(p, &buf)
	if err != nil {
		m.t.Fatalf("read %+v: %v", p, err)
	}
	if want := modelText(seed); string(raw) != string(want) {
		m.t.Fatalf("read %+v: %d bytes that differ from the %d written", p, len(raw), len(want))
	}
}

func modelText(seed uint64) []byte { return text(seed, 10+int(seed*7919%modelBlob)) }

func (m *model) next() uint64 { m.seed++; return m.seed }

// checkpoint frees some nodes and values and writes some, and commits or aborts.
func (m *model) checkpoint(t *rapid.T) {
	w := m.store.NewWriter(Nodes, 0)
	if rapid.Bool().Draw(t, "split") {
		w.Split()
	}
	added, freed := map[Pointer]uint64{}, []Pointer{}
	for range rapid.IntRange(0, 30).Draw(t, "appends") {
		seed := m.next()
		p, err := w.Append(everyKind[seed%uint64(len(everyKind))], 1, Codec(seed%3), 0, modelText(seed))
		if err != nil {
			t.Fatal(err)
		}
		added[p] = seed
	}
	for _, set := range []map[Pointer]uint64{m.nodes, m.value} {
		all := slices.SortedFunc(maps.Keys(set), comparePointers)
		for _, p := range all {
			if rapid.IntRange(0, 9).Draw(t, "free") == 0 {
				freed = append(freed, p)
			}
		}
	}
	for _, p := range freed {
		w.Free(p)
	}
	if rapid.IntRange(0, 4).Draw(t, "abort") == 0 {
		if err := w.Abort(); err != nil {
			t.Fatal(err)
		}
		return
	}
	planned := w.Table()
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	w.Commit()
	if !slices.Equal(planned, m.store.Segments()) {
		t.Fatalf("planned table %v, got %v", planned, m.store.Segments())
	}
	maps.Copy(m.nodes, added)
	for _, p := range freed {
		delete(m.nodes, p)
		delete(m.value, p)
	}
}

func comparePointers(a, b Pointer) int {
	if a.Segment != b.Segment {
		return int(a.Segment) - int(b.Segment)
	}
	return int(a.Offset) - int(b.Offset)
}

func (m *model) check() {
	live := map[uint32]int64{}
	for _, set := range []map[Pointer]uint64{m.nodes, m.value} {
		for p := range set {
			live[p.Segment] += int64(p.Length)
		}
	}
	for _, i := range m.store.Segments() {
		if live[i.ID] != i.Live {
			m.t.Fatalf("segment %d has %d bytes live, the model says %d", i.ID, i.Live, live[i.ID])
		}
		delete(live, i.ID)
	}
	if len(live) > 0 {
		m.t.Fatalf("segments of the model that are not there: %v", live)
	}
}

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fsys := newFS(t)
		o := testOptions(fsys)
		o.SegmentBytes = 8 << 10
		s, err := Open(o, nil, 1)
		if err != nil {
			rt.Fatal(err)
		}
		m := &model{store: s, t: rt, nodes: map[Pointer]uint64{}, value: map[Pointer]uint64{}}
		rt.Repeat(map[string]func(*rapid.T){
			"checkpoint": m.checkpoint,
			"value": func(t *rapid.T) {
				seed := m.next()
				p, err := m.store.AppendValue(1, Codec(seed%3), modelText(seed))
				if err != nil {
					t.Fatal(err)
				}
				if open := m.store.OpenValueSegment(); open != p.Segment {
					t.Fatalf("value in segment %d, open is %d", p.Segment, open)
				}
				m.store.Live(p, int64(p.Length)) // as the root that comes to refer to it
				m.value[p] = seed
			},
			"seal": func(*rapid.T) { m.store.SealValues() },
			"free a value": func(t *rapid.T) {
				if len(m.value) == 0 {
					t.Skip()
				}
				p := rapid.SampledFrom(slices.SortedFunc(maps.Keys(m.value), comparePointers)).Draw(t, "value")
				m.store.Live(p, -int64(p.Length))
				delete(m.value, p)
			},
			"clean": func(t *rapid.T) {
				for _, i := range m.store.Segments() {
					if i.Live == 0 {
						if err := m.store.Remove(i.ID); err != nil {
							t.Fatal(err)
						}
					}
				}
			},
			"read": func(t *rapid.T) {
				for _, set := range []map[Pointer]uint64{m.nodes, m.value} {
					for p, seed := range set {
						m.read(p, seed)
					}
				}
			},
			"reopen": func(t *rapid.T) {
				table, next := m.store.Segments(), m.store.NextID()
				if err := m.store.Close(); err != nil {
					t.Fatal(err)
				}
				if m.store, err = Open(o, table, next); err != nil {
					t.Fatal(err)
				}
				if got := m.store.NextID(); got < next || len(m.store.Orphans()) > 0 || len(m.store.Damage()) > 0 {
					t.Fatalf("next %d after %d, orphans %v, damage %v", got, next, m.store.Orphans(), m.store.Damage())
				}
			},
			"": func(*rapid.T) { m.check() },
		})
		if err := m.store.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}
