package segment

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/pandodb/pando/internal/corrupt"
)

// Buffer is the memory of one reader at a time. It grows to the longest blob that was read into it. The zero Buffer is
// ready.
type Buffer struct {
	stored []byte
	raw    []byte
}

// Cap is the number of bytes that the Buffer holds on to.
func (b *Buffer) Cap() int { return cap(b.stored) + cap(b.raw) }

// Read returns what was appended under p, verified and decompressed, and its header. raw lies in buf and is valid until buf
// is used again.
//
// The error is a *corrupt.Error when the file does not hold that blob, ErrNoDictionary when its dictionary was not added,
// ErrClosed after Close, or an error of the file system.
func (s *Store) Read(p Pointer, buf *Buffer) (raw []byte, h Header, err error) {
	return s.ReadNear(p, buf, nil)
}

// ReadNear is Read, but decompresses into the memory of spare, up to its capacity, when there is enough: then raw begins where
// spare begins. What is stored without compression lies in buf in any case.
func (s *Store) ReadNear(p Pointer, buf *Buffer, spare []byte) (raw []byte, h Header, err error) {
	f, err := s.lookupBlob(p)
	if err != nil {
		return nil, Header{}, err
	}
	buf.stored = resize(buf.stored, int(p.Length))
	err = s.fill(f, buf.stored, int64(p.Offset))
	f.release()
	if err != nil {
		return nil, Header{}, err
	}
	return s.unpack(f, p, buf, spare)
}

// unpack verifies and decompresses what was read into buf. Of f it needs the name.
func (s *Store) unpack(f *file, p Pointer, buf *Buffer, spare []byte) (raw []byte, h Header, err error) {
	h, err = s.verify(buf.stored, p)
	if err != nil {
		return nil, Header{}, corrupt.New(f.name, int64(p.Offset), int64(p.Length), "%v", err)
	}
	payload := buf.stored[HeaderSize:]
	if raw, plain := h.plain(payload); plain {
		return raw, h, nil
	}
	if cap(spare) >= int(h.Raw) {
		raw, err = s.codecs.decode(spare[:0:h.Raw], h, payload) // what lies behind may be the caller's
	} else {
		buf.raw = resize(buf.raw, int(h.Raw))
		raw, err = s.codecs.decode(buf.raw, h, payload)
	}
	if err != nil {
		return nil, Header{}, f.decodeError(p, err)
	}
	return raw, h, nil
}

// ReadPlain reads the payload of the blob under p straight into dst, whose length is that of the payload, when the caller
// knows all of the blob's header but its checksum, and that it is stored without compression. It reads the payload only and
// verifies it together with the expected header, so it proves as much as Read does.
func (s *Store) ReadPlain(p Pointer, kind Kind, keyspace uint32, dst []byte) error {
	f, err := s.lookupBlob(p)
	if err != nil {
		return err
	}
	if uint64(len(dst))+HeaderSize != uint64(p.Length) {
		f.release()
		return fmt.Errorf("segment %d: read blob at %d: %d bytes of memory for a payload of %d",
			p.Segment, p.Offset, len(dst), p.Length-HeaderSize)
	}
	err = s.fill(f, dst, int64(p.Offset)+HeaderSize)
	f.release()
	if err != nil {
		return err
	}
	length := uint32(len(dst))
	var header [HeaderSize]byte
	Header{Kind: kind, Keyspace: keyspace, Stored: length, Raw: length}.put(header[:])
	if got := sum(header[:], dst, s.place(p.Segment, p.Offset)); got != p.Sum {
		return corrupt.New(f.name, int64(p.Offset), int64(p.Length), "checksum mismatch: %016x, want %016x", got, p.Sum)
	}
	return nil
}

// lookupBlob returns the file in which p lies, acquired, when it is long enough for the blob. So what a reader allocates is
// bounded by what lies on disk, wherever the pointer comes from.
func (s *Store) lookupBlob(p Pointer) (*file, error) {
	f, err := s.lookup(p.Segment)
	if errors.Is(err, ErrUnknownSegment) {
		name := FilePath(p.Segment)
		return nil, fmt.Errorf("%w: %w", err, corrupt.New(name, int64(p.Offset), int64(p.Length), "a blob of a segment that is not there"))
	}
	if err != nil {
		return nil, fmt.Errorf("segment %d: read blob at %d: %w", p.Segment, p.Offset, err)
	}
	switch end := int64(p.Offset) + int64(p.Length); {
	case p.Length < HeaderSize || p.Length > HeaderSize+MaxBlob || p.Offset < FileHeaderSize:
		err = corrupt.New(f.name, int64(p.Offset), int64(p.Length), "impossible place or length of a blob")
	case end > f.size.Load():
		err = corrupt.New(f.name, int64(p.Offset), int64(p.Length), "the blob ends behind the file, at %d of %d", end, f.size.Load())
	}
	if err != nil {
		f.release()
		return nil, err
	}
	return f, nil
}

// decodeError is the error for a verified blob that does not decompress.
func (f *file) decodeError(p Pointer, err error) error {
	if errors.Is(err, ErrNoDictionary) {
		return fmt.Errorf("%s: read blob at %d: %w", f.name, p.Offset, err)
	}
	return corrupt.New(f.name, int64(p.Offset), int64(p.Length), "%v", err)
}

// ReadBlob reads one blob of a database whose table of segments is not known yet: the catalogue, which holds it. Its errors
// are those of Read.
func ReadBlob(o Options, p Pointer) ([]byte, error) {
	s := newStore(o)
	f := s.newFile(p.Segment, Nodes)
	stat, err := o.FS.Stat(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: read blob at %d: %w", f.name, p.Offset, err)
	}
	if err == nil {
		f.size.Store(stat.Size)
		s.files.Store(newFileTable(map[uint32]*file{p.Segment: f}))
	}
	var buf Buffer
	raw, _, err := s.Read(p, &buf)
	return raw, errors.Join(err, s.Close())
}

// keepBuffer is the most that a Buffer may hold on to for the next user.
const keepBuffer = 4 << 20

// GetBuffer returns a Buffer, warm when there is one. Give it back with PutBuffer.
func (s *Store) GetBuffer() *Buffer {
	if b, ok := s.spare.Get().(*Buffer); ok {
		return b
	}
	return new(Buffer)
}

// PutBuffer takes a Buffer back, with all that was read into it.
func (s *Store) PutBuffer(b *Buffer) {
	if b.Cap() <= keepBuffer {
		s.spare.Put(b)
	}
}
