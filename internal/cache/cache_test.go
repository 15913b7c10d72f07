package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/epoch"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
)

// content makes raw page number n with about size bytes: all keys and values name n.
func content(n uint64, size int) []byte {
	var b page.Builder
	key := binary.BigEndian.AppendUint64(make([]byte, 0, 16), n)
	value := bytes.Repeat(key, min(size/8+1, 12))
	for i := uint64(0); b.Size() < size; i++ {
		key = binary.BigEndian.AppendUint64(key[:8], i)
		if err := b.Add(key, record.Record{Kind: record.Inline, Value: value}); err != nil {
			panic(err)
		}
	}
	return b.Append(nil)
}

// verify reports what p shows that page number n does not hold.
func verify(p page.Page, n uint64) error {
	want := binary.BigEndian.AppendUint64(nil, n)
	values, key := bytes.Repeat(want, 12), make([]byte, 0, 16)
	for i := range p.Len() {
		key = p.AppendKey(key[:0], i)
		if !bytes.Equal(key[:8], want) || binary.BigEndian.Uint64(key[8:]) != uint64(i) {
			return fmt.Errorf("page %d, entry %d: key %x", n, i, key)
		}
		r, ok := p.Get(record.Hash(1, key), key)
		if !ok || len(r.Value) > len(values) || !bytes.Equal(r.Value, values[:len(r.Value)]) {
			return fmt.Errorf("page %d, entry %d: %v %v", n, i, r, ok)
		}
	}
	return nil
}

// audit compares the books of the cache with the frames themselves.
func (c *Cache) audit() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, free := make([]int, len(c.classes)), make([]int, len(c.classes))
	var pages, bytes int64
	resident, drains, keep := 0, 0, 0
	for n := range c.chunks {
		ch := &c.chunks[n]
		switch ch.use {
		case cold, worn:
			continue
		case draining:
			drains++
		}
		resident++
		if ch.use == warm || c.strides[n].Load() == noFrames {
			continue
		}
		idle := 0
		for i, s := range ch.frames {
			switch s {
			case live:
				pages++
				bytes += int64(c.classes[ch.class].size)
			case leaving:
				if ch.use == cut {
					out[ch.class]++
				}
			case kept:
				keep++
			case spent, blank:
				idle++
			default:
				idle++
				if ch.use == cut {
					free[ch.class]++
				}
			}
			generation := c.header(frame(n<<indexBits | i)).Generation.Load()
			if (s == blank) != (i >= ch.opened) || s == blank && (generation != 0 || ch.generation != 0) {
				return fmt.Errorf("chunk %d, frame %d of state %d: generation %d, %d are open", n, i, s, generation, ch.opened)
			}
			if s != spent && s != blank && generation == 0 {
				return fmt.Errorf("chunk %d, frame %d: no generation", n, i)
			}
		}
		if idle != ch.idle {
			return fmt.Errorf("chunk %d: idle %d, counted %d", n, ch.idle, idle)
		}
	}
	for i := range c.classes {
		if out[i] != c.classes[i].out || free[i] != len(c.classes[i].free) {
			return fmt.Errorf("class %d: out %d, counted %d; free %d, counted %d", i, c.classes[i].out, out[i], len(c.classes[i].free), free[i])
		}
	}
	if pages != c.stats.Pages || bytes != c.stats.PageBytes || resident != c.resident || drains != c.draining || keep != len(c.kept) {
		return fmt.Errorf("counted pages %d, bytes %d, resident %d, draining %d, kept %d; booked %+v, %d, %d, %d",
			pages, bytes, resident, drains, keep, c.stats, c.resident, c.draining, len(c.kept))
	}
	return nil
}

func newCache(t testing.TB, bytes int64) (*Cache, *epoch.Domain) {
	t.Helper()
	d := epoch.New()
	c := New(bytes, d)
	t.Cleanup(func() {
		d.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, d
}

func TestClasses(t *testing.T) {
	for _, chunk := range []int{1 << 16, 1 << 18, 1 << 20} {
		last := 0
		for i, cl := range newClasses(chunk) {
			if cl.size <= last || cl.size%frameAlign != 0 || cl.size*cl.count > chunk || cl.count > framesPerChunk {
				t.Errorf("chunk %d, class %d: %+v after %d", chunk, i, cl, last)
			}
			if last > 0 && cl.size <= chunk/6 && cl.size > last*5/4 {
				t.Errorf("chunk %d, class %d: step from %d to %d", chunk, i, last, cl.size)
			}
			last = cl.size
		}
		if last != chunk {
			t.Errorf("the largest frame has %d bytes, the chunk %d", last, chunk)
		}
	}
}

// Frame says what an insertion is going to take.
func TestFrame(t *testing.T) {
	c, _ := newCache(t, 64<<20)
	var taken int64
	for size := 100; size < 1<<20; size += size / 3 {
		raw := content(1, size)
		resident, err := page.ResidentSize(raw)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Insert(raw, 1)
		if frame := c.Frame(resident); (frame == 0) != errors.Is(err, ErrTooLarge) || int64(frame) != c.Stats().PageBytes-taken {
			t.Errorf("a page of %d bytes: a frame of %d, %d taken, %v", resident, frame, c.Stats().PageBytes-taken, err)
		}
		taken = c.Stats().PageBytes
	}
	if none, _ := newCache(t, 0); none.Frame(1000) != 0 {
		t.Error("a cache without memory has frames")
	}
}

// TestModel drives the cache at random and checks that it never shows a page under another's handle, and keeps pinned ones.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	c, d := newCache(t, 3<<20)
	type held struct {
		h Handle
		n uint64
		p page.Page
	}
	var handles, pins []held
	dropped := map[Handle]bool{}
	sizes := []int{100, 900, 5000, 6000, 7000, 8000, 20000, 60000, 80000}
	for step := range usualSteps {
		switch op := rnd.IntN(100); {
		case op < 50:
			n := rnd.Uint64()
			raw := content(n, sizes[rnd.IntN(len(sizes))])
			h, err := c.Insert(raw, 1)
			if errors.Is(err, ErrBusy) || errors.Is(err, ErrTooLarge) && len(raw) > 60000 {
				continue
			}
			if err != nil || dropped[h] {
				t.Fatalf("step %d: handle %x %v", step, h, err)
			}
			handles = append(handles, held{h: h, n: n})
		case op < 80 && len(handles) > 0:
			x := handles[rnd.IntN(len(handles))]
			g := d.Enter()
			if p, ok := c.Get(x.h); ok {
				if err := verify(p, x.n); err != nil || dropped[x.h] {
					t.Fatalf("step %d: handle %x, dropped %v: %v", step, x.h, dropped[x.h], err)
				}
				if len(pins) < 30 && rnd.IntN(4) == 0 {
					x.p, _ = c.Pin(x.h)
					pins = append(pins, x)
				}
			}
			g.Exit()
		case op < 90 && len(pins) > 0:
			i := rnd.IntN(len(pins))
			if err := verify(pins[i].p, pins[i].n); err != nil {
				t.Fatalf("step %d: pinned %v", step, err)
			}
			c.Unpin(pins[i].h)
			pins = append(pins[:i], pins[i+1:]...)
		case op < 97 && len(handles) > 0:
			x := handles[rnd.IntN(len(handles))]
			c.Drop(x.h)
			dropped[x.h] = true
		case op == 97 && rnd.IntN(10) == 0:
			c.Resize(rnd.Int64N(4 << 20))
		case op == 98:
			d.Collect()
		}
		if step%100 == 0 {
			if err := c.audit(); err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
		}
	}
	for _, x := range pins {
		c.Unpin(x.h)
	}
	c.Resize(0)
	for d.Collect() > 0 {
	}
	s := c.Stats()
	t.Logf("%+v", s)
	if err := c.audit(); err != nil || s.Pages != 0 || s.Bytes != 0 || s.Pinned != 0 || len(c.kept) != 0 {
		t.Fatalf("not empty in the end: %v", err)
	}
}

// A reader that stays in its section keeps what it got: inserts say ErrBusy rather than wait or reuse.
func TestBusy(t *testing.T) {
	c, d := newCache(t, 1<<20)
	g := d.Enter()
	var handles []Handle
	var err error
	for n := uint64(0); err == nil; n++ {
		var h Handle
		if h, err = c.Insert(content(n, 6000), 1); err == nil {
			handles = append(handles, h)
		}
	}
	if !errors.Is(err, ErrBusy) || len(handles) < 50 {
		t.Fatalf("%v after %d pages", err, len(handles))
	}
	g.Exit()
	for n := range uint64(1000) {
		if _, err := c.Insert(content(n, 6000), 1); err != nil {
			t.Fatalf("insert %d without readers: %v", n, err)
		}
	}
	if s := c.Stats(); s.Busy != 1 || s.Bytes > s.Limit {
		t.Fatalf("%+v", s)
	}
}

// Chunks move to the size class that needs them, and handles into the old frames stay stale.
func TestMoves(t *testing.T) {
	c, d := newCache(t, 2<<20)
	var old []Handle
	for round := range uint64(6) {
		size := []int{3000, 14000}[round%2]
		fit := (2 << 20) / size * 2 / 3
		raws := make([][]byte, fit)
		for n := range raws {
			raws[n] = content(round<<32|uint64(n), size)
		}
		last := map[uint64]Handle{}
		for n := range uint64(20 * fit) {
			h, err := c.Insert(raws[n%uint64(fit)], 1)
			if errors.Is(err, ErrBusy) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			last[n%uint64(fit)] = h
			old = append(old, h)
		}
		g := d.Enter()
		hits := 0
		for n, h := range last {
			if p, ok := c.Get(h); ok {
				hits++
				if err := verify(p, round<<32|n); err != nil {
					t.Fatal(err)
				}
			}
		}
		g.Exit()
		if hits < fit/2 {
			t.Errorf("round %d: of %d pages of %d bytes that fit, %d are there; %+v", round, fit, size, hits, c.Stats())
		}
		present := 0
		for _, h := range old {
			if _, ok := c.Get(h); ok {
				present++
			}
		}
		if s := c.Stats(); int64(present) != s.Pages {
			t.Fatalf("round %d: %d handles are good for %d pages", round, present, s.Pages)
		}
		if err := c.audit(); err != nil {
			t.Fatal(err)
		}
	}
}

// Pages in use outlive any number of pages that are read once, of their size or of another.
func TestScanResistance(t *testing.T) {
	c, d := newCache(t, 4<<20)
	small, large := content(0, 3000), content(1, 8000) // nobody looks at what is in them
	hot := make([]Handle, 100)
	for i := range hot {
		hot[i], _ = c.Insert(large, 1)
	}
	lost := 0
	for n := range uint64(20_000) {
		g := d.Enter()
		i := n % 100
		_, ok := c.Get(hot[i])
		g.Exit()
		if !ok {
			lost++
			hot[i], _ = c.Insert(large, 1)
		}
		if _, err := c.Insert([][]byte{small, large}[n%2], 1); err != nil && !errors.Is(err, ErrBusy) {
			t.Fatal(err)
		}
	}
	if lost > 1000 {
		t.Errorf("%d of 20,000 uses of hot pages missed", lost)
	}
	t.Logf("%d misses, %+v", lost, c.Stats())
}

// A frame whose generations are used up holds no page ever again, and its chunk none either.
func TestWear(t *testing.T) {
	c, d := newCache(t, 1<<16)
	h, err := c.Insert(content(0, 6000), 1)
	if err != nil {
		t.Fatal(err)
	}
	c.Drop(h)
	c.Resize(0)
	d.Collect()
	c.chunks[0].generation = maxGeneration - 2
	c.Resize(1 << 16)
	inserted := 0
	for n := range uint64(100) {
		h, err := c.Insert(content(n, 6000), 1)
		if err == nil {
			inserted++
			c.Drop(h)
		}
	}
	if count := c.classes[c.classOf(8000)].count; inserted == 0 || inserted > 4*count {
		t.Errorf("%d inserts", inserted)
	}
	c.Resize(0)
	d.Collect()
	if c.chunks[0].use != worn {
		t.Errorf("chunk %+v", c.chunks[0])
	}
	c.Resize(1 << 16)
	if _, err := c.Insert(content(0, 6000), 1); !errors.Is(err, ErrBusy) {
		t.Errorf("insert into a worn chunk: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	c, d := newCache(t, 1<<20)
	if _, err := c.Insert(content(1, 70_000), 1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	raw := content(1, 5000)
	raw[40] ^= 0xff
	raw[2000] = 0
	if _, err := c.Insert(append(raw, 0), 1); !errors.Is(err, corrupt.Err) {
		t.Errorf("damaged: %v", err)
	}
	if _, err := c.Insert(nil, 1); !errors.Is(err, corrupt.Err) {
		t.Errorf("nothing: %v", err)
	}
	for _, h := range []Handle{0, 1, 2 << generationAt, ^Handle(0)} {
		if _, ok := c.Get(h); ok {
			t.Errorf("Get(%x) found something", h)
		}
		c.Drop(h)
	}
	none := New(-1, d)
	if _, err := none.Insert(content(1, 100), 1); !errors.Is(err, ErrBusy) {
		t.Errorf("no budget: %v", err)
	}
	if err := errors.Join(none.Close(), none.Close()); err != nil {
		t.Error(err)
	}
	if _, err := none.Insert(content(1, 100), 1); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestInsertBuilder(t *testing.T) {
	c, d := newCache(t, 1<<20)
	var b page.Builder
	if err := b.Add([]byte("key"), record.Record{Kind: record.Inline, Value: []byte("value")}); err != nil {
		t.Fatal(err)
	}
	h, err := c.InsertBuilder(&b, 9)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Enter().Exit()
	p, ok := c.Get(h)
	if !ok {
		t.Fatal("not there")
	}
	if r, ok := p.Get(record.Hash(9, []byte("key")), []byte("key")); !ok || string(r.Value) != "value" {
		t.Fatalf("%v %v", r, ok)
	}
}

// Where the system does not give as much as the budget, the cache takes what there is; and where there is nothing it says so.
func TestLessMemoryThanTheBudget(t *testing.T) {
	c, d := newCache(t, 4<<20)
	given := c.alloc
	c.alloc = func(n int) ([]byte, error) {
		if n > 1<<20 {
			return nil, errors.New("no memory")
		}
		return given(n)
	}
	for _, budget := range []int64{4 << 20, 64 << 10, 4 << 20} {
		c.Resize(budget)
		for n := range uint64(400) {
			if _, err := c.Insert(content(n, 4000), 1); err != nil && !errors.Is(err, ErrBusy) {
				t.Fatalf("budget of %d bytes, page %d: %v", budget, n, err)
			}
		}
		want := min(budget, 1<<20)
		if s := c.Stats(); s.Limit != want || s.Bytes > want || s.PageBytes < want/2 {
			t.Errorf("budget of %d bytes, of which there are %d: %+v", budget, 1<<20, s)
		}
		if err := c.audit(); err != nil {
			t.Error(err)
		}
	}

	none := New(4<<20, d)
	none.alloc = func(int) ([]byte, error) { return nil, errors.New("no memory") }
	if _, err := none.Insert(content(1, 100), 1); !errors.Is(err, ErrNoMemory) {
		t.Errorf("no memory: %v", err)
	}
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}
