package segment

import (
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"github.com/pandodb/pando/internal/prefetch"
	"github.com/pandodb/pando/vfs"
)

// A blob that lies in the system's page cache costs no system call: it is copied out of a mapping of its file. Only the copy is
// looked at, so that what was verified stays what it was, whatever happens to the file.
//
// Touching memory that is not in the page cache would stop the whole thread for each page of it, where ReadAt asks the device for
// all bytes of a blob at once. So a page is read out of the mapping only after it was read with ReadAt, or written by this process.
// Since the system may have let go of the page, the marks of that are compared from time to time with what the system has. Where it
// does not tell they are forgotten, and each page is read with a call once more.

const (
	warmPage = 4 << 10 // bytes that one mark stands for
	// maxMapped is how many files a Store maps at most: a process may have some 65,000 mappings, and the runtime needs some.
	maxMapped = 4096
	// mapMost is the longest read that is copied out of a mapping: for longer ones the call costs little beside the copy. At 100 KB
	// the copy out of a mapping still takes two thirds of what the call takes, which goes from page to page of the page cache.
	mapMost = 256 << 10
	// sampleOneIn and turnReads say when marks are looked through: after as many reads a page of the file.
	sampleOneIn = 8
	turnReads   = 16
	// askPages is how many pages the system is asked for at a time, a multiple of the 64 of a word of marks.
	askPages = 512
)

// mapped is a file in memory.
type mapped struct {
	mapping vfs.Mapping
	data    []byte
	warm    []atomic.Uint64 // a bit for each page
	all     *mappings
	paging  *paging // of the store
	sampled atomic.Int64
}

// fill reads what lies at offset of f. The caller is inside.
func (s *Store) fill(f *file, b []byte, offset int64) error {
	if s.paging.withCalls() {
		return f.readAt(b, offset)
	}
	m := f.mapped.Load()
	if m == nil && s.mayMap(f) {
		m = s.mapFile(f)
	}
	if m != nil && m.holds(offset, len(b)) && m.copyTo(b, offset) {
		m.age(offset)
		return nil
	}
	if err := f.readAt(b, offset); err != nil {
		return err
	}
	if m != nil {
		m.note(offset, len(b))
	}
	return nil
}

// mayMap reports whether there is use in trying to map f.
func (s *Store) mayMap(f *file) bool {
	return !f.unmappable.Load() && f.refused.Load() != s.mappings.ended.Load()+1
}

// mapFile maps f. It returns nil where that cannot be: then ReadAt serves as well.
func (s *Store) mapFile(f *file) *mapped {
	const wide = ^uint(0)>>32 != 0 // 32 bits of addresses are soon used up
	h, err := f.open()
	if err != nil {
		return nil // ReadAt says what is wrong
	}
	f.opening.Lock()
	defer f.opening.Unlock()
	if m := f.mapped.Load(); m != nil || !s.mayMap(f) {
		return m
	}
	reader, ok := h.(vfs.ReadMapper)
	length := f.size.Load()
	if f.class != Nodes || f.state.Load() != listed {
		length = max(length, s.options.SegmentBytes) // more may be written to it
	}
	if !ok || !wide {
		f.unmappable.Store(true)
		return nil
	}
	if ended := s.mappings.ended.Load(); !s.mappings.reserve(length, s.options.MapBytes) {
		f.refused.Store(ended + 1)
		return nil
	}
	mapping, err := reader.MapRead(length)
	if err != nil {
		s.mappings.release(length)
		f.unmappable.Store(true)
		return nil
	}
	m := &mapped{
		mapping: mapping, data: mapping.Bytes(), all: &s.mappings, paging: &s.paging,
		warm: make([]atomic.Uint64, (length+64*warmPage-1)/(64*warmPage)),
	}
	if !f.earlier && !f.rested {
		m.note(0, int(f.size.Load())) // what was written a while ago, and went since, waits for the device once
	}
	f.mapped.Store(m)
	return m
}

// wrote tells that [offset, offset+n) of f was written, and so lies in the page cache.
func (f *file) wrote(offset int64, n int) {
	if m := f.mapped.Load(); m != nil {
		m.note(offset, n)
	}
}

// mappings bounds what a Store maps.
type mappings struct {
	files, bytes atomic.Int64
	ended        atomic.Uint64 // how many there were: behind each there may be room for a file that was refused
}

func (a *mappings) reserve(length, most int64) bool {
	files, bytes := a.files.Add(1), a.bytes.Add(length)
	if files <= maxMapped && bytes <= most {
		return true
	}
	a.release(length)
	return false
}

func (a *mappings) release(length int64) {
	a.files.Add(-1)
	a.bytes.Add(-length)
}

// IsNear reports whether the blob under p is believed to lie in the system's page cache, where reading it waits for no device.
func (s *Store) IsNear(p Pointer) bool {
	f, err := s.lookup(p.Segment)
	if err != nil {
		return false // reading says why
	}
	defer f.release()
	m := s.mappingOf(f)
	return m != nil && m.holds(int64(p.Offset), int(p.Length))
}

// holds reports whether the pages of [offset, offset+n) are believed to be in the page cache.
func (m *mapped) holds(offset int64, n int) bool {
	if n > mapMost || offset+int64(n) > int64(len(m.data)) {
		return false
	}
	for p := offset / warmPage; p <= (offset+int64(n)-1)/warmPage; p++ {
		if m.warm[p/64].Load()>>(p%64)&1 == 0 {
			return false
		}
	}
	return true
}

// note marks the pages that lie in [offset, offset+n) as being in the page cache.
func (m *mapped) note(offset int64, n int) {
	end := min(offset+int64(n), int64(len(m.data)))
	for p := offset / warmPage; p*warmPage < end; p++ {
		if word := &m.warm[p/64]; word.Load()>>(p%64)&1 == 0 {
			word.Or(1 << (p % 64))
		}
	}
}

// age looks through the marks when there was a sufficient number of reads, and now and then whether memory is short.
func (m *mapped) age(offset int64) {
	if offset/warmPage%sampleOneIn != 0 {
		return
	}
	n := m.sampled.Add(1)
	if n%(lookReads/sampleOneIn) == 0 {
		m.paging.look()
	}
	if n < int64(len(m.data)/warmPage*turnReads/sampleOneIn) {
		return
	}
	m.sampled.Store(0)
	for i := 0; i < len(m.warm); i += askPages / 64 {
		m.unmark(i, min(i+askPages/64, len(m.warm)))
	}
}

// unmark takes away the marks in the words from one on, before another, of pages that the system may have let go of.
func (m *mapped) unmark(from, end int) {
	var pages [askPages]bool // those behind the end of the mapping have no marks
	length := min((end-from)*64, (len(m.data)-from*64*warmPage+warmPage-1)/warmPage)
	asked, ok := m.mapping.(vfs.ResidentMapping)
	if ok = ok && asked.Resident(int64(from)*64*warmPage, pages[:length]); !ok {
		clear(pages[:])
	}
	for i := range m.warm[from:end] {
		keep := uint64(0)
		for j, resident := range pages[i*64 : i*64+64] {
			if resident {
				keep |= 1 << j
			}
		}
		if word := &m.warm[from+i]; word.Load()&^keep != 0 {
			word.And(keep)
		}
	}
}

// copyTo copies what lies at offset. Where the device fails or the file was cut from outside the memory faults: then it is false,
// and ReadAt can tell what is wrong.
func (m *mapped) copyTo(b []byte, offset int64) (ok bool) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if vfs.Fault(recover(), m.data) != nil {
			ok = false
		}
	}()
	data := m.data[offset : offset+int64(len(b))]
	if len(data) < aheadLeast {
		copy(b, data)
	} else {
		copyAhead(b, data)
	}
	return true
}

const (
	// aheadLeast is the length from which on what is to be copied is asked for ahead of the copy.
	aheadLeast = 8 << 10
	// aheadBytes is how far ahead, and aheadStep how much at a time: less comes too late, and of more some is lost on the way.
	aheadBytes = 4 << 10
	aheadStep  = 2 << 10
	// aroundBytes is what the system maps around a page that is touched for the first time.
	aroundBytes = 64 << 10
)

// copyAhead copies src to dst, which is as long. It asks the processor for what it is about to copy, which by itself does not look
// ahead over the end of a page: a copy of 100 KB waits for memory at each one then, a quarter of its time. It passes over what nobody
// has touched in the mapping yet, so that is touched first.
func copyAhead(dst, src []byte) {
	for i := 0; i < len(src); i += aroundBytes {
		dst[i] = src[i]
	}
	dst[len(src)-1] = src[len(src)-1]
	begin := unsafe.Pointer(unsafe.SliceData(src))
	prefetch.Lines(begin, min(aheadBytes, len(src))/prefetch.Line)
	for from := 0; from < len(src); from += aheadStep {
		if next := from + aheadBytes; next < len(src) {
			prefetch.Lines(unsafe.Add(begin, next), min(aheadStep, len(src)-next)/prefetch.Line)
		}
		copy(dst[from:], src[from:min(from+aheadStep, len(src))])
	}
}

// unmap ends the mapping; nobody is inside any more.
func (f *file) unmap() error {
	m := f.mapped.Swap(nil)
	if m == nil {
		return nil
	}
	err := m.mapping.Close()
	m.all.release(int64(len(m.data)))
	m.all.ended.Add(1)
	return err
}
