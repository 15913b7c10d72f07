package segment

import (
	"runtime/debug"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/parts"
	"github.com/pandodb/pando/vfs"
)

// excerptHead is how much of a blob ReadExcerpt looks at first: header and table of a leaf of common size.
const excerptHead = 320

// inParts replaces dst[start:], which is raw, by its form in parts where there is one.
func inParts(dst []byte, start int, raw []byte) ([]byte, Codec) {
	if out, ok := parts.Append(dst[:start], raw); ok {
		return out, Parts
	}
	return append(dst[:start], raw...), None
}

// ReadExcerpt is Read for one who looks for key in the page that is stored under p: raw is the page, or one with some of its
// entries, and key among them if the page has it. What is returned was verified; what else the blob holds need not be whole.
func (s *Store) ReadExcerpt(p Pointer, key []byte, buf *Buffer) (raw []byte, h Header, err error) {
	f, err := s.lookupBlob(p)
	if err != nil {
		return nil, Header{}, err
	}
	e := excerpt{store: s, p: p, buf: buf}
	m := f.mapped.Load()
	done := m != nil && e.read(m, key)
	f.release()
	if !done {
		return s.Read(p, buf) // which says what is wrong, if anything is
	}
	if e.err != nil {
		return nil, Header{}, corrupt.New(f.name, int64(p.Offset), int64(p.Length), "%v", e.err)
	}
	return e.raw, e.header, nil
}

// excerpt is one call of ReadExcerpt.
type excerpt struct {
	store  *Store
	p      Pointer
	buf    *Buffer
	header Header
	raw    []byte
	err    error
}

// read reads out of a mapping. It is false where that does not do: a part is not known to be in the page cache, the memory
// faults, or the blob is not stored by parts.
func (e *excerpt) read(m *mapped, key []byte) (done bool) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if vfs.Fault(recover(), m.data) != nil {
			done = false
		}
	}()
	offset, length := int64(e.p.Offset), int(e.p.Length)
	n := min(excerptHead, length)
	if !m.holds(offset, n) {
		return false
	}
	e.buf.stored = resize(e.buf.stored, n)
	copy(e.buf.stored, m.data[offset:])
	e.header = parseHeader(e.buf.stored)
	if e.header.Codec != Parts {
		return false
	}
	payload := length - HeaderSize
	covered, err := parts.Covered(e.buf.stored[HeaderSize:], payload)
	if err != nil || !m.holds(offset, HeaderSize+covered) {
		return false
	}
	if covered > n-HeaderSize {
		n = HeaderSize + covered
		e.buf.stored = resize(e.buf.stored, n)
		copy(e.buf.stored, m.data[offset:])
		e.header = parseHeader(e.buf.stored)
	}
	t, err := e.table(payload)
	if err != nil {
		e.err = err
		return true
	}
	r := t.Find(key)
	from, size := t.Place(r)
	offset += int64(HeaderSize + from)
	if size > 0 && !m.holds(offset, size) {
		return false
	}
	e.buf.raw = t.AppendBeginning(resize(e.buf.raw, covered+size)[:0], r)
	begin := len(e.buf.raw)
	e.buf.raw = append(e.buf.raw, m.data[offset:offset+int64(size)]...)
	if e.err = t.Verify(r, e.buf.raw[begin:]); e.err == nil {
		e.raw = e.buf.raw
	}
	m.age(int64(e.p.Offset))
	return true
}

// table verifies the table in what was read of a blob with such a payload.
func (e *excerpt) table(payload int) (parts.Table, error) {
	if err := e.header.belongs(e.p); err != nil {
		return parts.Table{}, err
	}
	place := e.store.place(e.p.Segment, e.p.Offset)
	return e.header.table(e.buf.stored, e.buf.stored[HeaderSize:], payload, place)
}
