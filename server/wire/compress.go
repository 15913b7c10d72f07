package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// Compressor is how a message is compressed. The numbers are the protocol's.
type Compressor uint8

// The compressors.
const (
	Uncompressed Compressor = iota
	Snappy
	Zlib
	Zstd
)

// CompressorOf returns the compressor with a name of the handshake.
func CompressorOf(name string) (Compressor, bool) {
	switch name {
	case "snappy":
		return Snappy, true
	case "zlib":
		return Zlib, true
	case "zstd":
		return Zstd, true
	}
	return Uncompressed, false
}

// String returns the name in the handshake.
func (c Compressor) String() string {
	switch c {
	case Uncompressed:
		return "noop"
	case Snappy:
		return "snappy"
	case Zlib:
		return "zlib"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("compressor %d", uint8(c))
}

// Coders are expensive to make. Those of zstd may be used by many at once, and never take more than a message.
var (
	zstdWriters = sync.Pool{New: func() any {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
		return &coder[*zstd.Encoder]{w, err}
	}}
	zstdReaders = sync.Pool{New: func() any {
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20), zstd.WithDecodeAllCapLimit(true))
		return &coder[*zstd.Decoder]{r, err}
	}}
	zlibWriters = sync.Pool{New: func() any { return zlib.NewWriter(io.Discard) }}
	zlibReaders sync.Pool // of io.ReadCloser, which are zlib.Resetter: a reader cannot be made without something to read
)

type coder[T any] struct {
	coder T
	err   error
}

// decompress appends what src holds, which must be exactly size bytes.
func (c Compressor) decompress(dst, src []byte, size int) ([]byte, error) {
	var err error
	switch c {
	case Uncompressed:
		dst = append(dst, src...)
	case Snappy:
		var n int
		const ratio = 22 // no element of three bytes says more than 64
		if n, err = snappy.DecodedLen(src); err == nil && (n != size || n/ratio > len(src)) {
			err = fmt.Errorf("%d bytes say that they are %d", len(src), n)
		}
		if err == nil {
			dst, err = snappy.Decode(dst[:cap(dst)], src)
		}
	case Zlib:
		dst, err = inflate(dst, src, size)
	case Zstd:
		dst, err = unpackZstd(dst, src, size)
	default:
		err = errors.New("unknown compressor")
	}
	if err == nil && len(dst) != size {
		err = fmt.Errorf("%d bytes inside, where it says %d", len(dst), size)
	}
	if err != nil {
		return dst[:0], fmt.Errorf("%w: %s: %w", ErrMalformed, c, err)
	}
	return dst, nil
}

// unpackZstd makes room for size bytes and not one more, and only if the frame does not say itself that it holds something else.
func unpackZstd(dst, src []byte, size int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(src); err != nil {
		return dst, err
	}
	if h.HasFCS && h.FrameContentSize != uint64(size) {
		return dst, fmt.Errorf("the frame says that it holds %d bytes, the message %d", h.FrameContentSize, size)
	}
	z := zstdReaders.Get().(*coder[*zstd.Decoder])
	if z.err != nil {
		return dst, z.err
	}
	defer zstdReaders.Put(z)
	if cap(dst) < size {
		dst = make([]byte, 0, size)
	}
	out, err := z.coder.DecodeAll(src, dst[:0:size])
	if err != nil {
		return dst, err
	}
	return out, nil
}

// inflate makes room for size bytes and not one more, and only if src can hold as many.
func inflate(dst, src []byte, size int) ([]byte, error) {
	const ratio = 1032 // no two bits of deflate say more than 258 bytes
	if size/ratio > len(src) {
		return dst, fmt.Errorf("%d bytes say that they are %d", len(src), size)
	}
	r, pooled := zlibReaders.Get().(io.ReadCloser)
	var err error
	if pooled {
		err = r.(zlib.Resetter).Reset(bytes.NewReader(src), nil)
	} else {
		r, err = zlib.NewReader(bytes.NewReader(src))
	}
	if err != nil {
		return dst, err
	}
	if cap(dst) <= size {
		dst = make([]byte, 0, size+1)
	}
	n := 0
	for n <= size && err == nil { // one byte more than there should be, so that the end is seen, and what checks it
		var read int
		read, err = r.Read(dst[n : size+1])
		n += read
	}
	if err == io.EOF {
		err = nil
	}
	if err = errors.Join(err, r.Close()); err == nil {
		zlibReaders.Put(r)
	}
	return dst[:n], err
}

// AppendCompressed appends an OP_COMPRESSED that holds message, a complete one.
func AppendCompressed(dst, message []byte, c Compressor) ([]byte, error) {
	from := len(dst)
	dst = append(dst, message[:HeaderBytes]...)
	binary.LittleEndian.PutUint32(dst[from+12:], uint32(OpCompressed))
	dst = append(dst, message[12:16]...) // the opcode of what is inside
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(message)-HeaderBytes))
	dst = append(dst, byte(c))
	var err error
	switch body := message[HeaderBytes:]; c {
	case Uncompressed:
		dst = append(dst, body...)
	case Snappy:
		dst = append(dst, snappy.Encode(nil, body)...)
	case Zlib:
		b := bytes.NewBuffer(dst)
		w := zlibWriters.Get().(*zlib.Writer)
		w.Reset(b)
		_, err = w.Write(body)
		err = errors.Join(err, w.Close())
		w.Reset(io.Discard) // so that it does not keep the answer
		zlibWriters.Put(w)
		dst = b.Bytes()
	case Zstd:
		z := zstdWriters.Get().(*coder[*zstd.Encoder])
		if err = z.err; err == nil {
			dst = z.coder.EncodeAll(body, dst)
			zstdWriters.Put(z)
		}
	default:
		err = errors.New("unknown compressor")
	}
	if err != nil {
		return dst[:from], fmt.Errorf("compress a message with %s: %w", c, err)
	}
	binary.LittleEndian.PutUint32(dst[from:], uint32(len(dst)-from))
	return dst, nil
}
