package value

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/pandodb/pando/internal/segment"
)

// Reader reads a value piece by piece. It holds one chunk of it. Its methods may be called concurrently; Read, Seek and WriteTo
// share one position, ReadAt has none.
type Reader struct {
	store *segment.Store
	ref   Ref

	position sync.Mutex // guards at; taken before mu
	at       int64

	mu     sync.Mutex // guards the rest
	buf    segment.Buffer
	chunks []Ref // nil until needed
	loaded int   // number of the chunk that lies in chunk; -1: none
	chunk  []byte
}

var (
	_ io.ReadSeeker = (*Reader)(nil)
	_ io.ReaderAt   = (*Reader)(nil)
	_ io.WriterTo   = (*Reader)(nil)
)

// NewReader returns a Reader of the value under r. It reads nothing yet.
func NewReader(s *segment.Store, r Ref) *Reader { return &Reader{store: s, ref: r, loaded: -1} }

// Size is the length of the value.
func (r *Reader) Size() int64 { return int64(r.ref.Length) }

// ReadAt fills p from offset on, as io.ReaderAt says. Each chunk that it touches is read and verified as a whole.
func (r *Reader) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, fmt.Errorf("read value at %d: negative offset", offset)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for n < len(p) {
		piece, err := r.from(offset + int64(n))
		if err != nil {
			return n, err
		}
		n += copy(p[n:], piece)
	}
	return n, nil
}

// from returns what lies in the value from offset on, to the end of the chunk; io.EOF at the end.
func (r *Reader) from(offset int64) ([]byte, error) {
	if offset >= r.Size() {
		return nil, io.EOF
	}
	number, within := int(offset/ChunkBytes), int(offset%ChunkBytes)
	if number != r.loaded {
		if err := r.load(number); err != nil {
			return nil, err
		}
	}
	return r.chunk[within:], nil
}

func (r *Reader) load(number int) error {
	ref := r.ref
	if ref.chunked() {
		if err := r.loadIndex(); err != nil {
			return err
		}
		ref = r.chunks[number]
	}
	r.loaded = -1
	raw, h, err := r.store.Read(ref.Pointer, &r.buf)
	if err != nil {
		return fmt.Errorf("value: %w", err)
	}
	if err := checkChunk(ref, h, raw); err != nil {
		return err
	}
	r.chunk, r.loaded = raw[:ref.Length], number
	return nil
}

func (r *Reader) loadIndex() error {
	if r.chunks != nil {
		return nil
	}
	x, err := readIndex(r.store, r.ref, &r.buf)
	if err != nil {
		return err
	}
	chunks := make([]Ref, x.count())
	for i := range chunks {
		chunks[i] = x.chunk(i)
	}
	r.chunks = chunks
	return nil
}

// Read reads on from the position.
func (r *Reader) Read(p []byte) (int, error) {
	r.position.Lock()
	defer r.position.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	n, err := r.ReadAt(p, r.at)
	r.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Seek moves the position, as io.Seeker says.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	r.position.Lock()
	defer r.position.Unlock()
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.Size()
	default:
		return 0, fmt.Errorf("seek in value: unknown origin %d", whence)
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek in value to %d: negative position", offset)
	}
	r.at = offset
	return offset, nil
}

// WriteTo writes everything from the position on to w, a chunk at a time and without copying it.
func (r *Reader) WriteTo(w io.Writer) (int64, error) {
	r.position.Lock()
	defer r.position.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	var written int64
	for {
		piece, err := r.from(r.at)
		if errors.Is(err, io.EOF) {
			return written, nil
		}
		if err != nil {
			return written, err
		}
		n, err := w.Write(piece)
		if err == nil && n != len(piece) {
			err = io.ErrShortWrite
		}
		written += int64(n)
		r.at += int64(n)
		if err != nil {
			return written, err
		}
	}
}
