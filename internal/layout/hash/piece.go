package hash

import (
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
)

// A record is stored as a piece:
//
//	4  checksum, see package segment
//	1  kind of the record; with pieceExpires an expiry follows
//	8  expiry, where there is one
//	   uvarint: length of the key
//	   uvarint: length of the value
//	   the key, then the value
const (
	pieceHead    = segment.PieceSumSize + 1
	pieceExpires = 1 << 7
)

// appendPiece appends a record as a piece, with room for its checksum.
func appendPiece(dst, key []byte, r *record.Record) []byte {
	kind := byte(r.Kind)
	if r.Expiry != 0 {
		kind |= pieceExpires
	}
	dst = append(dst, 0, 0, 0, 0, kind)
	if r.Expiry != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, r.Expiry)
	}
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	dst = binary.AppendUvarint(dst, uint64(len(r.Value)))
	dst = append(dst, key...)
	return append(dst, r.Value...)
}

// parsePiece reads a piece that was verified. Key and value alias it.
func parsePiece(piece []byte, r *record.Record) (key []byte, err error) {
	key, rest, err := cutPiece(piece, r)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes behind a record", len(rest))
	}
	return key, err
}

// cutPiece reads the first of the pieces in b, and returns those that follow.
func cutPiece(b []byte, r *record.Record) (key, rest []byte, err error) {
	if len(b) < pieceHead {
		return nil, nil, fmt.Errorf("record of %d bytes", len(b))
	}
	kind, rest := b[segment.PieceSumSize], b[pieceHead:]
	r.Kind, r.Expiry = record.Kind(kind&^pieceExpires), 0
	if kind&pieceExpires != 0 {
		if len(rest) < 8 {
			return nil, nil, fmt.Errorf("record of %d bytes ends in its expiry", len(b))
		}
		r.Expiry, rest = binary.LittleEndian.Uint64(rest), rest[8:]
	}
	keyBytes, rest := lengthOf(rest)
	valueBytes, rest := lengthOf(rest)
	if keyBytes > record.MaxKey || valueBytes > uint64(len(rest)) || keyBytes > uint64(len(rest))-valueBytes || r.Kind > record.Apart {
		return nil, nil, fmt.Errorf("record of kind %d, with a key of %d bytes and a value of %d in %d", r.Kind, keyBytes, valueBytes, len(rest))
	}
	end := keyBytes + valueBytes
	key, r.Value = rest[:keyBytes:keyBytes], rest[keyBytes:end:end]
	return key, rest[end:], nil
}

// lengthOf reads a length off the front of b. Where there is none it is longer than anything.
func lengthOf(b []byte) (n uint64, rest []byte) {
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return 1<<64 - 1, nil
	}
	return n, b[size:]
}
