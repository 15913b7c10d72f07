package value

import (
	"fmt"
	"testing"

	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/test/golden"
	"github.com/pandodb/pando/vfs/osfs"
)

// TestGolden holds the encoding of references and of the payload of an index.
func TestGolden(t *testing.T) {
	plain := Ref{Pointer: segment.Pointer{Segment: 2, Offset: 64, Length: ChunkBytes + 31, Sum: 0x1122334455667788},
		Length: ChunkBytes, Keyspace: 0x0708, Plain: true}
	packed := Ref{Pointer: segment.Pointer{Segment: 2, Offset: 0x100060, Length: 33, Sum: 0x99}, Length: 5, Keyspace: 0x0708}
	index := append(appendIndex(nil, ChunkBytes+5, []Ref{plain, packed}), "key\x03\x00\x00\x00"...)
	if _, err := decodeIndex(index); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("# plain %+v\n% x\n# packed %+v\n% x\n# index of both, for the key \"key\"\n% x\n",
		plain, AppendRef(nil, plain), packed, AppendRef(nil, packed), index)
	golden.Compare(t, "value.txt", got)
}

// A plain value of 100 KB into memory that is there already: one pread and one checksum.
func BenchmarkRead100K(b *testing.B) {
	for _, codec := range []segment.Codec{segment.None, segment.S2} {
		b.Run(fmt.Sprintf("codec=%d", codec), func(b *testing.B) {
			s, err := segment.Open(segment.Options{FS: osfs.New(), Dir: b.TempDir()}, nil, 1)
			must(b, err)
			defer s.Close()
			var refs []Ref
			for i := range 100 {
				r, err := Append(s, 1, codec, []byte{byte(i)}, text(100_000))
				must(b, err)
				refs = append(refs, r)
			}
			dst := make([]byte, 0, 101_000)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := Read(s, dst, refs[i%len(refs)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Putting values of 100 KB, without a sync.
func BenchmarkAppend100K(b *testing.B) {
	s, err := segment.Open(segment.Options{FS: osfs.New(), Dir: b.TempDir()}, nil, 1)
	must(b, err)
	defer s.Close()
	val := noise(100_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Append(s, 1, segment.None, []byte("key"), val); err != nil {
			b.Fatal(err)
		}
	}
}
