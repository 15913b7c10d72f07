package root

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/pandodb/pando/internal/segment"
)

// Version is the format that this code writes. It knows no older one.
const Version = 1

// The fields of a slot, as docs/format/root.md lists them. Magic, version and checksum stay where they are in all versions.
const (
	offsetMagic        = 0
	offsetVersion      = 16
	offsetReserved     = 20
	offsetGeneration   = 24
	offsetDatabase     = 32
	offsetCatalogue    = 48
	offsetNextSegment  = 68
	offsetLogSegment   = 72
	offsetLogOffset    = 80
	offsetSeq          = 88
	offsetClock        = 96
	offsetPadding      = 104
	offsetSlotChecksum = slotSize - 4

	slotSize = 4096
	magic    = "PANDOROOT\x00\x00\x00\x00\x00\x00\x00"
)

var (
	// ErrNotDatabase is what errors.Is finds when the file was not written by Pando.
	ErrNotDatabase = errors.New("not a Pando database")
	// ErrVersion is what errors.Is finds in a *VersionError.
	ErrVersion = errors.New("database of another format version")
)

// VersionError says that the database was written by a version of Pando that this one does not understand.
type VersionError struct {
	Found, Supported uint32
}

// Error tells both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the database has format %d; this version of Pando knows up to %d", e.Found, e.Supported)
}

// Is makes errors.Is(err, ErrVersion) true.
func (e *VersionError) Is(target error) bool { return target == ErrVersion }

// Position is a place in the log: the wal.Position of the same fields.
type Position struct {
	Segment uint64
	Offset  int64
}

// Slot is what is in force: where everything settled can be reached from, and from where on the log has to be replayed.
type Slot struct {
	Version     uint32 // format of the database; set by Create and Store
	Generation  uint64 // grows by one with each Store; set by Create and Store
	Database    [16]byte
	Catalogue   segment.Pointer // zero: nothing is settled yet
	NextSegment uint32          // the next segment gets this number or a higher one
	Log         Position
	Seq         uint64 // every commit up to this one is settled
	Clock       uint64 // Unix milliseconds; the highest time that was acted upon, so that the clock cannot be seen going back
}

// castagnoli is the table for the checksum of slots. It is never written after it was made.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendSlot appends the slotSize bytes of s to dst.
func appendSlot(dst []byte, s Slot) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, s.Version)
	dst = append(dst, make([]byte, offsetGeneration-offsetReserved)...)
	dst = binary.LittleEndian.AppendUint64(dst, s.Generation)
	dst = append(dst, s.Database[:]...)
	dst = segment.AppendPointer(dst, s.Catalogue)
	dst = binary.LittleEndian.AppendUint32(dst, s.NextSegment)
	dst = binary.LittleEndian.AppendUint64(dst, s.Log.Segment)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Log.Offset))
	dst = binary.LittleEndian.AppendUint64(dst, s.Seq)
	dst = binary.LittleEndian.AppendUint64(dst, s.Clock)
	dst = append(dst, make([]byte, offsetSlotChecksum-offsetPadding)...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

var (
	errMagic    = errors.New("no magic number of a root slot")
	errShort    = errors.New("the slot is cut short")
	errChecksum = errors.New("checksum mismatch")
)

// decodeSlot reads a slot. A slot of another version is an error only after it was found to be undamaged.
func decodeSlot(b []byte) (Slot, error) {
	if len(b) >= len(magic) && string(b[offsetMagic:offsetVersion]) != magic {
		return Slot{}, errMagic
	}
	if len(b) < slotSize {
		return Slot{}, errShort
	}
	if binary.LittleEndian.Uint32(b[offsetSlotChecksum:]) != crc32.Checksum(b[:offsetSlotChecksum], castagnoli) {
		return Slot{}, errChecksum
	}
	if found := binary.LittleEndian.Uint32(b[offsetVersion:]); found != Version {
		return Slot{}, &VersionError{Found: found, Supported: Version}
	}
	catalogue, err := segment.DecodePointer(b[offsetCatalogue:])
	if err != nil {
		return Slot{}, fmt.Errorf("catalogue: %w", err)
	}
	s := Slot{
		Version:     Version,
		Generation:  binary.LittleEndian.Uint64(b[offsetGeneration:]),
		Catalogue:   catalogue,
		NextSegment: binary.LittleEndian.Uint32(b[offsetNextSegment:]),
		Log: Position{
			Segment: binary.LittleEndian.Uint64(b[offsetLogSegment:]),
			Offset:  int64(binary.LittleEndian.Uint64(b[offsetLogOffset:])),
		},
		Seq:   binary.LittleEndian.Uint64(b[offsetSeq:]),
		Clock: binary.LittleEndian.Uint64(b[offsetClock:]),
	}
	copy(s.Database[:], b[offsetDatabase:])
	if s.Log.Offset < 0 || !zero(b[offsetReserved:offsetGeneration]) || !zero(b[offsetPadding:offsetSlotChecksum]) {
		return Slot{}, errors.New("fields that cannot be")
	}
	return s, nil
}

// zero looks at 32 bytes at a time: most of a slot is this.
func zero(b []byte) bool { return bytes.Count(b, []byte{0}) == len(b) }
