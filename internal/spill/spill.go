// Package spill keeps the commands of a batch that is too large for memory in a file, until they have been carried out.
//
// A file is a sequence of frames, each the payload of a run of commands (package command) with a checksum. It is written
// once, front to back, by one goroutine, and read any number of times. A frame that does not verify is a *corrupt.Error: a
// batch is carried out whole or not at all, so its reader gives up with the first one. A write that fails leaves the file as it
// was; after a sync or a close that failed, which may have cost what was written before, a Writer answers ErrLost. A file of no length is the
// mark of a batch whose bulk load failed.
//
// Memory: one frame at a time, on both sides. The format is described in docs/format/spill.md.
package spill

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
)

// DirName is the directory of the files inside of the database directory.
const DirName = "spill"

const (
	suffix     = ".spill"
	unfinished = suffix + ".tmp" // what a crash in the midst of MarkFailed leaves
)

// The fields of a frame's header, as docs/format/spill.md lists them.
const (
	offsetLength   = 0
	offsetChecksum = 4
	offsetCount    = 8
	offsetData     = 12
	frameHeader    = 16

	// MaxFrame bounds the payload of a frame.
	MaxFrame = 64 << 20
)

// ErrLost is what errors.Is finds when a file was not closed well, or may hold what does not belong to it: nobody knows what is in it.
var ErrLost = errors.New("the file of a batch was lost")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Name returns the name of a file, relative to the database directory.
func Name(number uint64) string {
	return filepath.Join(DirName, fmt.Sprintf("%016x%s", number, suffix))
}

// Frame is a run of commands.
type Frame struct {
	Payload []byte
	Count   int // commands
	Data    int // bytes of their keys and values
}

// Writer writes one file.
type Writer struct {
	fsys     vfs.FS
	database string
	path     string
	file     vfs.File // nil while it is closed
	size     int64
	count    int64
	buf      []byte
	lost     bool
}

// Create makes the file with a number.
func Create(fsys vfs.FS, database string, number uint64) (*Writer, error) {
	if err := vfs.MkdirAllSync(fsys, filepath.Join(database, DirName)); err != nil {
		return nil, fmt.Errorf("spill: %w", err)
	}
	w := &Writer{fsys: fsys, database: database, path: filepath.Join(database, Name(number))}
	var err error
	if w.file, err = fsys.Create(w.path); err != nil {
		return nil, fmt.Errorf("spill: %w", err)
	}
	return w, nil
}

// Add appends a frame. It opens a file again that was closed.
func (w *Writer) Add(f Frame) error {
	switch {
	case w.lost:
		return fmt.Errorf("spill: %w", ErrLost)
	case len(f.Payload) > MaxFrame: // nobody would read it
		return fmt.Errorf("spill: a frame of %d bytes, at most %d", len(f.Payload), MaxFrame)
	}
	if w.file == nil {
		file, err := w.fsys.OpenReadWrite(w.path)
		if err != nil {
			return fmt.Errorf("spill: %w", err)
		}
		w.file = file
	}
	w.buf = appendFrame(w.buf[:0], f)
	if _, err := w.file.WriteAt(w.buf, w.size); err != nil {
		return errors.Join(fmt.Errorf("spill %d bytes: %w", len(w.buf), err), w.Rewind(w.size, w.count))
	}
	w.size += int64(len(w.buf))
	w.count += int64(f.Count)
	return nil
}

// Rewind makes the file what it was when it had a size and a number of commands.
func (w *Writer) Rewind(size, count int64) error {
	w.size, w.count = size, count
	if w.file == nil {
		return nil // nothing has been written behind it
	}
	if err := w.file.Truncate(size); err != nil {
		w.lost = true
		return fmt.Errorf("spill: %w", err)
	}
	return nil
}

// Count is the number of commands in the file.
func (w *Writer) Count() int64 { return w.count }

// Size is the length of the file in bytes.
func (w *Writer) Size() int64 { return w.size }

// Close ends writing until the next Add; the file is durable when sync is set.
func (w *Writer) Close(sync bool) error {
	if w.lost {
		return errors.Join(fmt.Errorf("spill: %w", ErrLost), w.end())
	}
	if w.file == nil {
		return nil
	}
	var err error
	if sync {
		if err = w.file.Sync(); err == nil {
			err = w.fsys.SyncDir(filepath.Dir(w.path))
		}
	}
	err = errors.Join(err, w.end())
	w.lost = err != nil // a second sync may succeed without what the first one has lost
	return err
}

// end closes the file, if it is open.
func (w *Writer) end() error {
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// Renumber closes the file and gives it another number.
func (w *Writer) Renumber(number uint64) error {
	if err := w.Close(false); err != nil {
		return err
	}
	path := filepath.Join(w.database, Name(number))
	if err := w.fsys.Rename(w.path, path); err != nil {
		return fmt.Errorf("spill: %w", err)
	}
	w.path = path
	return nil
}

// Lose makes the Writer answer ErrLost: its file, which is closed, is going to be another's.
func (w *Writer) Lose() { w.lost = true }

// Remove closes and deletes the file.
func (w *Writer) Remove() error { return errors.Join(w.end(), w.fsys.Remove(w.path)) }

// Read calls fn for each frame of a file; the payload is valid during the call. It returns fs.ErrNotExist for a file that is
// not there.
func Read(fsys vfs.FS, database string, number uint64, fn func(Frame) error) error {
	return ReadFrom(fsys, database, number, 0, fn)
}

// ReadFrom is Read from the frame at an offset on.
func ReadFrom(fsys vfs.FS, database string, number uint64, offset int64, fn func(Frame) error) error {
	name := Name(number)
	file, err := fsys.Open(filepath.Join(database, name))
	if err != nil {
		return fmt.Errorf("spill: %w", err)
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var header [frameHeader]byte
	var payload []byte
	for at := offset; at < size; {
		if size-at < frameHeader {
			return corrupt.New(name, at, size-at, "the last frame is cut short")
		}
		if _, err := file.ReadAt(header[:], at); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", name, err)
		}
		length := int64(binary.LittleEndian.Uint32(header[offsetLength:]))
		if length > MaxFrame || length > size-at-frameHeader {
			return corrupt.New(name, at, size-at, "a frame of %d bytes does not fit", length)
		}
		if int64(cap(payload)) < length {
			payload = make([]byte, length)
		}
		payload = payload[:length]
		if _, err := file.ReadAt(payload, at+frameHeader); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", name, err)
		}
		f, err := decodeFrame(&header, payload)
		if err != nil {
			return corrupt.New(name, at, frameHeader+length, "%v", err)
		}
		if err := fn(f); err != nil {
			return err
		}
		at += frameHeader + length
	}
	return nil
}

// Sweep lists the files of a database, and removes what crashes have left of marks that were not in their place yet.
func Sweep(fsys vfs.FS, database string) (numbers []uint64, err error) {
	names, err := fsys.List(filepath.Join(database, DirName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("spill: %w", err)
	}
	for _, name := range names {
		var n uint64
		if strings.HasSuffix(name, unfinished) {
			if err := fsys.Remove(filepath.Join(database, DirName, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("spill: %w", err)
			}
		} else if _, err := fmt.Sscanf(strings.TrimSuffix(name, suffix), "%016x", &n); err == nil && filepath.Base(Name(n)) == name {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// MarkFailed cuts a file to no length: the bulk load of its batch was not carried out, which those who read the log pass over.
func MarkFailed(fsys vfs.FS, database string, number uint64) error {
	if err := fsys.MkdirAll(filepath.Join(database, DirName)); err != nil {
		return err
	}
	return vfs.WriteFile(fsys, filepath.Join(database, Name(number)), nil)
}

// Failed reports whether MarkFailed has marked a file. It returns fs.ErrNotExist for a file that is not there.
func Failed(fsys vfs.FS, database string, number uint64) (bool, error) {
	stat, err := fsys.Stat(filepath.Join(database, Name(number)))
	return err == nil && stat.Size == 0, err
}

// appendFrame appends the encoded form of f to dst.
func appendFrame(dst []byte, f Frame) []byte {
	var h [frameHeader]byte
	binary.LittleEndian.PutUint32(h[offsetLength:], uint32(len(f.Payload)))
	binary.LittleEndian.PutUint32(h[offsetCount:], uint32(f.Count))
	binary.LittleEndian.PutUint32(h[offsetData:], uint32(f.Data))
	binary.LittleEndian.PutUint32(h[offsetChecksum:], checksum(&h, f.Payload))
	return append(append(dst, h[:]...), f.Payload...)
}

// decodeFrame checks a frame's payload against its header.
func decodeFrame(h *[frameHeader]byte, payload []byte) (Frame, error) {
	want := binary.LittleEndian.Uint32(h[offsetChecksum:])
	if got := checksum(h, payload); got != want {
		return Frame{}, fmt.Errorf("checksum %08x instead of %08x", got, want)
	}
	return Frame{
		Payload: payload,
		Count:   int(binary.LittleEndian.Uint32(h[offsetCount:])),
		Data:    int(binary.LittleEndian.Uint32(h[offsetData:])),
	}, nil
}

// checksum is the CRC32C of the header without the checksum itself, and of the payload.
func checksum(h *[frameHeader]byte, payload []byte) uint32 {
	sum := crc32.Update(0, castagnoli, h[:offsetChecksum])
	sum = crc32.Update(sum, castagnoli, h[offsetCount:])
	return crc32.Update(sum, castagnoli, payload)
}
