package value

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/parts"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
)

// forgeParts writes a value, without a key, that is stored by parts, as only leaves are, and verifies.
func forgeParts(t *testing.T, s *segment.Store, fsys vfs.FS) (r Ref, val []byte) {
	t.Helper()
	var b page.Builder
	for i := range 100 {
		ends := append(noise(100), 0, 0, 0, 0) // the last one with the length of the key
		must(t, b.Add(fmt.Appendf(nil, "%03d", i), record.Record{Kind: record.Inline, Value: ends}))
	}
	raw := b.Append(nil)
	stored, ok := parts.Append(nil, raw)
	if !ok {
		t.Fatal("the page has no parts")
	}
	p, err := s.AppendValue(1, segment.None, stored) // which makes the place
	must(t, err)
	header := make([]byte, segment.HeaderSize)
	header[8], header[9], header[12] = byte(segment.KindValue), byte(segment.Parts), 1
	binary.LittleEndian.PutUint32(header[16:], uint32(len(stored)))
	binary.LittleEndian.PutUint32(header[20:], uint32(len(raw)))
	covered, err := parts.Covered(stored, len(stored))
	must(t, err)
	place := xxh3.Hash(make([]byte, 16)) ^ (uint64(p.Segment)<<32 | uint64(p.Offset))
	p.Sum = xxh3.HashSeed(stored[:covered], xxh3.HashSeed(header[8:], place))
	binary.LittleEndian.PutUint64(header, p.Sum)
	f, err := fsys.OpenReadWrite(filepath.Join(testDir, segment.FilePath(p.Segment)))
	must(t, err)
	_, err = f.WriteAt(header, int64(p.Offset))
	must(t, err)
	must(t, f.Close())
	return Ref{Pointer: p, Length: uint64(len(raw) - tailSize), Keyspace: 1}, raw[:len(raw)-tailSize]
}

// A value that is stored in a way in which none is written is read as it verifies, or not at all: never what was in the reader's memory.
func TestValueStoredByParts(t *testing.T) {
	s, fsys := newStore(t)
	r, want := forgeParts(t, s, fsys)
	for _, room := range []int{0, len(want), len(want) + 2*usualKey} {
		before := bytes.Repeat([]byte("?"), room)
		got, err := Read(s, before[:0], r)
		if err == nil && !bytes.Equal(got, want) {
			t.Errorf("with room for %d bytes the value is %.40q..., want %.40q...", room, got, want)
		}
	}
}
