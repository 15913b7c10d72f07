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
//	   the key, then the value, to the end
const (
	pieceHead    = segment.PieceSumSize + 1
	pieceExpires = 1 << 7
	// maxPiece is the length of the longest piece: entries have lengthBits for it.
	maxPiece = 1<<lengthBits - 1
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
	dst = append(dst, key...)
	return append(dst, r.Value...)
}

// parsePiece reads a piece that was verified. Key and value alias it.
func parsePiece(piece []byte, r *record.Record) (key []byte, err error) {
	if len(piece) < pieceHead {
		return nil, fmt.Errorf("record of %d bytes", len(piece))
	}
	kind, rest := piece[segment.PieceSumSize], piece[pieceHead:]
	r.Kind, r.Expiry = record.Kind(kind&^pieceExpires), 0
	if kind&pieceExpires != 0 {
		if len(rest) < 8 {
			return nil, fmt.Errorf("record of %d bytes ends in its expiry", len(piece))
		}
		r.Expiry, rest = binary.LittleEndian.Uint64(rest), rest[8:]
	}
	n, size := binary.Uvarint(rest)
	if size <= 0 || n > record.MaxKey || n > uint64(len(rest)-size) || r.Kind > record.Apart {
		return nil, fmt.Errorf("record of kind %d, with a key of %d bytes in %d", r.Kind, n, len(rest))
	}
	key, r.Value = rest[size:size+int(n)], rest[size+int(n):]
	return key, nil
}
