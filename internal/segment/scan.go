package segment

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pandodb/pando/internal/corrupt"
)

const (
	// scanBytes is how much Scan reads at once.
	scanBytes = 1 << 20
	// sectorBytes is how much Scan gives up at once when the device fails to read.
	sectorBytes = 4 << 10
	// searchEffort limits the bytes that Scan hashes at places that look like a header and are none: so many times the
	// length of the file. Damage never comes near it; a file made with ill intent would.
	searchEffort = 16
	// longest is the most that a segment holds, wherever its file ends: nothing behind it was written by a store. It bounds what is read
	// of a file that somebody has made long.
	longest = MaxSegmentBytes + HeaderSize + MaxBlob
)

// Scan reads a segment from front to back and calls fn for each blob that verifies, with its payload decompressed; p, h and raw
// are valid during the call. Stretches that hold no such blob are told to bad, which may be nil: Scan finds the next blob
// behind them by itself. They are damage, and ErrUnreadable too where it was the device that failed. It stops when ctx is done or when fn
// fails, with that error.
//
// The places of failed and torn writes in a value segment are told to bad too: they are no damage unless something refers to
// them.
func (s *Store) Scan(ctx context.Context, id uint32, fn func(p Pointer, h Header, raw []byte) error, bad func(offset, length int64, err error)) error {
	f, err := s.lookup(id)
	if err != nil {
		return fmt.Errorf("scan segment %d: %w", id, err)
	}
	defer f.release()
	if bad == nil {
		bad = func(int64, int64, error) {}
	}
	sc := scanner{store: s, file: f, bad: bad}
	if sc.size, err = f.sizeNow(); err != nil {
		return fmt.Errorf("scan segment %d: %w", id, err)
	}
	if f.class == Values && !f.earlier {
		sc.size = min(sc.size, f.size.Load()) // behind it lie zeros, or what the file held before
	}
	sc.end = max(sc.size, min(f.size.Load(), longest))
	sc.effort = searchEffort * (sc.size + MaxBlob)
	sc.header()
	return sc.run(ctx, fn)
}

// sizeNow is the length of the file itself, as far as it may hold anything; the caller is inside. A missing file has none.
func (f *file) sizeNow() (int64, error) {
	h, err := f.open()
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	size, err := h.Size()
	return min(size, longest), err
}

type scanner struct {
	store  *Store
	file   *file
	size   int64 // of the file
	end    int64 // that it should have
	bad    func(offset, length int64, err error)
	window []byte // of the file, from offset from on
	from   int64
	raw    []byte
	effort int64 // bytes that may still be hashed in vain

	careful int64 // below this offset nothing is read ahead

	gap      int64 // where the stretch without a blob begins that is being skipped; 0: none
	gapCause error
}

// at returns length bytes from offset on, valid until the next call. It reads ahead, but not over a sector that the device
// fails to read.
func (sc *scanner) at(offset, length int64) ([]byte, error) {
	if offset >= sc.from && offset+length <= sc.from+int64(len(sc.window)) {
		return sc.window[offset-sc.from:][:length], nil
	}
	if offset >= sc.careful {
		if err := sc.fill(offset, max(length, scanBytes)); err == nil {
			return sc.window[:length], nil
		}
		sc.careful = offset + scanBytes
	}
	if err := sc.fill(offset, sectorEnd(offset+length-1)-offset); err != nil {
		return nil, err
	}
	return sc.window[:length], nil
}

// fill makes the window what lies from offset on, at most n bytes.
func (sc *scanner) fill(offset, n int64) error {
	sc.from, sc.window = offset, resize(sc.window, int(min(n, sc.size-offset)))
	err := sc.file.readAt(sc.window, offset)
	if err != nil {
		sc.window = sc.window[:0]
	}
	return err
}

// sectorEnd is the offset behind the sector in which offset lies.
func sectorEnd(offset int64) int64 { return offset&^(sectorBytes-1) + sectorBytes }

// header checks the header block of the file.
func (sc *scanner) header() {
	if sc.size < FileHeaderSize {
		sc.bad(0, FileHeaderSize, corrupt.New(sc.file.name, 0, FileHeaderSize, "the file is shorter than its header block"))
		return
	}
	block, err := sc.at(0, FileHeaderSize)
	if err == nil {
		var h fileHeader
		if h, err = decodeFileHeader(block); err == nil && (h.id != sc.file.id || h.database != sc.store.options.Database) {
			err = fmt.Errorf("header block of segment %d of another database or place", h.id)
		}
	}
	if err != nil {
		sc.bad(0, FileHeaderSize, corrupt.New(sc.file.name, 0, FileHeaderSize, "%v", err))
	}
}

func (sc *scanner) run(ctx context.Context, fn func(p Pointer, h Header, raw []byte) error) error {
	for offset, pause := int64(FileHeaderSize), int64(0); offset < sc.size; {
		if offset >= pause {
			if err := ctx.Err(); err != nil {
				return err
			}
			pause = offset + sectorBytes
		}
		p, h, payload, err := sc.blob(offset)
		if err != nil {
			if offset = sc.skip(offset, err); sc.effort < 0 {
				offset = sc.size
			}
			continue
		}
		sc.endGap(offset)
		offset += int64(p.Length)
		raw, plain := h.plain(payload)
		if !plain {
			if raw, err = sc.store.codecs.decode(sc.raw, h, payload); err != nil {
				sc.bad(int64(p.Offset), int64(p.Length), sc.file.decodeError(p, err))
				continue
			}
			sc.raw = raw
		}
		if err := fn(p, h, raw); err != nil {
			return err
		}
	}
	if sc.gap == 0 && sc.end > sc.size {
		sc.gap, sc.gapCause = max(sc.size, FileHeaderSize), errors.New("the file is cut short")
	}
	sc.endGap(sc.end)
	return nil
}

// errNoBlob stands for every reason why there is no blob at a place, because most places are looked at in vain.
var errNoBlob = errors.New("no blob that verifies")

// blob returns the blob at offset.
func (sc *scanner) blob(offset int64) (Pointer, Header, []byte, error) {
	if sc.size-offset < HeaderSize {
		return Pointer{}, Header{}, nil, errNoBlob
	}
	header, err := sc.at(offset, HeaderSize)
	if err != nil {
		return Pointer{}, Header{}, nil, err
	}
	if header[offsetKind] == 0 || header[offsetKind] > maxKind || header[offsetCodec] > byte(maxCodec) {
		return Pointer{}, Header{}, nil, errNoBlob
	}
	h := parseHeader(header)
	length := HeaderSize + int64(h.Stored)
	if h.check() != nil || length > sc.size-offset {
		return Pointer{}, Header{}, nil, errNoBlob
	}
	blob, err := sc.at(offset, length)
	if err != nil {
		return Pointer{}, Header{}, nil, err
	}
	p := Pointer{Segment: sc.file.id, Offset: uint32(offset), Length: uint32(length), Sum: h.Sum}
	if h.proves(blob, blob[HeaderSize:], sc.store.place(p.Segment, p.Offset)) != nil {
		sc.effort -= length
		return Pointer{}, Header{}, nil, errNoBlob
	}
	return p, h, blob[HeaderSize:], nil
}

// skip notes that there is no blob at offset and returns where to look next.
func (sc *scanner) skip(offset int64, cause error) int64 {
	if sc.gap == 0 {
		sc.gap, sc.gapCause = offset, cause
	}
	if errors.Is(cause, errNoBlob) {
		return sc.afterZeros(offset + 1)
	}
	if sc.gapCause == errNoBlob {
		sc.gapCause = cause
	}
	// What cannot be read may lie anywhere in a long blob: give up this sector only when it is the one.
	next := min(sectorEnd(offset), sc.size)
	if _, err := sc.at(offset, next-offset); err == nil {
		return offset + 1
	}
	return next
}

// afterZeros returns the first offset, from offset on, at which a header may begin: where the kind in it would be none, it does not. It
// looks no further than to the end of the window.
func (sc *scanner) afterZeros(offset int64) int64 {
	kind := offset + offsetKind - sc.from
	if kind < 0 || kind >= int64(len(sc.window)) {
		return offset
	}
	return offset + int64(leadingZeros(sc.window[kind:]))
}

// leadingZeros returns with how many zero bytes b begins. It looks at words, as there may be gigabytes of them.
func leadingZeros(b []byte) (n int) {
	for n+8 <= len(b) && binary.LittleEndian.Uint64(b[n:]) == 0 {
		n += 8
	}
	for n < len(b) && b[n] == 0 {
		n++
	}
	return n
}

// passing is damage that may pass, for it is the device that failed to read.
type passing struct{ error }

func (p *passing) Is(target error) bool { return target == ErrUnreadable }
func (p *passing) Unwrap() error        { return p.error }

// endGap reports the stretch that was skipped and ends at offset.
func (sc *scanner) endGap(offset int64) {
	if sc.gap == 0 {
		return
	}
	length := offset - sc.gap
	err := error(corrupt.New(sc.file.name, sc.gap, length, "%v", sc.gapCause))
	if errors.Is(sc.gapCause, ErrUnreadable) {
		err = &passing{err}
	}
	sc.bad(sc.gap, length, err)
	sc.gap, sc.gapCause = 0, nil
}
