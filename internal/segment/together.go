package segment

import (
	"runtime/debug"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
)

// Request is one blob of several that are read together: P and Buf are given, the others are what Read would return.
type Request struct {
	P      Pointer
	Buf    Buffer
	Raw    []byte
	Header Header
	Err    error

	// Excerpt asks that of a page stored by parts, where it lies in the system's page cache, nothing but the table is read: then Excerpt
	// is ready for ReadParts, Opened is set, and Raw is nothing.
	Excerpt *Excerpt
	Opened  bool

	file *file
	from *mapped // nil: it has to be read with a call
}

// ReadTogether reads several blobs, which costs less than one after the other where they lie in the system's page cache but not
// in the processor's: what has to come from memory comes side by side.
func (s *Store) ReadTogether(list []Request) {
	for i := range list {
		r := &list[i]
		r.Raw, r.from, r.Opened = nil, nil, false
		if r.file, r.Err = s.lookupBlob(r.P); r.Err != nil {
			continue
		}
		r.Buf.stored = resize(r.Buf.stored, int(r.P.Length))
		if m := s.mappingOf(r.file); m != nil && m.holds(int64(r.P.Offset), int(r.P.Length)) {
			r.from = m
			m.prefetch(r.P, 0, nearBytes) // the rest the processor fetches by itself once it sees that bytes are read in order
		}
	}
	s.copyTogether(list)
	for i := range list {
		r := &list[i]
		if r.file == nil {
			continue
		}
		if r.from == nil {
			r.Err = s.fill(r.file, r.Buf.stored, int64(r.P.Offset))
		} else {
			r.from.age(int64(r.P.Offset))
		}
		r.file.release()
		switch {
		case r.Opened && r.from != nil:
			r.Header = r.Excerpt.Header
			if r.Err != nil {
				r.Err = corrupt.New(r.file.name, int64(r.P.Offset), int64(r.P.Length), "%v", r.Err)
			}
		case r.Err == nil:
			r.Raw, r.Header, r.Err = s.unpack(r.file, r.P, &r.Buf, nil)
		}
		r.file, r.from = nil, nil
	}
}

// copyTogether copies what lies in mappings. Where the memory faults, what was not copied yet is left to calls.
func (s *Store) copyTogether(list []Request) {
	at, copied := 0, 0
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		recovered := recover()
		if recovered == nil || vfs.Fault(recovered, list[at].from.data) == nil {
			return
		}
		for i := copied; i < len(list); i++ {
			list[i].from, list[i].Opened = nil, false
		}
	}()
	for at = range list {
		if r := &list[at]; r.from != nil && !r.open(s) {
			copy(r.Buf.stored, r.from.data[r.P.Offset:])
		}
		copied++
	}
}

// open reads the table for an excerpt. It is false where the whole blob is wanted, or has no table.
func (r *Request) open(s *Store) bool {
	if r.Excerpt == nil {
		return false
	}
	r.Excerpt.p = r.P
	r.Opened, r.Err = r.Excerpt.open(s, r.from)
	return r.Opened
}
