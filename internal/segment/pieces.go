package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/prefetch"
)

// A blob of pieces is one of which each piece can be read, verified, moved and freed by itself: who wants one record of many that were
// written together reads no more than that record. Each piece begins with a checksum of its own, bound to database, keyspace, segment and
// offset as that of the blob is.

// PieceSumSize is the room that a piece has in front for its checksum.
const PieceSumSize = 4

// Piece says where a piece lies.
type Piece struct{ Segment, Offset, Length uint32 }

// Pointer is what accounts for the piece: see Writer.Free. Read does not take it, as it is no blob.
func (p Piece) Pointer() Pointer {
	return Pointer{Segment: p.Segment, Offset: p.Offset, Length: p.Length}
}

// pieceSum is the checksum of a piece at a place.
func pieceSum(piece []byte, place uint64, keyspace uint32) uint32 {
	return uint32(xxh3.HashSeed(piece[PieceSumSize:], place^uint64(keyspace)<<17))
}

// AppendPieces appends a blob of pieces, one behind the other in raw; ends tells where each one ends there, and what stands in the room for
// its checksum is not looked at. It returns where the first one will lie: the others follow without gaps. Only pieces count as live, not
// what the blob has around them. Otherwise it is like Append.
func (w *Writer) AppendPieces(keyspace uint32, raw []byte, ends []int) (first Piece, err error) {
	if w.err != nil {
		return Piece{}, w.err
	}
	if len(raw) > MaxBlob || len(ends) == 0 || ends[len(ends)-1] != len(raw) {
		return Piece{}, fmt.Errorf("append %d pieces in %d bytes: not allowed", len(ends), len(raw))
	}
	to := w.stream(KindPieces)
	begin := len(to.buffer)
	to.buffer = append(append(to.buffer, make([]byte, HeaderSize)...), raw...)
	length := len(to.buffer) - begin
	if err := w.makeRoom(to, begin, length); err != nil {
		to.buffer = to.buffer[:0]
		return Piece{}, w.poison(err)
	}
	begin = len(to.buffer) - length
	blob, offset := to.buffer[begin:], uint32(to.start+int64(begin))
	at := 0
	for _, end := range ends {
		piece := blob[HeaderSize+at : HeaderSize+end]
		place := w.store.place(to.file.id, offset+uint32(HeaderSize+at))
		binary.LittleEndian.PutUint32(piece, pieceSum(piece, place, keyspace))
		at = end
	}
	h := Header{Kind: KindPieces, Keyspace: keyspace, Stored: uint32(len(raw)), Raw: uint32(len(raw))}
	p := w.store.seal(blob, h, to.file.id, offset)
	if err := w.appended(to, len(raw), HeaderSize); err != nil {
		return Piece{}, err
	}
	return Piece{Segment: p.Segment, Offset: p.Offset + HeaderSize, Length: uint32(ends[0])}, nil
}

// ReadPiece returns a piece of the keyspace, its checksum in front, verified. It lies in buf and is valid until buf is used again. Errors are
// those of Read.
func (s *Store) ReadPiece(p Piece, keyspace uint32, buf *Buffer) ([]byte, error) {
	f, err := s.lookupPiece(p)
	if err != nil {
		return nil, err
	}
	buf.stored = resize(buf.stored, int(p.Length))
	err = s.fill(f, buf.stored, int64(p.Offset))
	f.release()
	if err != nil {
		return nil, err
	}
	want, got := binary.LittleEndian.Uint32(buf.stored), pieceSum(buf.stored, s.place(p.Segment, p.Offset), keyspace)
	if want != got {
		return nil, corrupt.New(f.name, int64(p.Offset), int64(p.Length), "checksum mismatch: %08x, want %08x", got, want)
	}
	return buf.stored, nil
}

// lookupPiece returns the file in which p lies, acquired, when it is long enough for it.
func (s *Store) lookupPiece(p Piece) (*file, error) {
	f, err := s.lookup(p.Segment)
	if errors.Is(err, ErrUnknownSegment) {
		name := FilePath(p.Segment)
		return nil, fmt.Errorf("%w: %w", err, corrupt.New(name, int64(p.Offset), int64(p.Length), "a piece of a segment that is not there"))
	}
	if err != nil {
		return nil, fmt.Errorf("segment %d: read piece at %d: %w", p.Segment, p.Offset, err)
	}
	end := int64(p.Offset) + int64(p.Length)
	if p.Length >= PieceSumSize && p.Length <= MaxBlob && p.Offset >= FileHeaderSize && end <= f.size.Load() {
		return f, nil
	}
	err = corrupt.New(f.name, int64(p.Offset), int64(p.Length), "impossible place or length of a piece, in a file of %d bytes", f.size.Load())
	f.release()
	return nil, err
}

// PrefetchPiece asks the processor for the beginning of a piece that will be read soon.
func (s *Store) PrefetchPiece(p Piece) {
	m := s.mappedIn(p.Segment)
	if m == nil || int64(p.Offset)+int64(p.Length) > int64(len(m.data)) || p.Length == 0 {
		return
	}
	prefetch.Near(unsafe.Pointer(&m.data[p.Offset]), linesOf(p.Offset, min(int(p.Length), nearBytes)))
}
