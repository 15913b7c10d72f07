package segment

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/columns"
)

// columnCoder is a coder of columns with its buffers.
type columnCoder struct {
	columns.Coder
	cols, rest []byte
}

func (c *codecs) columnCoder() *columnCoder {
	if k, ok := c.coders.Get().(*columnCoder); ok {
		return k
	}
	return new(columnCoder)
}

// SizeByColumns returns how many bytes a payload takes by columns and how many with zstd alone; the former is 0 when it is no page
// that goes by columns.
func (s *Store) SizeByColumns(raw []byte) (byColumns, zstd int, err error) {
	payload, used, err := s.codecs.appendStored(nil, Zstd, 0, thorough, raw)
	if err != nil || used != Zstd {
		return 0, len(payload), err
	}
	zstd = len(payload)
	if payload, ok := s.codecs.tryColumns(payload, 0, thorough, raw); ok {
		byColumns = len(payload)
	}
	return byColumns, zstd, nil
}

// tryColumns replaces dst[start:], the payload for raw, by the one of Columns when raw is a page and that is shorter.
func (c *codecs) tryColumns(dst []byte, start int, e effort, raw []byte) ([]byte, bool) {
	k := c.columnCoder()
	defer c.coders.Put(k)
	var ok bool
	if k.cols, k.rest, ok = k.Split(k.cols[:0], k.rest[:0], raw); !ok || len(k.cols) >= len(dst)-start {
		return dst, false
	}
	rest := uint64(len(k.rest)) << 1
	if len(k.rest) >= minCompress {
		encoder, err := c.plain.forEncoding(e)
		if err != nil {
			return dst, false
		}
		whole := len(k.rest)
		if k.rest = encoder.EncodeAll(k.rest, k.rest); len(k.rest)-whole < whole {
			k.rest, rest = k.rest[whole:], rest|1
		} else {
			k.rest = k.rest[:whole]
		}
	}
	var room [2 * binary.MaxVarintLen64]byte
	lengths := binary.AppendUvarint(binary.AppendUvarint(room[:0], uint64(len(k.cols))), rest)
	if len(lengths)+len(k.cols)+len(k.rest) >= len(dst)-start {
		return dst, false
	}
	return append(append(append(dst[:start], lengths...), k.cols...), k.rest...), true
}

// decodeColumns fills dst with the page of a payload.
func (c *codecs) decodeColumns(dst, payload []byte) error {
	cols, n := binary.Uvarint(payload)
	if n <= 0 {
		return errors.New("columns without a length")
	}
	payload = payload[n:]
	rest, n := binary.Uvarint(payload)
	if n <= 0 || cols > uint64(len(payload)-n) || rest>>1 > uint64(len(dst)) {
		return errors.New("columns of impossible lengths")
	}
	left := payload[n+int(cols):]
	k := c.columnCoder()
	defer c.coders.Put(k)
	if rest&1 != 0 {
		k.rest = resize(k.rest, int(rest>>1))
		if err := c.plain.expand(k.rest, left); err != nil {
			return err
		}
		left = k.rest
	}
	if uint64(len(left)) != rest>>1 {
		return fmt.Errorf("a rest of %d bytes instead of %d", len(left), rest>>1)
	}
	return k.Decode(dst, payload[n:n+int(cols)], left)
}
