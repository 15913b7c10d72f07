package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// leafPage is a page of n records of one kind, as package page writes it, a tenth of which have a text of some length.
func leafPage(n int) []byte {
	rng := rand.New(rand.NewPCG(3, 4))
	b := append(binary.AppendUvarint(nil, uint64(n)), 0)
	for i := range n {
		value := binary.BigEndian.AppendUint32([]byte{3, 0, byte(rng.IntN(60)), byte(rng.IntN(256))}, uint32(i*60))
		if i%10 == 0 {
			value = append(value, text(uint64(i), rng.IntN(100))...)
		}
		key := fmt.Sprintf("%06d", i)
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(len(key))), uint64(len(value))<<3)
		b = append(append(b, key...), value...)
	}
	return b
}

func TestColumnsAreUsedWhereTheyAreShorter(t *testing.T) {
	s := emptyStore(t)
	must(t, s.AddDictionary(1, text(7, 2000)))
	w := s.NewWriter(Nodes, 0)
	for _, c := range []struct {
		name       string
		dictionary uint16
		raw        []byte
		want       Codec
	}{
		{"a page of records", 0, leafPage(2000), Columns},
		{"a page of records, with a dictionary", 1, leafPage(2000), Columns},
		{"text", 0, text(1, 5000), Zstd},
		{"text, with a dictionary", 1, text(1, 5000), ZstdDictionary},
		{"noise", 0, noise(1, 5000), None},
		{"nothing", 0, nil, None},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := w.Append(KindLeaf, 1, Columns, c.dictionary, c.raw)
			must(t, err)
			must(t, w.Flush())
			var buf Buffer
			raw, h, err := s.Read(p, &buf)
			if err != nil || !bytes.Equal(raw, c.raw) {
				t.Fatalf("came back changed: %v", err)
			}
			if h.Codec != c.want || (h.Dictionary != 0) != (c.want == ZstdDictionary) {
				t.Errorf("codec %d, dictionary %d, want codec %d", h.Codec, h.Dictionary, c.want)
			}
		})
	}
	byColumns, zstd, err := s.SizeByColumns(leafPage(2000))
	if err != nil || byColumns == 0 || byColumns > zstd*2/3 {
		t.Errorf("%d bytes by columns, %d with zstd, %v", byColumns, zstd, err)
	}
	if byColumns, zstd, err := s.SizeByColumns(text(1, 5000)); err != nil || byColumns != 0 || zstd == 0 {
		t.Errorf("text: %d bytes by columns, %d with zstd, %v", byColumns, zstd, err)
	}
}
