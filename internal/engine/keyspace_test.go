package engine

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
)

func TestKeyspaceOptionsAreGolden(t *testing.T) {
	for _, c := range []struct {
		o          KeyspaceOptions
		dictionary uint16
		want       string
	}{
		{KeyspaceOptions{}, 0, "01" + "00" + "00" + "00" + "00000000" + "0000"},
		{KeyspaceOptions{Layout: Hash, Codec: segment.Zstd, OwnCodec: true, LeafBytes: 32 << 10}, 7, "01" + "02" + "02" + "01" + "00800000" + "0700"},
		{KeyspaceOptions{NoFilters: true}, 0, "01" + "00" + "00" + "02" + "00000000" + "0000"},
		{KeyspaceOptions{Codec: segment.S2, OwnCodec: true, NoFilters: true}, 0, "01" + "00" + "01" + "03" + "00000000" + "0000"},
	} {
		b := c.o.encode(c.dictionary)
		if got := hex.EncodeToString(b); got != c.want {
			t.Errorf("%+v: encoded as %s, want %s", c.o, got, c.want)
		}
		o, d, err := decodeOptions(b)
		if err != nil || o != c.o || d != c.dictionary {
			t.Errorf("%+v: decoded as %+v, dictionary %d, %v", c.o, o, d, err)
		}
		for n := range b {
			if _, _, err := decodeOptions(b[:n]); !errors.Is(err, corrupt.Err) {
				t.Errorf("cut to %d bytes: %v", n, err)
			}
		}
	}
}

func FuzzDecodeOptions(f *testing.F) {
	f.Add(KeyspaceOptions{LeafBytes: 4096}.encode(3))
	f.Add(KeyspaceOptions{NoFilters: true}.encode(0))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, d, err := decodeOptions(b)
		if err == nil && !bytes.Equal(o.encode(d), b) {
			t.Errorf("%x decodes to %+v, %d, which is encoded otherwise", b, o, d)
		}
	})
}
