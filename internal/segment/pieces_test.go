package segment

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/pandodb/pando/test/golden"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/osfs"
)

// piecesOf makes what AppendPieces takes of contents: room for a checksum, then the content.
func piecesOf(contents ...[]byte) (raw []byte, ends []int) {
	for i, c := range contents {
		raw = append(append(raw, bytes.Repeat([]byte{byte(i)}, PieceSumSize)...), c...) // what stands there does not matter
		ends = append(ends, len(raw))
	}
	return raw, ends
}

// appendPieces appends contents and returns where they lie.
func appendPieces(t testing.TB, w *Writer, keyspace uint32, contents ...[]byte) (list []Piece) {
	t.Helper()
	raw, ends := piecesOf(contents...)
	was := bytes.Clone(raw)
	first, err := w.AppendPieces(keyspace, raw, ends)
	if err != nil || !bytes.Equal(raw, was) {
		t.Fatalf("%v; the input is as it was: %v", err, bytes.Equal(raw, was))
	}
	at := 0
	for _, end := range ends {
		list = append(list, Piece{Segment: first.Segment, Offset: first.Offset + uint32(at), Length: uint32(end - at)})
		at = end
	}
	if list[0] != first {
		t.Fatalf("the first piece lies at %+v, want %+v", first, list[0])
	}
	return list
}

func mustReadPiece(t testing.TB, s *Store, p Piece, keyspace uint32, want []byte) {
	t.Helper()
	got, err := s.ReadPiece(p, keyspace, new(Buffer))
	if err != nil || len(got) != int(p.Length) || !bytes.Equal(got[PieceSumSize:], want) {
		t.Fatalf("%+v: %d bytes, %v", p, len(got), err)
	}
}

func TestGoldenPieces(t *testing.T) {
	fsys := newFS(t)
	s := open(t, testOptions(fsys), nil, goldenID)
	w := s.NewWriter(Nodes, 0x0708)
	list := appendPieces(t, w, 0x0708, []byte("a piece"), nil, []byte("another piece"))
	mustAppend(t, w, KindIndex, None, []byte("an index page"))
	list = append(list, appendPieces(t, w, 0x0708, []byte("a piece"))...)
	mustAppend(t, w, KindIndexDelta, None, []byte("a delta"))
	must(t, w.Sync())
	w.Commit()
	content, err := vfs.ReadFile(fsys, filepath.Join(testDir, DirName, FileName(goldenID)), 1<<20)
	must(t, err)
	text := ""
	for _, p := range list {
		text += fmt.Sprintf("# piece: %+v\n", p)
	}
	golden.Compare(t, "pieces.txt", text+golden.HexDump(content))
}

// TestPieces: pieces are read one by one once they were written; only they count as live.
func TestPieces(t *testing.T) {
	s := emptyStore(t)
	w := s.NewWriter(Nodes, 7)
	leaf := mustAppend(t, w, KindLeaf, None, []byte("a leaf"))
	contents := [][]byte{[]byte("first"), nil, noise(1, 100_000), []byte("last")}
	list := appendPieces(t, w, 7, contents...)
	after := mustAppend(t, w, KindLeaf, None, []byte("another leaf"))
	for _, p := range list {
		_, err := s.ReadPiece(p, 7, new(Buffer))
		wantCorrupt(t, err) // it is not in the file yet
	}
	if got, want := w.Written(), int64(leaf.Length+after.Length)+HeaderSize+100_009+4*PieceSumSize; got != want {
		t.Errorf("%d bytes are written, want %d", got, want)
	}
	must(t, w.Flush())
	live := int64(leaf.Length + after.Length)
	for i, p := range list {
		mustReadPiece(t, s, p, 7, contents[i])
		live += int64(p.Length)
	}
	mustRead(t, s, after, []byte("another leaf"))
	w.Commit()
	if got := s.Segments()[0].Live; got != live {
		t.Errorf("%d bytes are live, want %d", got, live)
	}
	free := s.NewWriter(Nodes, 7)
	free.Free(list[2].Pointer())
	free.Free(leaf)
	free.Commit()
	if got, want := s.Segments()[0].Live, live-int64(list[2].Length)-int64(leaf.Length); got != want {
		t.Errorf("%d bytes are live, want %d", got, want)
	}
	mustReadPiece(t, s, list[2], 7, contents[2]) // for those who still know it
	got := scan(t, s, leaf.Segment)
	if len(got.gaps) > 0 || len(got.blobs) != 3 || len(got.raws[1]) != 100_009+4*PieceSumSize {
		t.Errorf("a scan finds %+v, gaps %v", got.blobs, got.gaps)
	}
}

// TestPiecesVerifyAtTheirPlace: a piece is one in its keyspace, at its place, with its length, and nowhere else.
func TestPiecesVerifyAtTheirPlace(t *testing.T) {
	s := emptyStore(t)
	var all []Piece
	for range 2 { // two segments with the same at the same offsets
		w := s.NewWriter(Nodes, 7)
		all = append(all, appendPieces(t, w, 7, []byte("the same"), []byte("the same"), []byte("the same"))...)
		must(t, w.Flush())
		w.Commit()
	}
	p := all[1]
	if all[4].Offset != p.Offset || all[4].Segment == p.Segment {
		t.Fatalf("%+v and %+v", p, all[4])
	}
	mustReadPiece(t, s, p, 7, []byte("the same"))
	f := s.files.Load().find(p.Segment)
	size := uint32(f.size.Load())
	wrong := map[string]Piece{
		"a few bytes before":     {p.Segment, p.Offset - 3, p.Length},
		"a byte behind":          {p.Segment, p.Offset + 1, p.Length},
		"a byte less":            {p.Segment, p.Offset, p.Length - 1},
		"a byte more":            {p.Segment, p.Offset, p.Length + 1},
		"two pieces":             {p.Segment, p.Offset, 2 * p.Length},
		"the blob's header":      {p.Segment, all[0].Offset - HeaderSize, p.Length},
		"nothing":                {p.Segment, p.Offset, 0},
		"less than its checksum": {p.Segment, p.Offset, PieceSumSize - 1},
		"only a checksum":        {p.Segment, p.Offset, PieceSumSize},
		"the header block":       {p.Segment, 0, p.Length},
		"into the header block":  {p.Segment, FileHeaderSize - 1, p.Length},
		"behind the file":        {p.Segment, size, p.Length},
		"over its end":           {p.Segment, size - p.Length + 1, p.Length},
		"far too long":           {p.Segment, p.Offset, 1<<32 - 1},
		"far behind":             {p.Segment, 1<<32 - 1, p.Length},
		"longer than any blob":   {p.Segment, p.Offset, MaxBlob + 1},
		"no such segment":        {p.Segment + 9, p.Offset, p.Length},
		"segment 0":              {0, p.Offset, p.Length},
	}
	for name, q := range wrong {
		_, err := s.ReadPiece(q, 7, new(Buffer))
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		wantCorrupt(t, err)
		s.PrefetchPiece(q)
	}
	for _, keyspace := range []uint32{0, 6, 8, 7 << 8, 1<<31 | 7} {
		_, err := s.ReadPiece(p, keyspace, new(Buffer))
		wantCorrupt(t, err)
	}
	// What lies in the one segment is not what lies in the other, though it is the same.
	editSegment(t, s.options.FS, p.Segment, func(b []byte) []byte {
		other, err := vfs.ReadFile(s.options.FS, filepath.Join(testDir, DirName, FileName(all[4].Segment)), 1<<20)
		must(t, err)
		return append(b[:p.Offset], other[p.Offset:]...)
	})
	_, err := s.ReadPiece(p, 7, new(Buffer))
	wantCorrupt(t, err)
	mustReadPiece(t, s, all[0], 7, []byte("the same"))
}

// TestDamagedPieces: each byte of a piece counts, and a damaged one leaves the others be.
func TestDamagedPieces(t *testing.T) {
	fsys := newFS(t)
	s := open(t, testOptions(fsys), nil, 1)
	w := s.NewWriter(Nodes, 7)
	contents := [][]byte{[]byte("one"), []byte("a longer one than that"), []byte("three")}
	list := appendPieces(t, w, 7, contents...)
	must(t, w.Flush())
	w.Commit()
	p := list[1]
	for at := p.Offset; at < p.Offset+p.Length; at++ {
		flip := func(b []byte) []byte { b[at] ^= 1 << (at % 8); return b }
		editSegment(t, fsys, p.Segment, flip)
		_, err := s.ReadPiece(p, 7, new(Buffer))
		wantCorrupt(t, err)
		mustReadPiece(t, s, list[0], 7, contents[0])
		mustReadPiece(t, s, list[2], 7, contents[2])
		editSegment(t, fsys, p.Segment, flip)
	}
	mustReadPiece(t, s, p, 7, contents[1])
	editSegment(t, fsys, p.Segment, func(b []byte) []byte { return b[:p.Offset+p.Length-1] })
	_, err := s.ReadPiece(p, 7, new(Buffer))
	wantCorrupt(t, err)
	mustReadPiece(t, s, list[0], 7, contents[0])
}

func TestAppendPiecesRefusesNonsense(t *testing.T) {
	s := emptyStore(t)
	w := s.NewWriter(Nodes, 7)
	for name, c := range map[string]struct {
		raw  []byte
		ends []int
	}{
		"nothing":         {nil, nil},
		"no ends":         {make([]byte, 10), nil},
		"more than ends":  {make([]byte, 10), []int{5, 9}},
		"less than ends":  {make([]byte, 10), []int{5, 11}},
		"longer than any": {make([]byte, MaxBlob+1), []int{MaxBlob + 1}},
	} {
		if _, err := w.AppendPieces(7, c.raw, c.ends); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	list := appendPieces(t, w, 7, []byte("it goes on"))
	must(t, w.Flush())
	mustReadPiece(t, s, list[0], 7, []byte("it goes on"))
	w.Commit()
	if _, err := w.AppendPieces(7, make([]byte, 5), []int{5}); !errors.Is(err, ErrFinished) {
		t.Error(err)
	}
}

// TestPiecesAcrossSegments: pieces that do not fit begin a segment, and those that are longer than one have one of their own.
func TestPiecesAcrossSegments(t *testing.T) {
	o := testOptions(newFS(t))
	o.SegmentBytes = 4 << 10
	s := open(t, o, nil, 1)
	w := s.NewWriter(Nodes, 7)
	var list []Piece
	var contents [][]byte
	for i, n := range []int{1000, 2000, 3000, 20_000, 10, 4 << 10, 900_000, 5} {
		some := [][]byte{noise(uint64(i), n), noise(uint64(i+50), n/3)}
		list, contents = append(list, appendPieces(t, w, 7, some...)...), append(contents, some...)
	}
	must(t, w.Sync())
	table := w.Table()
	w.Commit()
	live := map[uint32]int64{}
	for i, p := range list {
		mustReadPiece(t, s, p, 7, contents[i])
		live[p.Segment] += int64(p.Length)
	}
	for i, info := range s.Segments() {
		if info.Live != live[info.ID] || table[i] != info {
			t.Errorf("%+v, %d bytes are live; the writer said %+v", info, live[info.ID], table[i])
		}
		if blobs := scan(t, s, info.ID).blobs; info.Size > o.SegmentBytes && len(blobs) != 1 {
			t.Errorf("%d blobs in a segment of %d bytes", len(blobs), info.Size)
		}
	}
	again := open(t, o, s.Segments(), 1)
	for i, p := range list {
		mustReadPiece(t, again, p, 7, contents[i])
	}
}

// TestPiecesAreReadMapped: with files mapped and without, before more is written to them and after.
func TestPiecesAreReadMapped(t *testing.T) {
	for _, mapBytes := range []int64{0, 8 << 20} {
		s, err := Open(Options{FS: osfs.New(), Dir: t.TempDir(), SegmentBytes: 1 << 20, MapBytes: mapBytes}, nil, 1)
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		w := s.NewWriter(Nodes, 7)
		var list []Piece
		var contents [][]byte
		for i := range 30 {
			some := [][]byte{noise(uint64(i), 1+i*100), nil, noise(uint64(i+50), 100_000/(1+i))}
			list, contents = append(list, appendPieces(t, w, 7, some...)...), append(contents, some...)
			must(t, w.Flush())
			for range 2 {
				for j, p := range list {
					s.PrefetchPiece(p)
					mustReadPiece(t, s, p, 7, contents[j])
				}
			}
		}
		w.Commit()
		if m := s.files.Load().find(list[0].Segment).mapped.Load(); mapBytes > 0 && m == nil {
			t.Log("files are not mapped here")
		}
	}
}

func TestReadPieceAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s := emptyStore(t)
	w := s.NewWriter(Nodes, 7)
	p := appendPieces(t, w, 7, []byte("some"), noise(1, 5000))[1]
	must(t, w.Flush())
	w.Commit()
	var buf Buffer
	read := func() {
		if _, err := s.ReadPiece(p, 7, &buf); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if got := testing.AllocsPerRun(50, read); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

// FuzzPieces reads a place that somebody may have made up in a file that has pieces.
func FuzzPieces(f *testing.F) {
	f.Add(uint32(64), uint32(12), uint32(7), []byte("one"), []byte("two"))
	f.Add(uint32(88), uint32(7), uint32(7), []byte("one"), []byte(nil))
	f.Fuzz(func(t *testing.T, offset, length, keyspace uint32, one, two []byte) {
		s := emptyStore(t)
		w := s.NewWriter(Nodes, 7)
		list := appendPieces(t, w, 7, one, two)
		must(t, w.Flush())
		w.Commit()
		mustReadPiece(t, s, list[0], 7, one)
		mustReadPiece(t, s, list[1], 7, two)
		p := Piece{1, offset, length}
		_, err := s.ReadPiece(p, keyspace, new(Buffer)) // a place within one of the contents may well verify
		if s.PrefetchPiece(p); err != nil {
			wantCorrupt(t, err)
		}
	})
}
