package cache

import (
	"testing"

	"github.com/pandodb/pando/internal/epoch"
	"github.com/pandodb/pando/internal/offheap"
)

// holds checks that the pages of the handles, numbered in their order, are there. It must be called inside of an epoch section where
// memory is taken back meanwhile.
func holds(t *testing.T, c *Cache, handles []Handle) {
	t.Helper()
	for n, h := range handles {
		p, ok := c.Get(h)
		if !ok {
			t.Fatalf("page %d is not there", n)
		}
		if err := verify(p, uint64(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// Of memory that nobody has used no more is touched than the pages take that are kept, and a little.
func TestFewPagesTouchLittle(t *testing.T) {
	c := New(64<<20, epoch.New())
	defer c.Close()
	const size = 10 << 10
	var handles []Handle
	for n := uint64(0); len(handles) == 0 || c.chunks[0].opened < len(c.chunks[0].frames); n++ {
		h, err := c.Insert(content(n, size), 1)
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
		if ahead := c.chunks[0].opened - len(handles); ahead > 2*(openBytes/size+1) {
			t.Fatalf("%d frames more than %d pages have a header", ahead, len(handles))
		}
		if err := c.audit(); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.Stats(); s.Bytes != 1<<c.shift {
		t.Errorf("%d pages take %d bytes, want one chunk of %d", len(handles), s.Bytes, 1<<c.shift)
	}
	holds(t, c, handles)
}

// A few pages of each of several sizes share the chunks of the larger ones; a class with more of them gets chunks of its own.
func TestFewPagesOfEachSize(t *testing.T) {
	c := New(64<<20, epoch.New())
	defer c.Close()
	var handles []Handle
	for n, size := range []int{40 << 10, 34 << 10, 30 << 10, 40 << 10, 36 << 10, 31 << 10} {
		h, err := c.Insert(content(uint64(n), size), 1)
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	if s := c.Stats(); s.Pages != int64(len(handles)) || s.Bytes != 1<<c.shift {
		t.Errorf("%d pages in %d bytes, want %d in one chunk of %d", s.Pages, s.Bytes, len(handles), 1<<c.shift)
	}
	for n := uint64(len(handles)); n < 100; n++ {
		h, err := c.Insert(content(n, 30<<10), 1)
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	if err := c.audit(); err != nil {
		t.Fatal(err)
	}
	holds(t, c, handles)
	if k := c.classOf(40 << 10); len(c.classes[k-1].chunks)+len(c.classes[k-2].chunks) == 0 {
		t.Error("no smaller class has chunks of its own")
	}
}

// When many pages of each chunk have been replaced by somewhat smaller ones, these take the frames that have become free before memory that
// nobody has touched.
func TestSmallerPagesInTheirPlace(t *testing.T) {
	c := New(64<<20, epoch.New())
	defer c.Close()
	insert := func(n uint64, size int) Handle {
		t.Helper()
		h, err := c.Insert(content(n, size), 1)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	const pages = 400
	var handles []Handle
	for n := range uint64(pages) {
		handles = append(handles, insert(n, 40<<10))
	}
	before, first := c.Stats(), handles[0]
	for n := uint64(0); n < pages; n += 2 {
		c.Drop(handles[n])
	}
	for n := uint64(0); n < pages; n += 2 {
		handles[n] = insert(n, 32<<10)
	}
	if s := c.Stats(); s.Bytes > before.Bytes+2<<c.shift || s.Pages != pages {
		t.Errorf("%d pages, half of them smaller now, take %d bytes; the larger ones took %d", s.Pages, s.Bytes, before.Bytes)
	}
	if err := c.audit(); err != nil {
		t.Fatal(err)
	}
	guard := c.epoch.Enter()
	defer guard.Exit()
	for n, h := range handles {
		if c.Used(h) {
			t.Fatalf("page %d counts as used before anybody has asked for it", n)
		}
		p, ok := c.Get(h)
		if !ok || !c.Used(h) {
			t.Fatalf("page %d: there %v, used %v", n, ok, c.Used(h))
		}
		if err := verify(p, uint64(n)); err != nil {
			t.Fatal(err)
		}
	}
	if c.Used(first) {
		t.Error("a page that is gone counts as used")
	}
}

// Memory that somebody has to spare is asked for before fresh memory is written to: for each huge page once, and while nothing of the cache
// lies in it.
func TestTakeFrom(t *testing.T) {
	c := New(64<<20, epoch.New())
	defer c.Close()
	given := map[*byte]int{}
	c.TakeFrom(func(memory []byte) bool {
		if len(memory) != offheap.HugePage {
			t.Errorf("%d bytes are asked for", len(memory))
		}
		given[&memory[0]]++
		for i := range memory {
			memory[i] = 0xA5 // as what comes from elsewhere
		}
		return true
	})
	var handles []Handle
	for n := range uint64(400) {
		h, err := c.Insert(content(n, 40<<10), 1)
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	if err := c.audit(); err != nil {
		t.Fatal(err)
	}
	want := (c.Stats().Bytes - firstPages + offheap.HugePage - 1) / offheap.HugePage
	if int64(len(given)) != want {
		t.Errorf("%d huge pages were asked for, want %d", len(given), want)
	}
	for piece, times := range given {
		if times != 1 {
			t.Errorf("%p was asked for %d times", piece, times)
		}
	}
	guard := c.epoch.Enter()
	holds(t, c, handles)
	guard.Exit()
	c.Resize(8 << 20)
	c.Resize(64 << 20)
	for n := range handles {
		h, err := c.Insert(content(uint64(n), 40<<10), 1)
		if err != nil {
			t.Fatal(err)
		}
		handles[n] = h
	}
	if err := c.audit(); err != nil {
		t.Fatal(err)
	}
	again := 0
	for _, times := range given {
		again += times - 1
	}
	if again == 0 || c.moved != len(given) {
		t.Errorf("%d pieces that were given back are asked for again; %d of %d count as moved", again, c.moved, len(given))
	}
	defer c.epoch.Enter().Exit()
	holds(t, c, handles)
}
