package segment

import (
	"runtime/debug"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/parts"
	"github.com/pandodb/pando/vfs"
)

// excerptHead is how much of a blob ReadExcerpt looks at first: header and table of a leaf of common size.
const excerptHead = 320

// inParts appends raw to dst in parts if it can be stored so: with a stencil, if tight and that is shorter. Else it appends raw as it is.
func inParts(dst, raw []byte, tight bool) ([]byte, Codec) {
	if tight {
		if out, ok := parts.AppendStencil(dst, raw); ok {
			return out, Stencil
		}
	}
	if out, ok := parts.Append(dst, raw); ok {
		return out, Parts
	}
	return append(dst, raw...), None
}

// Excerpt is a page stored by parts, of which as many are read as somebody asks for. The zero value is ready, and a warm one
// allocates nothing.
type Excerpt struct {
	Header Header
	p      Pointer
	stored []byte // the blob, as far as its table reaches
	raw    []byte
	table  parts.Table
}

// ReadExcerpt is Read for one who looks for key in the page that is stored under p: raw is the page, or one with some of its
// entries, and key among them if the page has it. What is returned was verified; what else the blob holds need not be whole.
func (s *Store) ReadExcerpt(p Pointer, key []byte, buf *Buffer) (raw []byte, h Header, err error) {
	f, err := s.lookupBlob(p)
	if err != nil {
		return nil, Header{}, err
	}
	x := Excerpt{p: p, stored: buf.stored, raw: buf.raw}
	done, err := x.find(s, f, key)
	buf.stored, buf.raw = x.stored, x.raw
	if !done {
		return s.Read(p, buf) // which says what is wrong, if anything is
	}
	if err != nil {
		return nil, Header{}, corrupt.New(f.name, int64(p.Offset), int64(p.Length), "%v", err)
	}
	return x.raw, x.Header, nil
}

// find reads the parts that may have key, and lets go of the file, also where a caller gets over a panic. It is not done where reading
// out of the mapping does not do: see open and read.
func (x *Excerpt) find(s *Store, f *file, key []byte) (done bool, err error) {
	defer f.release()
	m := s.mappingOf(f)
	if m == nil {
		return false, nil
	}
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if vfs.Fault(recover(), m.data) != nil {
			done = false
		}
	}()
	if done, err = x.open(s, m); !done || err != nil {
		return done, err
	}
	m.age(int64(x.p.Offset))
	return x.read(m, x.table.Find(key))
}

// open reads the table out of a mapping, and verifies it. It is not done where the blob is not stored by parts, or its beginning is not
// known to be in the page cache. The caller minds faults.
func (x *Excerpt) open(s *Store, m *mapped) (done bool, err error) {
	offset, length := int64(x.p.Offset), int(x.p.Length)
	n := min(excerptHead, length)
	if !m.holds(offset, n) {
		return false, nil
	}
	x.stored = resize(x.stored, n)
	copy(x.stored, m.data[offset:])
	x.Header = parseHeader(x.stored)
	if !x.Header.Codec.parted() {
		return false, nil
	}
	payload := length - HeaderSize
	covered, err := parts.Covered(x.stored[HeaderSize:], payload)
	if err != nil || !m.holds(offset, HeaderSize+covered) {
		return false, nil
	}
	if covered > n-HeaderSize {
		x.stored = resize(x.stored, HeaderSize+covered)
		copy(x.stored, m.data[offset:])
		x.Header = parseHeader(x.stored)
	}
	if err := x.Header.belongs(x.p); err != nil {
		return true, err
	}
	return true, x.Header.table(&x.table, x.stored, x.stored[HeaderSize:], payload, s.place(x.p.Segment, x.p.Offset))
}

// read reads parts out of a mapping, and verifies them: x.raw becomes a page of their entries. It is not done where they are not known
// to be in the page cache. The caller minds faults.
func (x *Excerpt) read(m *mapped, r parts.Range) (done bool, err error) {
	from, size := x.table.Place(r)
	offset := int64(x.p.Offset) + int64(HeaderSize+from)
	if size > 0 && !m.holds(offset, size) {
		return false, nil
	}
	return true, x.take(r, m.data[offset:offset+int64(size)])
}

// take copies the parts of r out of a mapping, verifies the copy, and makes a page of it.
func (x *Excerpt) take(r parts.Range, mapped []byte) error {
	t := &x.table
	size, behind := t.Size(r), 0
	if x.Header.Codec == Stencil {
		behind = len(mapped) // room for the copy, which is not yet what the page has
	}
	x.raw = t.AppendBeginning(resize(x.raw, len(x.stored)+size+behind)[:0], r)
	page := x.raw[len(x.raw) : len(x.raw)+size]
	x.raw = x.raw[:len(x.raw)+size]
	if behind == 0 {
		copy(page, mapped)
		return t.Verify(r, page)
	}
	stored := x.raw[len(x.raw) : len(x.raw)+behind]
	copy(stored, mapped)
	if err := t.Verify(r, stored); err != nil {
		return err
	}
	t.Put(page, stored)
	return nil
}

// Parts is the number of parts.
func (x *Excerpt) Parts() int { return x.table.All().End }

// Find returns the parts that may have key, from first on and before end; what is greater may be in the first of them, or behind it. It
// is false where key does not begin like the keys of the page, or comes before all of them.
func (x *Excerpt) Find(key []byte) (first, end int, ok bool) {
	r := x.table.Find(key)
	return r.First, r.End, r.First < r.End
}

// ReadParts returns a page of the entries of some parts of x, from one on and before another, which was opened by ReadTogether. It is
// valid until x is used again. It is false where they do not lie in the system's page cache: then the blob has to be read as a whole.
func (s *Store) ReadParts(x *Excerpt, from, end int) (raw []byte, ok bool, err error) {
	f, err := s.lookupBlob(x.p)
	if err != nil {
		return nil, false, err
	}
	ok, err = x.readGuarded(s, f, parts.Range{First: from, End: end})
	s.prefetchPart(x, end)
	if err != nil {
		return nil, ok, corrupt.New(f.name, int64(x.p.Offset), int64(x.p.Length), "%v", err)
	}
	return x.raw, ok, nil
}

// readGuarded is read, and not done where the memory faults. It lets go of the file as find does.
func (x *Excerpt) readGuarded(s *Store, f *file, r parts.Range) (done bool, err error) {
	defer f.release()
	m := s.mappingOf(f)
	if m == nil {
		return false, nil
	}
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if vfs.Fault(recover(), m.data) != nil {
			done = false
		}
	}()
	return x.read(m, r)
}
