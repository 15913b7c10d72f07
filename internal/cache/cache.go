// Package cache keeps resident pages in one budget of memory outside of the Go heap.
//
// Whoever inserts a page gets a Handle, which says where the page lies and which generation of that place it is. A Handle
// stays harmless for ever: once its page is gone Get answers no. So the tree keeps handles in its slots, old versions of the
// tree keep theirs, and nobody has to tell them of an eviction.
//
// Memory is one block, cut into chunks; a chunk holds frames of one size class, and the classes lie about a fifth apart.
// Each class evicts with CLOCK (F. Corbato, "A Paging Experiment with the Multics System", 1968); a class that evicts at a
// far higher rate than another takes a chunk from it. An evicted frame is used again when every reader that was in an epoch
// section has left and nobody has the page pinned. As that takes a moment, each class evicts ahead of need. An Insert that
// still finds no frame does not wait: it says ErrBusy, and its caller goes on without the cache.
//
// Get and Pin must be called inside of an epoch section, and what Get returns is valid until the section ends. They take no
// lock and write nothing that another processor reads, but the mark of use where it is missing. Get costs no cache miss that
// a look-up in the page does not overlap: the page's first line, whose address the handle and a small table give. Insert
// takes a lock twice for some hundred nanoseconds and builds the page outside of it. One lock for all classes: each Insert
// follows a read from disk, so that it is never the bottleneck.
//
// Resident memory never exceeds the budget, apart from the few bytes a frame that the bookkeeping takes. The package does no
// I/O and starts no goroutine.
package cache

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pandodb/pando/internal/epoch"
	"github.com/pandodb/pando/internal/offheap"
	"github.com/pandodb/pando/internal/page"
)

// Errors of Insert, besides those of package page for what is no page. The caller goes on uncached after each of them.
var (
	// ErrBusy means that no frame is free at the moment.
	ErrBusy = errors.New("no free frame in the page cache at the moment")
	// ErrTooLarge means that the page is larger than a chunk of the cache.
	ErrTooLarge = errors.New("page is too large for the page cache")
	// ErrNoMemory means that the system has neither memory nor addresses for the cache, be it a small part of its budget.
	ErrNoMemory = errors.New("no memory for the page cache")
	// ErrClosed means that the cache has been closed.
	ErrClosed = errors.New("page cache is closed")
)

// Handle says where a page lies, and proves that it is still there. 0 is no page.
type Handle uint64

// From the lowest bit: index of the frame in its chunk, chunk, hash bits of the page, generation of the frame.
const (
	indexBits      = 10
	chunkBits      = 18
	hashBitsBits   = 5
	frameBits      = indexBits + chunkBits
	generationAt   = frameBits + hashBitsBits
	maxGeneration  = 1<<(64-generationAt) - 1
	maxChunks      = 1 << chunkBits
	framesPerChunk = 1 << indexBits
)

func (h Handle) frame() frame       { return frame(h & (1<<frameBits - 1)) }
func (h Handle) hashBits() uint64   { return uint64(h) >> frameBits & (1<<hashBitsBits - 1) }
func (h Handle) generation() uint32 { return uint32(h >> generationAt) }

// frame names one frame: its chunk, then its index in there.
type frame uint32

func (f frame) chunk() int  { return int(f >> indexBits) }
func (f frame) index() uint { return uint(f & (framesPerChunk - 1)) }

// Cache is the page cache. All methods are safe for concurrent use, apart from Close.
type Cache struct {
	epoch   *epoch.Domain
	bytes   int64             // the budget
	shift   uint              // a chunk is 1<<shift bytes
	sizes   []int             // of the frames of each class
	strides []atomic.Uint32   // by chunk: distance of its frames in bytes, noFrames when it has none
	slab    []byte            // set before the first chunk gets frames
	base    unsafe.Pointer    // of slab
	source  func([]byte) bool // see TakeFrom

	_ [128]byte // Get reads what stands above; what follows is written all the time

	crowded atomic.Bool     // pages have been evicted to make room
	asked   []atomic.Uint32 // see Admit; made before crowded is first set, and read while it is
	misses  atomic.Int64
	pinned  atomic.Int64
	keeps   atomic.Int64 // how often an evicted frame was found pinned

	mu       sync.Mutex
	closed   bool
	alloc    func(n int) ([]byte, error) // offheap.Alloc, but in tests
	classes  []class
	most     int     // chunks that the largest budget allows, and that there is memory for
	chunks   []chunk // none before the first Insert
	warm     []int   // chunks without frames whose memory has been touched
	lowest   int     // no chunk below it is cold
	limit    int     // chunks that the budget allows to be in memory
	resident int     // chunks that are in memory
	draining int     // chunks that lose their frames
	moved    int     // chunks with moved
	leaving  []frame // evicted, not yet handed to the epoch
	kept     []frame // evicted, no reader left, but pinned
	evicted  int     // evictions since chunks were last moved between classes
	stats    Stats
}

// Stats is what Cache.Stats reports. Hits are not counted, since that would make Get write to shared memory: who wants them
// counts its calls of Get.
type Stats struct {
	Limit     int64 // the budget in bytes
	Bytes     int64 // memory that chunks take
	PageBytes int64 // frames that hold a page
	Pages     int64
	Pinned    int64 // pins held
	Misses    int64 // calls of Get and Pin whose page was not there
	Inserts   int64
	Busy      int64 // calls of Insert that ended in ErrBusy
	Evictions int64
	Drops     int64
	Moves     int64 // chunks taken from a size class for others
}

// New returns an empty cache of at most so many bytes, which is also the most that Resize may later ask for. Address space is
// reserved by the first Insert, memory taken as pages come in. Where the addresses of the process do not suffice, as with 32 bits, or the
// system promises no more than it has, the cache is smaller, for good; Limit tells.
func New(bytes int64, d *epoch.Domain) *Cache {
	c := &Cache{epoch: d, shift: chunkShift(bytes), alloc: offheap.Alloc}
	n := int(min(max(bytes, 0)>>c.shift, maxChunks))
	c.classes = newClasses(1 << c.shift)
	c.sizes = make([]int, len(c.classes))
	for i := range c.classes {
		c.sizes[i] = c.classes[i].size
	}
	c.most = n
	c.strides = make([]atomic.Uint32, n)
	for i := range n {
		c.strides[i].Store(noFrames)
	}
	c.limit = n
	c.bytes = bytes
	return c
}

// TakeFrom names who may have memory to spare: source is given a piece of the cache's, of one huge page, in which there is nothing and to
// which somebody is about to write, and may move memory there; it reports whether it has. It is called under the lock of the cache. TakeFrom
// is called at most once, before the first Insert.
func (c *Cache) TakeFrom(source func(memory []byte) bool) { c.source = source }

// Close gives all memory back. No reader may be inside of a section, no page pinned, no other call running or to come;
// functions that the cache has retired may still run.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	for i := range c.strides {
		c.strides[i].Store(noFrames)
	}
	slab := c.slab
	c.slab, c.base = nil, nil
	return offheap.Free(slab)
}

// Get returns the page of h while it is in the cache.
func (c *Cache) Get(h Handle) (page.Page, bool) {
	head := c.find(h)
	if head == nil {
		c.misses.Add(1)
		return page.Page{}, false
	}
	if head.Referenced.Load() == 0 {
		head.Referenced.Store(1)
	}
	return page.AtPointer(unsafe.Pointer(head), h.hashBits()), true
}

// Used reports whether Get has been asked for the page of h since it was inserted, or since the clock's hand came by. It marks nothing.
// It must be called inside of an epoch section.
func (c *Cache) Used(h Handle) bool {
	head := c.find(h)
	return head != nil && head.Referenced.Load() != 0
}

// find returns the header of h's page, nil if that is gone.
func (c *Cache) find(h Handle) *page.Header {
	f := h.frame()
	if f.chunk() >= len(c.strides) {
		return nil
	}
	// A chunk that is cut anew has other frames, whose generations begin above all that it had before, and as many as fit: one that ends
	// inside of the chunk is there.
	stride := uint(c.strides[f.chunk()].Load())
	end := (f.index() + 1) * stride
	if end > 1<<(c.shift&63) {
		return nil
	}
	head := (*page.Header)(unsafe.Add(c.base, uint(f.chunk())<<(c.shift&63)+end-stride))
	if head.Generation.Load() != h.generation() {
		return nil
	}
	return head
}

// Pin is Get for readers that keep the page beyond the end of their section, until Unpin.
func (c *Cache) Pin(h Handle) (page.Page, bool) {
	p, ok := c.Get(h)
	if ok {
		// Should the page be evicted at this moment, its frame waits for our section to end and sees the pin then.
		p.Header().Pins.Add(1)
		c.pinned.Add(1)
	}
	return p, ok
}

// Unpin takes back one Pin of h; inside or outside of a section.
func (c *Cache) Unpin(h Handle) {
	head := c.header(h.frame()) // the pin keeps the frame where it is
	c.pinned.Add(-1)
	// Once the pin is gone the frame may be anything, so we cannot ask then whether the page had been evicted and its frame
	// waits for us. Either it was found pinned before the first look at keeps, and then its generation has passed already;
	// or keeps has moved at the second look.
	keeps := c.keeps.Load()
	stale := head.Generation.Load() != h.generation()
	if head.Pins.Add(-1) == 0 && (stale || c.keeps.Load() != keeps) {
		c.reclaimKept()
	}
}

// header is the header of a frame that exists.
func (c *Cache) header(f frame) *page.Header {
	at := uint(f.chunk())<<c.shift + f.index()*uint(c.strides[f.chunk()].Load())
	return (*page.Header)(unsafe.Add(c.base, at))
}

// memory is the whole of a frame that exists.
func (c *Cache) memory(f frame) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(c.header(f))), c.strides[f.chunk()].Load())
}

// Insert makes the resident form of raw and returns its handle. It must be called outside of epoch sections to find frames
// reliably; it never waits.
func (c *Cache) Insert(raw []byte, ks uint32) (Handle, error) {
	size, err := page.ResidentSize(raw)
	if err != nil {
		return 0, err
	}
	return c.insert(size, func(mem []byte) error { return page.Load(mem, raw, ks) })
}

// InsertOrdered is Insert for a page that is gone over in order. It takes less memory, but Get of a key has to search: see Ordered.
func (c *Cache) InsertOrdered(raw []byte) (Handle, error) {
	size, err := page.OrderedSize(raw)
	if err != nil {
		return 0, err
	}
	return c.insert(size, func(mem []byte) error { return page.LoadOrdered(mem, raw) })
}

// Ordered reports whether a page was inserted with InsertOrdered.
func (h Handle) Ordered() bool { return h != 0 && h.hashBits() == 0 }

// InsertBuilder is Insert for the page in a builder, of which nothing needs to be checked.
func (c *Cache) InsertBuilder(b *page.Builder, ks uint32) (Handle, error) {
	return c.insert(b.ResidentSize(), func(mem []byte) error { return b.Load(mem, ks) })
}

// InsertBytes is Insert for what is no page but wants to lie in the cache: Get answers with a page of which only Raw may be asked.
func (c *Cache) InsertBytes(raw []byte) (Handle, error) {
	return c.insert(page.BytesSize(len(raw)), func(mem []byte) error { return page.LoadBytes(mem, raw) })
}

func (c *Cache) insert(size int, load func(mem []byte) error) (Handle, error) {
	f, err := c.take(size)
	if err != nil {
		return 0, err
	}
	mem := c.memory(f)
	if err := load(mem); err != nil {
		c.putBack(f)
		return 0, err
	}
	head := c.header(f)
	head.Referenced.Store(0) // a page that is used but once leaves first
	h := Handle(head.Generation.Load())<<generationAt | Handle(page.At(mem).HashBits())<<frameBits | Handle(f)
	if !c.publish(f) {
		return 0, ErrBusy
	}
	return h, nil
}

// Drop evicts the page of h, which nobody will ask for again but readers of old versions.
func (c *Cache) Drop(h Handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := h.frame()
	if c.find(h) == nil || c.chunks[f.chunk()].frames[f.index()] != live {
		return
	}
	c.stats.Drops++
	c.crowded.Store(false)
	c.evict(f)
	if len(c.leaving) >= dropBatch {
		c.retireLeaving()
	}
}

// Stats reports counters and sizes.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Limit = int64(c.limit) << c.shift
	s.Bytes = int64(c.resident) << c.shift
	s.Misses = c.misses.Load()
	s.Pinned = c.pinned.Load()
	return s
}

// Limit returns the budget in bytes: pages that take much less in total may come in when they are first asked for.
func (c *Cache) Limit() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.limit) << c.shift
}

// firstPages is how much of the memory, from its start, comes without huge pages. Where few pages are kept each size class has a chunk of
// which it uses little: as huge pages they would take several times the memory, and longer to be had than all that is read into them.
const firstPages = 4 << 20

// allocate makes sure that the block of memory exists: of all that the budget may become or, where that is not to be had, of a quarter of it,
// and so on, so that a process of few addresses has some left for memtables and files. c.mu is held.
func (c *Cache) allocate() error {
	if c.closed {
		return ErrClosed
	}
	if c.base != nil || c.most == 0 {
		return nil
	}
	n := c.most
	slab, err := c.alloc(n << c.shift)
	for err != nil && n > 1 {
		n = max(n/4, 1)
		slab, err = c.alloc(n << c.shift)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoMemory, err)
	}
	offheap.Split(slab[:min(len(slab), firstPages)])
	c.most, c.limit = n, min(c.limit, n)
	c.chunks = make([]chunk, n)
	c.slab, c.base = slab, unsafe.Pointer(unsafe.SliceData(slab))
	return nil
}
