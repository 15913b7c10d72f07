package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// FuzzRead reads hostile bytes: they are messages, malformed, or cut short.
func FuzzRead(f *testing.F) {
	f.Add(AppendMsg(nil, 1, 2, 0, body("x")))
	f.Add(AppendChecked(nil, 1, 2, 0, body("x")))
	for c := Uncompressed; c <= Zstd; c++ {
		m, err := AppendCompressed(nil, AppendMsg(nil, 1, 2, 0, body("x")), c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b))
		for {
			_, err := r.Read()
			if err == nil {
				continue
			}
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatal(err)
			}
			return
		}
	})
}
