package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
)

// The header block of a segment file, as docs/format/segment.md lists it.
const (
	offsetMagic        = 0
	offsetVersion      = 8
	offsetID           = 12
	offsetDatabase     = 16
	offsetClass        = 32
	offsetFileKeyspace = 36
	offsetChecksum     = 60

	// FileHeaderSize is the length of a segment file's header block; the first blob follows it.
	FileHeaderSize = 64

	magic   = "PANDOSEG"
	version = 1
)

const (
	// DirName is the name of the directory of segment files in the database directory.
	DirName = "segments"

	suffix     = ".seg"
	nameDigits = 8
)

// castagnoli is the table for the checksum of header blocks. It is never written after it was made.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// FileName returns the name of a segment's file.
func FileName(id uint32) string { return fmt.Sprintf("%0*x%s", nameDigits, id, suffix) }

// FilePath returns the path of a segment's file, from the directory of the database on, as errors name it.
func FilePath(id uint32) string { return DirName + "/" + FileName(id) }

// IsFileName reports whether name is one that FileName gives.
func IsFileName(name string) bool {
	_, ok := parseFileName(name)
	return ok
}

// parseFileName is the inverse of FileName.
func parseFileName(name string) (id uint32, ok bool) {
	digits, found := strings.CutSuffix(name, suffix)
	if !found || len(digits) != nameDigits {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || n == 0 || FileName(uint32(n)) != name {
		return 0, false
	}
	return uint32(n), true
}

// fileHeader is what stands at the beginning of a segment file.
type fileHeader struct {
	id       uint32
	database [16]byte
	class    Class
	keyspace uint32 // to which most of the blobs belong; a hint for tools
}

func (h fileHeader) encode() []byte {
	b := make([]byte, FileHeaderSize)
	copy(b[offsetMagic:], magic)
	binary.LittleEndian.PutUint32(b[offsetVersion:], version)
	binary.LittleEndian.PutUint32(b[offsetID:], h.id)
	copy(b[offsetDatabase:], h.database[:])
	b[offsetClass] = byte(h.class)
	binary.LittleEndian.PutUint32(b[offsetFileKeyspace:], h.keyspace)
	binary.LittleEndian.PutUint32(b[offsetChecksum:], crc32.Checksum(b[:offsetChecksum], castagnoli))
	return b
}

// decodeFileHeader reads a header block; the error says what is wrong with it.
func decodeFileHeader(b []byte) (fileHeader, error) {
	switch {
	case len(b) < FileHeaderSize:
		return fileHeader{}, fmt.Errorf("header block of %d bytes instead of %d", len(b), FileHeaderSize)
	case string(b[offsetMagic:offsetVersion]) != magic:
		return fileHeader{}, errors.New("not a segment file")
	case binary.LittleEndian.Uint32(b[offsetChecksum:]) != crc32.Checksum(b[:offsetChecksum], castagnoli):
		return fileHeader{}, errors.New("checksum of the header block does not match")
	case binary.LittleEndian.Uint32(b[offsetVersion:]) != version:
		return fileHeader{}, fmt.Errorf("segment format %d, known is %d", binary.LittleEndian.Uint32(b[offsetVersion:]), version)
	}
	h := fileHeader{
		id:       binary.LittleEndian.Uint32(b[offsetID:]),
		class:    Class(b[offsetClass]),
		keyspace: binary.LittleEndian.Uint32(b[offsetFileKeyspace:]),
	}
	copy(h.database[:], b[offsetDatabase:])
	if h.class != Nodes && h.class != Values {
		return fileHeader{}, fmt.Errorf("unknown class %d", h.class)
	}
	return h, nil
}

// The states of a segment.
const (
	inWork uint32 = iota // belongs to an unfinished Writer
	listed               // is in the table
	orphan               // was found by Open outside of the table
)

// What is added to a file's references to keep new readers out.
const (
	closing = 1 << 40 // for good. The readers that are inside go on
	resting = 1 << 39 // while its handle is closed: they wait until that has been done
)

// file is one segment file. Its numbers may be read and changed at any time; its handle is opened when first needed.
type file struct {
	id    uint32
	class Class
	name  string // relative to the database directory, for errors
	path  string
	fsys  vfs.FS

	failures *failures // of the store
	handles  *handles  // likewise

	references atomic.Int64 // readers and writers inside, plus closing and resting
	drained    chan struct{}

	opening sync.Mutex
	handle  atomic.Pointer[vfs.File]
	place   int // among the open files; guarded by handles.mu
	mapped  atomic.Pointer[mapped]
	// unmappable tells that there is no use in trying to map the file, and refused that there was none when so many mappings, less one, had
	// ended: there was no room.
	unmappable atomic.Bool
	refused    atomic.Uint64
	// read is set by readers, and taken away by who looks for a handle to close.
	read atomic.Bool
	// growing is set while blobs may be added: the handle stays open.
	growing atomic.Bool
	rested  bool // the handle was closed for want of readers; guarded by opening

	size    atomic.Int64 // end of what may be read
	live    atomic.Int64
	lastSeq atomic.Uint64

	state      atomic.Uint32 // of the states below
	earlier    bool          // was made by an earlier run of the process
	distrusted bool          // ... and waits, or waited, for a sync of what that run left; guarded by values.mu

	left    int64        // length of what the file held before it became this segment's; 0 for a new file
	writers atomic.Int64 // AppendValue calls inside
	dirty   atomic.Bool  // completed writes wait for a sync
}

func (s *Store) newFile(id uint32, class Class) *file {
	base := FileName(id)
	return &file{
		id: id, class: class, fsys: s.options.FS, failures: &s.failures, handles: &s.handles,
		name: DirName + "/" + base, path: s.path(base),
		drained: make(chan struct{}, 1),
	}
}

// acquire keeps the file open until release. It fails when the file is being closed for good.
func (f *file) acquire() bool {
	for {
		n := f.references.Add(1)
		if n < resting {
			return true
		}
		f.release()
		if n >= closing {
			return false
		}
		f.awaitRest()
	}
}

func (f *file) release() { f.leave(1) }

// leave takes from the references what was added to them.
func (f *file) leave(n int64) {
	if f.references.Add(-n) == closing {
		select {
		case f.drained <- struct{}{}:
		default: // somebody who came too late left after the last one who was inside
		}
	}
}

// close waits until nobody is inside, then closes the handle. It is called once.
func (f *file) close() error {
	if f.references.Add(closing) != closing {
		<-f.drained
	}
	if err := errors.Join(f.unmap(), f.dismiss()); err != nil {
		return fmt.Errorf("close %s: %w", f.name, err)
	}
	return nil
}

// open returns the handle. The caller is inside (acquire).
func (f *file) open() (vfs.File, error) {
	if h := f.handle.Load(); h != nil {
		return *h, nil
	}
	h, fresh, err := f.reopen()
	if fresh {
		f.handles.enough()
	}
	return h, err
}

// reopen opens the handle. It is not fresh where somebody else was first.
func (f *file) reopen() (h vfs.File, fresh bool, err error) {
	f.opening.Lock()
	defer f.opening.Unlock()
	if h := f.handle.Load(); h != nil {
		return *h, false, nil
	}
	if h, err = f.fsys.Open(f.path); err != nil {
		return nil, false, err
	}
	f.admit(h)
	return h, true, nil
}

// opened returns the handle of a file that this process made, and is not done with.
func (f *file) opened() (vfs.File, error) {
	h := f.handle.Load()
	if h == nil {
		return nil, fmt.Errorf("%s: %w", f.name, ErrClosed)
	}
	return *h, nil
}

// readAt fills b from offset on. A file that is missing or too short is damage; the caller is inside.
func (f *file) readAt(b []byte, offset int64) error {
	h, err := f.open()
	if errors.Is(err, fs.ErrNotExist) {
		return corrupt.New(f.name, offset, int64(len(b)), "the file is missing")
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", f.name, err)
	}
	n, err := h.ReadAt(b, offset)
	switch {
	case n == len(b):
		f.failures.worked(place{f.id, offset})
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return corrupt.New(f.name, offset, int64(len(b)), "the file ends after %d of the bytes", n)
	case errors.Is(err, fs.ErrClosed):
		return fmt.Errorf("%s: read %d bytes at %d: %w", f.name, len(b), offset, err)
	}
	return f.unreadable(offset, len(b), err)
}

func (f *file) info() Info {
	return Info{ID: f.id, Class: f.class, Size: f.size.Load(), Live: f.live.Load(), LastSeq: f.lastSeq.Load()}
}
