package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// What compressed files begin with, and text never does.
var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// skippableMagic begins, behind a byte from 0x50 to 0x5f, a frame that holds no data. pzstd writes one in front.
const skippableMagic = "\x2a\x4d\x18"

// isZstd reports whether a file that begins so is one of zstd.
func isZstd(head []byte) bool {
	return bytes.HasPrefix(head, zstdMagic) || len(head) == len(zstdMagic) && head[0]&0xf0 == 0x50 && string(head[1:]) == skippableMagic
}

// maxWindow bounds the memory that a zstd stream may ask for: what zstd --long=27 writes can be read.
const maxWindow = 128 << 20

// Decompress returns a reader of the plain text in r, which is plain, gzip or zstd: the first bytes tell.
func Decompress(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 256<<10)
	head, err := b.Peek(len(zstdMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		m := &members{in: b}
		if err := m.begin(); err != nil {
			return nil, fmt.Errorf("read gzip: %w", err)
		}
		return m, nil
	case isZstd(head):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("read zstd: %w", err)
		}
		return z, nil
	}
	return b, nil
}

// members gives the text of a gzip file, member by member. It does not leave that to gzip.Reader, to which a file that is cut off in the
// name within a member's header has ended in front of that member.
type members struct {
	in   *bufio.Reader
	text gzip.Reader // of the present one
}

// begin reads the header of the next member.
func (m *members) begin() error {
	err := m.text.Reset(m.in)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	m.text.Multistream(false)
	return err
}

// Read implements io.Reader.
func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.text.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
		if _, err := m.in.Peek(1); err != nil {
			return 0, err
		}
		if err := m.begin(); err != nil {
			return 0, err
		}
	}
}
