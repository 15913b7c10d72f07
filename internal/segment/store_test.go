package segment

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/train"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/osfs"
)

func TestBlobsOfEveryCodecAndLength(t *testing.T) {
	s := emptyStore(t)
	must(t, s.AddDictionary(3, text(99, 8<<10)))
	w := s.NewWriter(Nodes, 7)
	type blob struct {
		p   Pointer
		raw []byte
	}
	var blobs []blob
	for _, codec := range []Codec{None, S2, Zstd, ZstdDictionary, Zstd, ZstdDictionary} {
		if len(blobs) == 4*20 {
			w.Hurry() // the last two
		}
		for _, n := range []int{0, 1, 31, 32, 100, 4096, 8192, 20000, 70000, 300000} {
			for _, raw := range [][]byte{text(uint64(n), n), noise(uint64(n), n)} {
				dictionary := uint16(0)
				if codec == ZstdDictionary {
					dictionary = 3
				}
				p, err := w.Append(KindLeaf, 7, codec, dictionary, raw)
				must(t, err)
				blobs = append(blobs, blob{p, raw})
			}
		}
	}
	must(t, w.Sync())
	smaller := 0
	for _, b := range blobs {
		h := mustRead(t, s, b.p, b.raw)
		if h.Kind != KindLeaf || h.Keyspace != 7 || h.Sum != b.p.Sum || int(h.Raw) != len(b.raw) {
			t.Fatalf("header %+v", h)
		}
		if h.Stored < h.Raw {
			smaller++
		}
	}
	if want := 5 * 6; smaller < want {
		t.Errorf("%d blobs were compressed, want at least %d", smaller, want)
	}
	w.Commit()
	var live int64
	for _, info := range s.Segments() {
		live += info.Live
	}
	if live != w.Written() {
		t.Errorf("%d bytes live, %d written", live, w.Written())
	}
}

func TestBlobLargerThanASegment(t *testing.T) {
	s := emptyStore(t)
	w := s.NewWriter(Nodes, 0)
	small := mustAppend(t, w, KindLeaf, None, text(1, 100))
	large := mustAppend(t, w, KindLeaf, None, noise(2, 3<<20))
	after := mustAppend(t, w, KindLeaf, None, text(3, 100))
	must(t, w.Flush())
	mustRead(t, s, small, text(1, 100))
	mustRead(t, s, large, noise(2, 3<<20))
	mustRead(t, s, after, text(3, 100))
	if small.Segment == large.Segment || large.Segment == after.Segment {
		t.Errorf("a blob shares a segment with one that is larger than a segment: %d %d %d", small.Segment, large.Segment, after.Segment)
	}
	w.Commit()
}

func TestUnflushedBlobIsNotThere(t *testing.T) {
	s := emptyStore(t)
	w := s.NewWriter(Nodes, 0)
	p := mustAppend(t, w, KindLeaf, None, text(1, 100))
	var buf Buffer
	_, _, err := s.Read(p, &buf)
	wantCorrupt(t, err)
	must(t, w.Flush())
	mustRead(t, s, p, text(1, 100))
	must(t, w.Abort())
	_, _, err = s.Read(p, &buf)
	wantCorrupt(t, err)
	if got := s.Segments(); len(got) != 0 {
		t.Errorf("an aborted writer left %v", got)
	}
	if _, err := w.Append(KindLeaf, 0, None, 0, nil); !errors.Is(err, ErrFinished) {
		t.Errorf("append after abort: %v", err)
	}
}

func TestAccounting(t *testing.T) {
	s := emptyStore(t)
	first := s.NewWriter(Nodes, 0)
	a := mustAppend(t, first, KindLeaf, None, noise(1, 1000))
	b := mustAppend(t, first, KindLeaf, None, noise(2, 2000))
	must(t, first.Sync())
	if got := s.Segments(); len(got) != 0 {
		t.Errorf("an unfinished writer is in the table: %v", got)
	}
	planned := first.Table()
	first.Commit()
	if diff := cmp.Diff(planned, s.Segments()); diff != "" {
		t.Errorf("Table and Segments differ: %s", diff)
	}

	second := s.NewWriter(Nodes, 0)
	c := mustAppend(t, second, KindLeaf, None, noise(3, 500))
	second.Free(a)
	second.Free(Pointer{})
	planned = second.Table()
	want := []Info{
		{ID: a.Segment, Class: Nodes, Size: FileHeaderSize + 3000 + 2*HeaderSize, Live: int64(b.Length)},
		{ID: c.Segment, Class: Nodes, Size: FileHeaderSize + 500 + HeaderSize, Live: int64(c.Length)},
	}
	if diff := cmp.Diff(want, planned); diff != "" {
		t.Errorf("table: %s", diff)
	}
	must(t, second.Sync())
	second.Commit()
	second.Commit()
	must(t, second.Abort())
	if diff := cmp.Diff(want, s.Segments()); diff != "" {
		t.Errorf("after commit: %s", diff)
	}
	must(t, s.Remove(a.Segment))
	if err := s.Remove(a.Segment); !errors.Is(err, ErrUnknownSegment) {
		t.Errorf("second removal: %v", err)
	}
	mustRead(t, s, c, noise(3, 500))
	if got := s.NextID(); got != c.Segment+1 {
		t.Errorf("next id %d after segment %d", got, c.Segment)
	}
}

func TestReopen(t *testing.T) {
	fs := newFS(t)
	s := open(t, testOptions(fs), nil, 1)
	w := s.NewWriter(Nodes, 0)
	node := mustAppend(t, w, KindLeaf, S2, text(1, 5000))
	must(t, w.Sync())
	w.Commit()
	listedValue, err := s.AppendValue(1, None, []byte("listed"))
	must(t, err)
	s.SetLastSeq(listedValue.Segment, 9)
	s.SetLastSeq(listedValue.Segment, 8)
	const listedLive = 7 // whatever the table says is kept
	s.Live(listedValue, listedLive)
	table, next := s.Segments(), s.NextID()
	behind, err := s.AppendValue(1, None, []byte("behind the listed end"))
	must(t, err)
	s.SealValues()
	apart, err := s.AppendValue(1, None, []byte("in a segment that is not listed"))
	must(t, err)
	lost := s.NewWriter(Nodes, 0)
	lostNode := mustAppend(t, lost, KindLeaf, None, text(2, 100))
	must(t, lost.Flush())
	must(t, s.SyncValues())
	must(t, s.Close())

	for _, readOnly := range []bool{true, false} {
		o := testOptions(fs)
		o.ReadOnly = readOnly
		s = open(t, o, table, next)
		if got := s.Damage(); len(got) != 0 {
			t.Errorf("damage: %v", got)
		}
		mustRead(t, s, node, text(1, 5000))
		mustRead(t, s, listedValue, []byte("listed"))
		mustRead(t, s, behind, []byte("behind the listed end"))
		mustRead(t, s, apart, []byte("in a segment that is not listed"))
		var buf Buffer
		_, _, err = s.Read(lostNode, &buf)
		wantCorrupt(t, err)
		if got := s.Orphans(); len(got) != 1 || got[0].ID != apart.Segment || got[0].Live != 0 {
			t.Errorf("orphans %v", got)
		}
		want := []Info{
			{ID: node.Segment, Class: Nodes, Size: int64(FileHeaderSize + node.Length), Live: int64(node.Length)},
			{ID: listedValue.Segment, Class: Values, Size: int64(FileHeaderSize + listedValue.Length + behind.Length),
				Live: listedLive, LastSeq: 9},
		}
		if diff := cmp.Diff(want, s.Segments()); diff != "" {
			t.Errorf("table: %s", diff)
		}
		if readOnly {
			if _, err := s.AppendValue(1, None, nil); !errors.Is(err, ErrReadOnly) {
				t.Errorf("append to a read-only store: %v", err)
			}
			must(t, s.Close())
		}
	}
	if _, err := fs.Stat(filepath.Join(testDir, DirName, FileName(lostNode.Segment))); err == nil {
		t.Error("the orphaned node segment is still there")
	}
	must(t, s.Adopt(apart.Segment))
	if got := len(s.Segments()); got != 3 || len(s.Orphans()) != 0 {
		t.Errorf("%d segments after adoption", got)
	}
	fresh, err := s.AppendValue(1, None, []byte("new"))
	must(t, err)
	if fresh.Segment <= lostNode.Segment {
		t.Errorf("segment %d was used before", fresh.Segment)
	}
}

func TestOpenWithDamage(t *testing.T) {
	fs := newFS(t)
	s := open(t, testOptions(fs), nil, 1)
	var ps []Pointer
	for i := range 3 {
		w := s.NewWriter(Nodes, 0)
		ps = append(ps, mustAppend(t, w, KindLeaf, None, noise(uint64(i), 1000)))
		must(t, w.Sync())
		w.Commit()
	}
	table, next := s.Segments(), s.NextID()
	must(t, s.Close())
	must(t, fs.Remove(filepath.Join(testDir, DirName, FileName(ps[0].Segment))))
	f, err := fs.OpenReadWrite(filepath.Join(testDir, DirName, FileName(ps[1].Segment)))
	must(t, err)
	must(t, f.Truncate(500))
	must(t, f.Close())
	for _, junk := range []string{"00000000.seg", "0000001.seg", "0000000A.seg", "x", "00000009.seg.tmp"} {
		must(t, vfs.WriteFile(fs, filepath.Join(testDir, DirName, junk), []byte("junk")))
	}

	s = open(t, testOptions(fs), table, next)
	if got := s.Damage(); len(got) != 2 || !errors.Is(got[0], corrupt.Err) || !errors.Is(got[1], corrupt.Err) {
		t.Errorf("damage %v", got)
	}
	var buf Buffer
	for _, p := range ps[:2] {
		_, _, err = s.Read(p, &buf)
		wantCorrupt(t, err)
	}
	mustRead(t, s, ps[2], noise(2, 1000))
	if _, err := Open(testOptions(fs), append(table, table[0]), next); !errors.Is(err, corrupt.Err) {
		t.Errorf("a segment listed twice: %v", err)
	}
}

// TestDamageGoesWithItsSegment: nobody is told any more of what was wrong with the file of a segment that is not needed and has been removed.
func TestDamageGoesWithItsSegment(t *testing.T) {
	fs := newFS(t)
	s := open(t, testOptions(fs), nil, 1)
	for i := range 2 {
		w := s.NewWriter(Nodes, 0)
		mustAppend(t, w, KindLeaf, None, noise(uint64(i), 1000))
		must(t, w.Sync())
		w.Commit()
	}
	table, next := s.Segments(), s.NextID()
	must(t, s.Close())
	for _, i := range table {
		must(t, fs.Remove(filepath.Join(testDir, DirName, FileName(i.ID))))
	}
	s = open(t, testOptions(fs), table, next)
	for left := 1; left >= 0; left-- {
		must(t, s.Remove(table[left].ID))
		damage := s.Damage()
		if len(damage) != left {
			t.Errorf("with %d of the segments: %v", left, damage)
		}
		for _, err := range damage {
			if named := new(corrupt.Error); !errors.As(err, &named) || named.File != FilePath(table[0].ID) {
				t.Errorf("damage of another segment: %v", err)
			}
		}
	}
}

func TestForeignBlobsDoNotVerify(t *testing.T) {
	fs := newFS(t)
	s := open(t, testOptions(fs), nil, 1)
	w := s.NewWriter(Nodes, 0)
	raw := noise(1, 1000)
	a, b := mustAppend(t, w, KindLeaf, None, raw), mustAppend(t, w, KindLeaf, None, raw)
	must(t, w.Sync())
	w.Commit()
	if a.Sum == b.Sum {
		t.Error("the same bytes at two places have one checksum")
	}
	var buf Buffer
	for _, p := range []Pointer{
		{a.Segment, b.Offset, a.Length, a.Sum},
		{a.Segment, a.Offset + 1, a.Length, a.Sum},
		{a.Segment, a.Offset, a.Length - 1, a.Sum},
		{a.Segment, a.Offset, a.Length + 1, a.Sum},
		{a.Segment, a.Offset, 1 << 31, a.Sum},
		{a.Segment, 0, a.Length, a.Sum},
		{a.Segment, a.Offset, 5, a.Sum},
		{a.Segment + 1, a.Offset, a.Length, a.Sum},
		{},
	} {
		_, _, err := s.Read(p, &buf)
		wantCorrupt(t, err)
		wantCorrupt(t, s.ReadPlain(p, KindLeaf, 7, make([]byte, min(max(p.Length, HeaderSize)-HeaderSize, 1<<16))))
	}
	table := s.Segments()
	must(t, s.Close())
	o := testOptions(fs)
	o.Database[15]++
	other := open(t, o, table, 9)
	_, _, err := other.Read(a, &buf)
	wantCorrupt(t, err)
}

// A pointer that comes from a damaged place takes no more memory than there is on the disk.
func TestPointersBehindTheEndOfAFile(t *testing.T) {
	s := open(t, testOptions(newFS(t)), nil, 1)
	p, err := s.AppendValue(1, None, noise(1, 500))
	must(t, err)
	for _, length := range []uint32{p.Length + 1, HeaderSize + MaxBlob} {
		long := p
		long.Length = length
		var buf Buffer
		if _, _, err := s.Read(long, &buf); !errors.Is(err, corrupt.Err) || buf.Cap() > 0 {
			t.Errorf("a blob of %d bytes, of which the file has %d: %v, and %d bytes of memory", length, p.Length, err, buf.Cap())
		}
	}
}

// Every flipped bit of a stored blob is either found or, when it lies in the header that ReadPlain need not read, harmless.
func TestEveryFlippedBit(t *testing.T) {
	for _, codec := range []Codec{None, S2, Zstd} {
		fs := newFS(t)
		s := open(t, testOptions(fs), nil, 1)
		w := s.NewWriter(Nodes, 0)
		raw := text(1, 400)
		p := mustAppend(t, w, KindLeaf, codec, raw)
		must(t, w.Sync())
		w.Commit()
		f, err := fs.OpenReadWrite(filepath.Join(testDir, DirName, FileName(p.Segment)))
		must(t, err)
		var buf Buffer
		for i := range int64(p.Length) * 8 {
			at := int64(p.Offset) + i/8
			var c [1]byte
			if _, err := f.ReadAt(c[:], at); err != nil {
				t.Fatal(err)
			}
			c[0] ^= 1 << (i % 8)
			if _, err := f.WriteAt(c[:], at); err != nil {
				t.Fatal(err)
			}
			_, _, err := s.Read(p, &buf)
			wantCorrupt(t, err)
			c[0] ^= 1 << (i % 8)
			if _, err := f.WriteAt(c[:], at); err != nil {
				t.Fatal(err)
			}
		}
		must(t, f.Close())
		mustRead(t, s, p, raw)
	}
}

func TestClosedStore(t *testing.T) {
	s := emptyStore(t)
	p, err := s.AppendValue(1, None, []byte("value"))
	must(t, err)
	w := s.NewWriter(Nodes, 0)
	mustAppend(t, w, KindLeaf, None, noise(1, 100))
	must(t, s.Close())
	must(t, s.Close())
	var buf Buffer
	if _, _, err := s.Read(p, &buf); !errors.Is(err, ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if _, err := s.AppendValue(1, None, []byte("value")); !errors.Is(err, ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if err := w.Sync(); !errors.Is(err, ErrClosed) {
		t.Errorf("sync of a writer: %v", err)
	}
	if err := s.Scan(context.Background(), p.Segment, nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("scan: %v", err)
	}
	if err := s.SyncValues(); !errors.Is(err, ErrClosed) {
		t.Errorf("sync of values that nobody synced: %v", err)
	}
}

func TestDictionaries(t *testing.T) {
	fs := newFS(t)
	s := open(t, testOptions(fs), nil, 1)
	var samples [][]byte
	for i := range 200 {
		samples = append(samples, text(uint64(i), 300))
	}
	raw := train.Dictionary(samples, 4<<10, len(samples))
	must(t, s.AddDictionary(1, raw))
	must(t, s.AddDictionary(1, raw))
	if err := s.AddDictionary(1, raw[1:]); err == nil {
		t.Error("another dictionary under the same number")
	}
	if err := s.AddDictionary(0, raw); err == nil {
		t.Error("dictionary 0")
	}
	w := s.NewWriter(Nodes, 0)
	p, err := w.Append(KindLeaf, 0, ZstdDictionary, 1, text(1000, 300))
	must(t, err)
	plain := mustAppend(t, w, KindLeaf, Zstd, text(1000, 300))
	if p.Length >= plain.Length {
		t.Errorf("%d bytes with a dictionary, %d without", p.Length, plain.Length)
	}
	if _, err := w.Append(KindLeaf, 0, ZstdDictionary, 2, text(1, 300)); !errors.Is(err, ErrNoDictionary) {
		t.Errorf("unknown dictionary: %v", err)
	}
	must(t, w.Sync())
	w.Commit()
	mustRead(t, s, p, text(1000, 300))
	table := s.Segments()
	must(t, s.Close())
	s = open(t, testOptions(fs), table, 5)
	var buf Buffer
	if _, _, err := s.Read(p, &buf); !errors.Is(err, ErrNoDictionary) || errors.Is(err, corrupt.Err) {
		t.Errorf("read without its dictionary: %v", err)
	}
	must(t, s.AddDictionary(1, raw))
	mustRead(t, s, p, text(1000, 300))
}

// The same on the real file system.
func TestOnTheOperatingSystem(t *testing.T) {
	o := testOptions(osfs.New())
	o.Dir = t.TempDir()
	s := open(t, o, nil, 1)
	value, err := s.AppendValue(1, None, noise(1, 100_000), []byte("tail"))
	must(t, err)
	must(t, s.SyncValues())
	w := s.NewWriter(Nodes, 0)
	node := mustAppend(t, w, KindLeaf, S2, text(1, 9000))
	must(t, w.Sync())
	w.Commit()
	table, next := s.Segments(), s.NextID()
	must(t, s.Close())

	s = open(t, o, table, next)
	raw, err := ReadBlob(o, node)
	must(t, err)
	if !bytes.Equal(raw, text(1, 9000)) {
		t.Error("ReadBlob gave other bytes than written")
	}
	mustRead(t, s, node, text(1, 9000))
	mustRead(t, s, value, append(noise(1, 100_000), "tail"...))
	must(t, s.Remove(node.Segment))
	if _, err := ReadBlob(o, node); !errors.Is(err, corrupt.Err) {
		t.Errorf("blob of a removed segment: %v", err)
	}
	if names, err := o.FS.List(filepath.Join(o.Dir, DirName)); err != nil || len(names) != 1 {
		t.Errorf("left are %v, %v", names, err)
	}
}

// ReadNear writes no further than what it was asked for reaches: what lies behind in the memory that it is given may be somebody's.
func TestReadNearKeepsWhatLiesBehind(t *testing.T) {
	s := emptyStore(t)
	w := s.NewWriter(Nodes, 0)
	raw := text(1, 8192)
	for _, codec := range []Codec{S2, Zstd, Columns} {
		p := mustAppend(t, w, KindLeaf, codec, raw)
		must(t, w.Flush())
		memory := bytes.Repeat([]byte{'x'}, len(raw)+64)
		var buf Buffer
		got, _, err := s.ReadNear(p, &buf, memory[:0])
		if err != nil || !bytes.Equal(got, raw) {
			t.Fatalf("codec %d: %d bytes, %v", codec, len(got), err)
		}
		if &got[0] != &memory[0] || len(bytes.Trim(memory[len(raw):], "x")) > 0 {
			t.Errorf("codec %d: the memory that was given is not used, or changed behind what was read", codec)
		}
	}
	w.Commit()
}
