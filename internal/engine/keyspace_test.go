package engine

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
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

// A root has the keyspaces of its moment, whatever came behind it while it was written.
func TestKeyspacesAtACommand(t *testing.T) {
	k := newKeyspaces()
	k.restore(Spec{ID: 1, Name: DefaultName}, 0)
	k.nextID = 2
	k.create(Spec{ID: 2, Name: "a"}, 10)
	k.create(Spec{ID: 3, Name: "b"}, 20)
	k.drop(2, 30)
	k.create(Spec{ID: 4, Name: "a"}, 40)
	k.drop(4, 50)
	check := func(seq uint64, next uint32, want ...uint32) {
		t.Helper()
		list, n := k.at(seq)
		var got []uint32
		for _, ks := range list {
			got = append(got, ks.ID)
		}
		if !slices.Equal(got, want) || n != next {
			t.Errorf("after command %d: keyspaces %v, next %d; want %v, %d", seq, got, n, want, next)
		}
	}
	check(9, 2, 1)
	check(10, 3, 1, 2)
	check(29, 4, 1, 2, 3)
	check(30, 4, 1, 3)
	check(40, 5, 1, 3, 4)
	check(60, 5, 1, 3)
	k.settled(30)
	check(30, 4, 1, 3)
	check(49, 5, 1, 3, 4)
	k.settled(60)
	check(60, 5, 1, 3)
	if len(k.events) != 0 {
		t.Errorf("%d events are kept behind the root that has them", len(k.events))
	}
}
