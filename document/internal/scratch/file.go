package scratch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/zeebo/xxh3"

	"github.com/pandodb/pando/vfs"
)

// The parts of a block.
const (
	blockHeader = 12
	blockBytes  = 64 << 10 // a block is written when it has reached this
)

// file is a temporary file that is written once, front to back.
type file struct {
	space *Space
	name  string
	f     vfs.File
	size  int64
	buf   []byte // the block at hand, with room for its header
}

func (s *Space) create() (*file, error) {
	name := filepath.Join(s.dir, fmt.Sprintf("%08x%s", s.number.Add(1), suffix))
	f, err := s.fs.Create(name)
	if errors.Is(err, fs.ErrNotExist) {
		s.made.Store(true)
		if err = s.fs.MkdirAll(s.dir); err == nil {
			f, err = s.fs.Create(name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create a scratch file: %w", err)
	}
	return &file{space: s, name: name, f: f, buf: make([]byte, blockHeader, blockBytes+blockBytes/4)}, nil
}

func appendRecord(dst, key, value []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(append(dst, key...), value...)
}

// add appends a record.
func (f *file) add(key, value []byte) error {
	f.buf = appendRecord(f.buf, key, value)
	if len(f.buf) < blockBytes {
		return nil
	}
	return f.flush()
}

// flush writes the block at hand.
func (f *file) flush() error {
	if len(f.buf) <= blockHeader {
		return nil
	}
	if err := f.space.reserve(int64(len(f.buf))); err != nil {
		return err
	}
	seal(f.buf)
	if _, err := f.f.WriteAt(f.buf, f.size); err != nil {
		f.space.used.Add(-int64(len(f.buf)))
		return fmt.Errorf("write a scratch file: %w", err)
	}
	f.size += int64(len(f.buf))
	f.buf = f.buf[:blockHeader]
	return nil
}

// seal fills in the header of a block.
func seal(block []byte) {
	binary.LittleEndian.PutUint32(block, uint32(len(block)-blockHeader))
	binary.LittleEndian.PutUint64(block[4:], xxh3.Hash(block[blockHeader:]))
}

// close removes the file.
func (f *file) close() error {
	err := errors.Join(f.f.Close(), f.space.fs.Remove(f.name))
	f.space.used.Add(-f.size)
	if err != nil {
		return fmt.Errorf("remove a scratch file: %w", err)
	}
	return nil
}

// readBlock reads the block at off into buf and returns its records and where the next block begins.
func (f *file) readBlock(off int64, buf []byte) (records []byte, next int64, err error) {
	var header [blockHeader]byte
	if err := f.readAt(header[:], off); err != nil {
		return nil, 0, err
	}
	n := int64(binary.LittleEndian.Uint32(header[:]))
	if n > f.size-off-blockHeader {
		return nil, 0, fmt.Errorf("%s: block at %d: length %d: %w", f.name, off, n, ErrDamaged)
	}
	if int64(cap(buf)) < n {
		buf = make([]byte, n, n+n/4)
	}
	buf = buf[:n]
	if err := f.readAt(buf, off+blockHeader); err != nil {
		return nil, 0, err
	}
	if xxh3.Hash(buf) != binary.LittleEndian.Uint64(header[4:]) {
		return nil, 0, fmt.Errorf("%s: block at %d: checksum: %w", f.name, off, ErrDamaged)
	}
	return buf, off + blockHeader + n, nil
}

func (f *file) readAt(buf []byte, off int64) error {
	if n, err := f.f.ReadAt(buf, off); n < len(buf) {
		return fmt.Errorf("read a scratch file: %w", errors.Join(err, ErrDamaged))
	}
	return nil
}

// parseRecord takes the first record from the records of a block.
func parseRecord(records []byte) (key, value, rest []byte, err error) {
	k, n := binary.Uvarint(records)
	if n <= 0 {
		return nil, nil, nil, ErrDamaged
	}
	v, m := binary.Uvarint(records[n:])
	if m <= 0 {
		return nil, nil, nil, ErrDamaged
	}
	rest = records[n+m:]
	if k > uint64(len(rest)) || v > uint64(len(rest))-k {
		return nil, nil, nil, ErrDamaged
	}
	return rest[:k], rest[k : k+v], rest[k+v:], nil
}

// reader reads the records of a file in order.
type reader struct {
	f          *file
	off        int64
	block      []byte
	records    []byte
	key, value []byte
}

// next moves to the next record. ok is false at the end.
func (r *reader) next() (ok bool, err error) {
	for len(r.records) == 0 {
		if r.off >= r.f.size {
			return false, nil
		}
		if r.block, r.off, err = r.f.readBlock(r.off, r.block); err != nil {
			return false, err
		}
		r.records = r.block
	}
	r.key, r.value, r.records, err = parseRecord(r.records)
	return err == nil, err
}
