package value

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/pandodb/pando/internal/segment"
)

// errFinished answers calls after Finish or Abort.
var errFinished = errors.New("value writer is finished")

// firstChunk is the memory that a Writer begins with when it does not know how much will come.
const firstChunk = 16 << 10

// Writer stores a value as it comes. It holds at most one chunk of it. End it with Finish or with Abort. It is used by one
// goroutine at a time.
type Writer struct {
	store    *segment.Store
	keyspace uint32
	codec    segment.Codec
	key      []byte
	chunk    []byte // what was not stored yet; the last chunk is stored by Finish
	chunks   []Ref
	total    uint64
	err      error
}

var (
	_ io.Writer     = (*Writer)(nil)
	_ io.ReaderFrom = (*Writer)(nil)
)

// NewWriter returns a Writer for the value of key, which must not change before the Writer is finished. codec is None, S2 or
// Zstd.
func NewWriter(s *segment.Store, keyspace uint32, codec segment.Codec, key []byte) *Writer {
	return &Writer{store: s, keyspace: keyspace, codec: codec, key: key}
}

// Write adds p to the value. After an error the Writer fails for ever; Abort it.
func (w *Writer) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		if w.err != nil {
			return written, w.err
		}
		n := min(len(p), ChunkBytes)
		if len(w.chunk) == 0 && len(p) > ChunkBytes {
			// More follows, so this is not the last chunk: store it from where it lies.
			if err := w.storeChunk(p[:n]); err != nil {
				return written, err
			}
		} else {
			n = min(n, ChunkBytes-len(w.chunk))
			w.chunk = append(w.chunk, p[:n]...)
			if err := w.storeFull(len(p) > n); err != nil {
				return written, err
			}
		}
		written += n
		p = p[n:]
	}
	return written, w.err
}

// ReadFrom adds all of r to the value, reading straight into the chunk. After an error the Writer fails for ever; Abort it.
func (w *Writer) ReadFrom(r io.Reader) (int64, error) {
	var read int64
	for w.err == nil {
		if len(w.chunk) == cap(w.chunk) && len(w.chunk) < ChunkBytes {
			grown := make([]byte, len(w.chunk), min(max(2*cap(w.chunk), firstChunk), ChunkBytes))
			w.chunk = grown[:copy(grown[:cap(grown)], w.chunk)]
		}
		room := w.chunk[len(w.chunk):min(cap(w.chunk), ChunkBytes)]
		var probe [1]byte // of what follows a full chunk: only then it is not the last one
		if len(room) == 0 {
			room = probe[:]
		}
		n, err := r.Read(room)
		if n < 0 || n > len(room) {
			return read, w.fail(errors.New("store value: reader returned an impossible count"))
		}
		read += int64(n)
		if len(w.chunk) < ChunkBytes {
			w.chunk = w.chunk[:len(w.chunk)+n]
		} else if n > 0 {
			if w.storeFull(true) == nil {
				w.chunk = append(w.chunk, probe[0])
			}
		}
		if err != nil {
			if err == io.EOF { // one that wraps it says that r was cut short
				return read, w.err
			}
			return read, w.fail(fmt.Errorf("store value: read: %w", err))
		}
	}
	return read, w.err
}

// storeFull stores the chunk that was gathered when it is full and more follows.
func (w *Writer) storeFull(more bool) error {
	if len(w.chunk) < ChunkBytes || !more {
		return nil
	}
	err := w.storeChunk(w.chunk)
	w.chunk = w.chunk[:0]
	return err
}

// storeChunk stores one chunk of several.
func (w *Writer) storeChunk(chunk []byte) error {
	if w.total+uint64(len(chunk)) > MaxValue {
		return w.fail(fmt.Errorf("store value: more than %d bytes: %w", MaxValue, ErrTooLarge))
	}
	r, err := appendChunk(w.store, w.keyspace, w.codec, w.key, chunk)
	if err != nil {
		return w.fail(err)
	}
	w.chunks = append(w.chunks, r)
	w.total += uint64(len(chunk))
	return nil
}

func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	return w.err
}

// Finish stores what is left and returns where the value lies. On an error nothing of it counts as live. The Writer is
// finished in either case.
func (w *Writer) Finish() (Ref, error) {
	if w.err != nil {
		err := w.err
		w.Abort()
		return Ref{}, err
	}
	if len(w.chunks) == 0 {
		r, err := appendChunk(w.store, w.keyspace, w.codec, w.key, w.chunk)
		w.err, w.chunk = errFinished, nil
		return r, err
	}
	if err := w.storeChunk(w.chunk); err != nil {
		w.Abort()
		return Ref{}, err
	}
	r, err := w.storeIndex()
	if err != nil {
		w.Abort()
		return Ref{}, err
	}
	w.err, w.chunk, w.chunks = errFinished, nil, nil
	return r, nil
}

func (w *Writer) storeIndex() (Ref, error) {
	var tail [tailSize]byte
	binary.LittleEndian.PutUint32(tail[:], uint32(len(w.key)))
	p, err := w.store.AppendValueIndex(w.keyspace, w.codec, appendIndex(nil, w.total, w.chunks), w.key, tail[:])
	if err != nil {
		return Ref{}, fmt.Errorf("store value index: %w", err)
	}
	return Ref{Pointer: p, Length: w.total, Keyspace: w.keyspace}, nil
}

// Abort gives up what was stored: nothing refers to it, so its segment's cleaning removes it. After Finish it does nothing.
func (w *Writer) Abort() {
	w.chunk, w.chunks = nil, nil
	w.err = errFinished
}
