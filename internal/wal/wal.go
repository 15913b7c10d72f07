// Package wal is the write-ahead log: numbered records, appended in order into preallocated segment files, recycled when the
// data that they describe has settled.
//
// It promises: a record that Append returned for survives the end of the process; one that Sync covered survives a power cut
// on hardware that honours it; what recovery delivers is always a prefix of what was appended, each record whole. A record
// that was synced and cannot be read back is a *corrupt.Error, never a silent end of the log. After the first failed sync
// nothing succeeds any more (ErrFailed) until the log is recovered again. A full disk is an error before anything of the
// record was written; the log goes on when there is space again.
//
// It never overwrites a record that recovery may need, never believes bytes because of where they lie (a salt, new for each
// use of a file, is in the checksum of each frame), and starts no goroutine.
//
// Cost: Append copies the payload into a mapping and computes one checksum of it: no allocation, no lock and no system
// call, except where a segment is full (which Prepare does ahead of time), in plain mode (one write) and for payloads of 8 KiB and more
// (three, two of which are short), and for each 128 KiB of a new file (one write of zeroes). Sync is one fdatasync for each segment
// that was written since the last one, and a call for each MiB of long records. Recovery reads each segment once, one in memory at a
// time.
//
// Append, Shrink and Close are called by one goroutine at a time; everything else may be called at any time.
// The bytes are described in docs/format/wal.md.
package wal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pandodb/pando/vfs"
)

var (
	// ErrFailed is what errors.Is finds in everything that is returned after a sync or an access to the mapping failed.
	// The first cause is wrapped too.
	ErrFailed = errors.New("the log has failed and must be recovered")
	// ErrRecycled says that records which a Reader still wanted are gone.
	ErrRecycled = errors.New("this part of the log has been recycled")
	// ErrClosed says that the log has been closed.
	ErrClosed = errors.New("the log is closed")
	// ErrTooLarge says that a payload exceeds MaxPayload.
	ErrTooLarge = errors.New("record is too large for the log")
	// ErrCut is what a callback of Recover or Salvage returns for a record that refers to something which did not survive. Such a
	// record ends the log. To Recover it is corruption if it is known to have been synced.
	ErrCut = errors.New("record refers to something that did not survive")
	// ErrVersion says that a segment was written in a format that this version does not know.
	ErrVersion = errors.New("log format is not supported")
)

// Limits and defaults.
const (
	MaxPayload           = 64 << 20
	DefaultSegmentBytes  = 16 << 20
	MinSegmentBytes      = 16 << 10
	MaxSegmentBytes      = 1 << 30
	DefaultSpareSegments = 2
)

// Position is a place in the log. Positions of one log are ordered as its records are. An Offset of 0 means the first record
// of the segment.
type Position struct {
	Segment uint64 // below 2^32
	Offset  int64  // in the file of the segment
}

// Less reports whether p lies before q.
func (p Position) Less(q Position) bool {
	return p.Segment < q.Segment || p.Segment == q.Segment && p.Offset < q.Offset
}

// String shows a position as segment:offset, the segment as in its file name.
func (p Position) String() string { return fmt.Sprintf("%08x:%d", p.Segment, p.Offset) }

// Options says where a log lies and how it works. Database, Dir and FS must be set.
type Options struct {
	FS       vfs.FS
	Dir      string // must exist; belongs to the log alone
	Database [16]byte

	SegmentBytes  int64 // size of a file, a multiple of 4,096; 0: DefaultSegmentBytes
	FirstBytes    int64 // size of the first file; each is twice as large as the one before, or fits four records like the one that did not fit, up to SegmentBytes; 0: SegmentBytes
	Plain         bool  // write instead of mapping, which is also the fallback where files cannot be mapped
	KeepBytes     int64 // keep this much of the recycled log for readers
	SpareSegments int   // keep so many recycled files for reuse; 0: DefaultSpareSegments, negative: none

	// SettleLater leaves it to the first Sync to make durable what Recover delivers. Until then Synced and Unsynced tell of it as of
	// what was appended since the last one.
	SettleLater bool

	// Settling is called, when set, before Recover makes durable what it delivered: what that refers to has to be durable first.
	Settling func() error

	// Seq is the sequence number of the last record before the position at which Recover or Replay starts, or before
	// the first record of a log made by Create. 0: not known, or none.
	Seq uint64
	// Salt gives the random number of a new segment. nil: crypto/rand.
	Salt func() uint64
}

// Recovered tells what recovery found.
type Recovered struct {
	Records int64
	LastSeq uint64    // of the last record, or Options.Seq when there was none
	Bytes   int64     // of payload
	End     Position  // where the log ends
	Cut     *Position // not nil: remains of records that were never synced lay here, and were cut off
}

// withDefaults checks o and fills its zero values in.
func (o Options) withDefaults() (Options, error) {
	if o.FS == nil {
		return o, errors.New("log: no file system given")
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.SegmentBytes < MinSegmentBytes || o.SegmentBytes > MaxSegmentBytes || o.SegmentBytes%blockSize != 0 {
		return o, fmt.Errorf("log: segment size %d: want a multiple of %d from %d to %d", o.SegmentBytes, blockSize, MinSegmentBytes, MaxSegmentBytes)
	}
	if o.FirstBytes == 0 {
		o.FirstBytes = o.SegmentBytes
	}
	if o.FirstBytes < MinSegmentBytes || o.FirstBytes > o.SegmentBytes || o.FirstBytes%blockSize != 0 {
		return o, fmt.Errorf("log: first segment of %d bytes: want a multiple of %d from %d to %d", o.FirstBytes, blockSize, MinSegmentBytes, o.SegmentBytes)
	}
	if o.SpareSegments == 0 {
		o.SpareSegments = DefaultSpareSegments
	}
	if o.Salt == nil {
		o.Salt = randomSalt
	}
	return o, nil
}

func randomSalt() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails, by its documentation
	return binary.LittleEndian.Uint64(b[:])
}
