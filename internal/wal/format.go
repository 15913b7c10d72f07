package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strconv"
	"strings"
)

// The layout of a segment file; docs/format/wal.md has the same names.
//
//	0                     header, in a block of its own
//	firstFrame            frames, each at a multiple of alignment
//	size - blockSize      a copy of the header, in a block of its own
const (
	blockSize    = 4096
	firstFrame   = blockSize
	headerLength = 128
	alignment    = 8
	version      = 1
	magic        = "PANDOLOG"
	suffix       = ".wal"
	nameDigits   = 8
)

// Offsets in the header of a segment.
const (
	offMagic       = 0
	offVersion     = 8
	offDatabase    = 16
	offSegment     = 32
	offSalt        = 40
	offSize        = 48
	offPrevSegment = 56
	offPrevSalt    = 64
	offPrevEnd     = 72
	offDurable     = 80
	offHeaderCRC   = headerLength - 4
)

// The layout of a frame.
const (
	offLength     = 0
	offPayloadCRC = 4
	offSeq        = 8
	offClaim      = 16
	offSpanKind   = 24 // span in the low 24 bits, kind in the high 8
	offKind       = offSpanKind + 3
	offFrameCRC   = 28
	frameHeader   = 32
	maxSpan       = 1<<24 - 1 // also stands for everything above

	// minRoom is the least that must be left in a segment for another frame. Less is never used, so that a reader knows
	// without looking that the log goes on in the next segment.
	minRoom = 2 * frameHeader
)

// noSegment stands for the predecessor of a log's first segment.
const noSegment = ^uint64(0)

// kind says which part of a record a frame is. The numbers are on disk.
type kind uint8

const (
	kindFull   kind = 1
	kindFirst  kind = 2
	kindMiddle kind = 3
	kindLast   kind = 4
	kindMark   kind = 5 // no record: only carries a claim about what is durable
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// place is a Position in one word, ordered like the log; it is how positions are stored on disk and in atomics.
type place uint64

func at(segment uint64, offset int64) place { return place(segment<<32 | uint64(offset)) }

func (p place) segment() uint64    { return uint64(p) >> 32 }
func (p place) offset() int64      { return int64(p & (1<<32 - 1)) }
func (p place) position() Position { return Position{Segment: p.segment(), Offset: p.offset()} }

func (p Position) place() place {
	if p.Offset < firstFrame {
		return at(p.Segment, firstFrame)
	}
	return at(p.Segment, p.Offset)
}

// header describes one use of a segment file.
type header struct {
	database    [16]byte
	segment     uint64
	salt        uint64
	size        int64
	prevSegment uint64
	prevSalt    uint64
	prevEnd     int64 // where the predecessor ends; 0: where it is full
	durable     place // everything below was durable when this was written
}

// limit is the end of the room for frames.
func (h *header) limit() int64 { return h.size - blockSize }

// seed starts the checksum of the frame header at offset. It differs for each use of a file and each place in it, so that
// neither stale nor misplaced frames verify. The multiplier is that of the splitmix64 generator (Vigna).
func (h *header) seed(offset int64) uint32 {
	x := (h.salt ^ uint64(offset)) * 0x9e3779b97f4a7c15
	return uint32(x>>32) ^ uint32(x)
}

func (h *header) encode() []byte {
	b := make([]byte, headerLength)
	le := binary.LittleEndian
	copy(b[offMagic:], magic)
	le.PutUint32(b[offVersion:], version)
	copy(b[offDatabase:], h.database[:])
	le.PutUint64(b[offSegment:], h.segment)
	le.PutUint64(b[offSalt:], h.salt)
	le.PutUint64(b[offSize:], uint64(h.size))
	le.PutUint64(b[offPrevSegment:], h.prevSegment)
	le.PutUint64(b[offPrevSalt:], h.prevSalt)
	le.PutUint64(b[offPrevEnd:], uint64(h.prevEnd))
	le.PutUint64(b[offDurable:], uint64(h.durable))
	le.PutUint32(b[offHeaderCRC:], crc32.Checksum(b[:offHeaderCRC], castagnoli))
	return b
}

var errNoHeader = errors.New("no header")

// decodeHeader reads a header. It returns errNoHeader for bytes that are none, and ErrVersion for one of another format.
func decodeHeader(b []byte) (header, error) {
	le := binary.LittleEndian
	if len(b) < headerLength || string(b[offMagic:offMagic+len(magic)]) != magic {
		return header{}, errNoHeader
	}
	if crc32.Checksum(b[:offHeaderCRC], castagnoli) != le.Uint32(b[offHeaderCRC:]) {
		return header{}, errNoHeader
	}
	if v := le.Uint32(b[offVersion:]); v != version {
		return header{}, fmt.Errorf("%w: found %d, supported %d", ErrVersion, v, version)
	}
	h := header{
		database:    [16]byte(b[offDatabase:offSegment]),
		segment:     le.Uint64(b[offSegment:]),
		salt:        le.Uint64(b[offSalt:]),
		size:        int64(le.Uint64(b[offSize:])),
		prevSegment: le.Uint64(b[offPrevSegment:]),
		prevSalt:    le.Uint64(b[offPrevSalt:]),
		prevEnd:     int64(le.Uint64(b[offPrevEnd:])),
		durable:     place(le.Uint64(b[offDurable:])),
	}
	sane := h.segment < 1<<32 && h.size >= MinSegmentBytes && h.size <= MaxSegmentBytes && h.size%blockSize == 0 &&
		(h.prevSegment == noSegment || h.prevSegment < h.segment) &&
		(h.prevEnd == 0 || h.prevEnd >= firstFrame && h.prevEnd <= MaxSegmentBytes && h.prevEnd%alignment == 0)
	if !sane {
		return header{}, errNoHeader
	}
	return h, nil
}

// frame is a decoded frame header.
type frame struct {
	length int64
	sum    uint32
	seq    uint64
	claim  place // everything below was durable when this was written
	span   uint32
	kind   kind
}

// padded is the room that a payload of n bytes takes.
func padded(n int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }

// room is what the whole frame takes.
func (f *frame) room() int64 { return frameHeader + padded(f.length) }

// put writes the frame header into b, which lies at offset of segment h.
func (f *frame) put(b []byte, h *header, offset int64) {
	le := binary.LittleEndian
	b = b[:frameHeader]
	// Whole words, because the checksum reads whole words: a processor has what was stored at once only if it is read back
	// as it was written.
	le.PutUint64(b[offLength:], uint64(f.length)|uint64(f.sum)<<32)
	le.PutUint64(b[offSeq:], f.seq)
	le.PutUint64(b[offClaim:], uint64(f.claim))
	le.PutUint32(b[offSpanKind:], f.span|uint32(f.kind)<<24)
	le.PutUint32(b[offFrameCRC:], crc32.Update(h.seed(offset), castagnoli, b[:offFrameCRC]))
}

// decodeFrame reads the frame header b, which lies at offset of segment h. A frame reaches at most to limit. Only the header
// is verified; see payloadMatches.
func decodeFrame(b []byte, h *header, offset, limit int64) (frame, bool) {
	if len(b) < frameHeader {
		return frame{}, false
	}
	le := binary.LittleEndian
	b = b[:frameHeader]
	spanKind := le.Uint32(b[offSpanKind:])
	f := frame{length: int64(le.Uint32(b[offLength:])), kind: kind(spanKind >> 24)}
	// These comparisons come first because they are cheap: the search for later frames looks at every aligned offset.
	if f.kind < kindFull || f.kind > kindMark || offset+f.room() > limit || f.kind == kindMark && f.length != 0 {
		return frame{}, false
	}
	f.claim = place(le.Uint64(b[offClaim:]))
	if f.claim > at(h.segment, offset) {
		return frame{}, false
	}
	if crc32.Update(h.seed(offset), castagnoli, b[:offFrameCRC]) != le.Uint32(b[offFrameCRC:]) {
		return frame{}, false
	}
	f.sum = le.Uint32(b[offPayloadCRC:])
	f.seq = le.Uint64(b[offSeq:])
	f.span = spanKind & maxSpan
	return f, true
}

func (f *frame) payloadMatches(payload []byte) bool {
	return crc32.Checksum(payload, castagnoli) == f.sum
}

// spanOf is the distance between two records that follow each other, as a frame carries it.
func spanOf(seq, before uint64) uint32 { return uint32(min(seq-before, maxSpan)) }

// before is the sequence number of the record before the one that f begins, as far as f tells; at least it is no higher.
func (f *frame) before() uint64 {
	switch {
	case f.kind == kindMiddle || f.kind == kindLast || f.kind == kindMark:
		return f.seq
	case f.span == maxSpan || uint64(f.span) > f.seq:
		return f.seq - min(f.seq, 1)
	}
	return f.seq - uint64(f.span)
}

// baseName is the name of a segment's file: its number in eight hexadecimal digits, so that names sort as numbers do.
func baseName(segment uint64) string { return fmt.Sprintf("%0*x%s", nameDigits, segment, suffix) }

func (o *Options) path(segment uint64) string { return filepath.Join(o.Dir, baseName(segment)) }

// parseName is the inverse of baseName.
func parseName(name string) (segment uint64, ok bool) {
	digits, found := strings.CutSuffix(name, suffix)
	if !found || len(digits) != nameDigits {
		return 0, false
	}
	segment, err := strconv.ParseUint(digits, 16, 32)
	return segment, err == nil && name == baseName(segment)
}
