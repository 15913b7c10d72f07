package hash

import (
	"bytes"
	"slices"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// A walk goes over the index pages in the order of their numbers, and over each of them in windows: stretches of its entries whose records make
// one page, sorted by key. Where windows begin follows from the entries alone, so a walk backwards meets with the same ones.

const (
	// windowBytes is how many bytes of records a window has before the next one begins.
	windowBytes = 32 << 10
	// pageBytes is how many bytes of records make one page where a window has more: records of one hash, whose keys somebody has made to
	// measure, are all in one window, as those that replace others are told by that.
	pageBytes = page.MaxRaw / 4
)

// windows reads index pages window by window. It belongs to one goroutine.
type windows struct {
	r       *root
	m       reader
	s       layout.Scratch
	buf     segment.Buffer
	list    []entry // of the index page at hand
	ends    []int   // where its windows end
	arena   []byte  // the keys and values of the window at hand
	items   []item
	cuts    []int // where the pages that the items make end: one page, nearly always
	builder page.Builder
}

// item is a record of the window at hand.
type item struct {
	key    []byte
	record record.Record
	order  int // in the index page: of one key the first is the newest
}

// open makes index page q the one at hand.
func (w *windows) open(q uint64) error {
	w.list, w.ends = w.list[:0], w.ends[:0]
	b, err := w.r.load(&w.buf, int(q/groupSlots))
	if err != nil {
		return err
	}
	if err := w.r.entries(&w.m, b, q); err != nil {
		return err
	}
	w.list = append(w.list, w.m.list...)
	bytes := uint32(0)
	for i := range w.list {
		if bytes >= windowBytes && w.list[i].hash != w.list[i-1].hash {
			w.ends = append(w.ends, i)
			bytes = 0
		}
		bytes += w.list[i].at.Length
	}
	if len(w.list) > 0 {
		w.ends = append(w.ends, len(w.list))
	}
	return nil
}

// read makes w.items the records of window i, sorted by key, without tombstones and what newer ones replace.
func (w *windows) read(i int) error {
	from := 0
	if i > 0 {
		from = w.ends[i-1]
	}
	list := w.list[from:w.ends[i]]
	size := int64(0)
	for j := range list {
		size += int64(list[j].at.Length)
	}
	// A window of more than most have gets its room as its records are found, which is not before they are there.
	w.arena = slices.Grow(w.arena[:0], int(min(size, windowBytes+1<<lengthBits)))
	w.items = w.items[:0]
	for j := range list {
		w.r.env.Store.PrefetchPiece(list[j].at)
	}
	for j := range list {
		piece, err := w.r.env.Store.ReadPiece(list[j].at, w.r.keyspace, &w.s.Blob)
		if err != nil {
			return err
		}
		at := len(w.arena)
		w.arena = append(w.arena, piece...)
		t := item{order: j}
		if t.key, err = parsePiece(w.arena[at:], &t.record); err != nil {
			return w.r.badPiece(list[j].at, err)
		}
		w.items = append(w.items, t)
	}
	slices.SortFunc(w.items, func(x, y item) int {
		if c := bytes.Compare(x.key, y.key); c != 0 {
			return c
		}
		return x.order - y.order
	})
	w.items = slices.CompactFunc(w.items, func(x, y item) bool { return bytes.Equal(x.key, y.key) })
	w.items = slices.DeleteFunc(w.items, func(x item) bool { return x.record.Kind == record.Tombstone })
	w.cut()
	return nil
}

// cut finds out which pages the items make.
func (w *windows) cut() {
	w.cuts = w.cuts[:0]
	bytes := 0
	for i := range w.items {
		if bytes >= pageBytes {
			w.cuts = append(w.cuts, i)
			bytes = 0
		}
		bytes += len(w.items[i].key) + len(w.items[i].record.Value)
	}
	w.cuts = append(w.cuts, len(w.items))
}

// build makes a page of the window at hand, in the memory of own where there is enough.
func (w *windows) build(own []byte, number int) (page.Page, []byte, error) {
	from := 0
	if number > 0 {
		from = w.cuts[number-1]
	}
	w.builder.Reset()
	for _, t := range w.items[from:w.cuts[number]] {
		if err := w.builder.Add(t.key, t.record); err != nil {
			return page.Page{}, own, err
		}
	}
	if n := w.builder.ResidentSize(); cap(own) < n {
		own = make([]byte, n+n/4)
	}
	own = own[:cap(own)]
	if err := w.builder.Load(own, w.r.keyspace); err != nil {
		return page.Page{}, own, err
	}
	return page.At(own), own, nil
}
