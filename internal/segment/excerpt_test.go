package segment

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/vfs/osfs"
)

// partedPage is a page of n records that do not compress, and their keys.
func partedPage(t testing.TB, n int) (raw []byte, keys [][]byte) {
	t.Helper()
	var b page.Builder
	for i := range n {
		key := fmt.Appendf(nil, "key/%04d", i)
		must(t, b.Add(key, record.Record{Kind: record.Inline, Value: noise(uint64(i), 100)}))
		keys = append(keys, key)
	}
	return b.Append(nil), keys
}

// partedCodecs are those of leaves that can be read by parts.
var partedCodecs = []Codec{Parts, Stencil}

// partedStore is a store on the real file system with one leaf in parts, of which every page has been read.
func partedStore(t *testing.T, codec Codec) (s *Store, p Pointer, raw []byte, keys [][]byte) {
	t.Helper()
	s, err := Open(Options{FS: osfs.New(), Dir: t.TempDir(), SegmentBytes: 1 << 20, MapBytes: 2 << 20}, nil, 1)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	raw, keys = partedPage(t, 70)
	w := s.NewWriter(Nodes, 1)
	w.Passing(codec == Parts)
	p = mustAppend(t, w, KindLeaf, S2, raw)
	w.Commit()
	if h := mustRead(t, s, p, raw); h.Codec != codec {
		t.Fatalf("codec %d", h.Codec)
	}
	mappingAt(t, s, p)
	return s, p, raw, keys
}

func TestReadExcerpt(t *testing.T) {
	for _, codec := range partedCodecs {
		t.Run(fmt.Sprint("codec=", codec), func(t *testing.T) { readExcerpts(t, codec) })
	}
}

func readExcerpts(t *testing.T, codec Codec) {
	s, p, raw, keys := partedStore(t, codec)
	var buf Buffer
	for i, key := range keys {
		part, h, err := s.ReadExcerpt(p, key, &buf)
		must(t, err)
		r, ok, err := page.Find(part, key)
		if err != nil || !ok || !bytes.Equal(r.Value, noise(uint64(i), 100)) || h.Kind != KindLeaf || h.Keyspace != 7 {
			t.Fatalf("key %d: %v, %v", i, ok, err)
		}
		if len(part) > len(raw)/2 {
			t.Errorf("key %d: an excerpt of %d bytes of %d", i, len(part), len(raw))
		}
	}
	part, _, err := s.ReadExcerpt(p, []byte("zzz"), &buf)
	if _, ok, find := page.Find(part, []byte("zzz")); err != nil || find != nil || ok {
		t.Errorf("a key that is not there: %v %v %v", ok, err, find)
	}
}

// Where a part is not known to be in the system's page cache, and where a leaf has no parts, the whole of it is read.
func TestReadExcerptOfAll(t *testing.T) {
	s, p, raw, keys := partedStore(t, Stencil)
	m := mappingAt(t, s, p)
	for i := range m.warm {
		m.warm[i].Store(0)
	}
	var buf Buffer
	part, _, err := s.ReadExcerpt(p, keys[3], &buf)
	if err != nil || !bytes.Equal(part, raw) {
		t.Errorf("%d bytes instead of the page's %d, %v", len(part), len(raw), err)
	}
	w := s.NewWriter(Nodes, 1)
	p = mustAppend(t, w, KindLeaf, S2, text(1, 5000))
	w.Commit()
	for range 2 {
		part, _, err := s.ReadExcerpt(p, keys[3], &buf)
		if err != nil || !bytes.Equal(part, text(1, 5000)) {
			t.Errorf("%d bytes instead of 5000, %v", len(part), err)
		}
	}
}

// TestExcerptsAreVerified: an excerpt is right or an error, whatever byte of its leaf has changed in the file; and nothing passes
// Read.
func TestExcerptsAreVerified(t *testing.T) {
	for _, codec := range partedCodecs {
		t.Run(fmt.Sprint("codec=", codec), func(t *testing.T) { verifyExcerpts(t, codec) })
	}
}

func verifyExcerpts(t *testing.T, codec Codec) {
	s, p, raw, keys := partedStore(t, codec)
	var buf Buffer
	eachDamagedByte(t, s, p, func(i int) {
		if _, _, err := s.Read(p, &buf); !errors.Is(err, corrupt.Err) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		n := i % len(keys)
		part, _, err := s.ReadExcerpt(p, keys[n], &buf)
		if err == nil {
			r, ok, find := page.Find(part, keys[n])
			if find != nil || !ok || !bytes.Equal(r.Value, noise(uint64(n), 100)) {
				t.Fatalf("byte %d changed: %v %v", i, ok, find)
			}
		} else if !errors.Is(err, corrupt.Err) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	})
	mustRead(t, s, p, raw)
}

// eachDamagedByte calls check with each byte of the blob under p changed in the file, one at a time.
func eachDamagedByte(t *testing.T, s *Store, p Pointer, check func(i int)) {
	t.Helper()
	f, err := os.OpenFile(s.files.Load().find(p.Segment).path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	stored := make([]byte, p.Length)
	_, err = f.ReadAt(stored, int64(p.Offset))
	must(t, err)
	for i := range stored {
		_, err := f.WriteAt([]byte{stored[i] ^ 1}, int64(p.Offset)+int64(i))
		must(t, err)
		check(i)
		_, err = f.WriteAt(stored[i:i+1], int64(p.Offset)+int64(i))
		must(t, err)
	}
}

// openParts asks for the table of the page under p.
func openParts(s *Store, p Pointer, x *Excerpt) *Request {
	list := []Request{{P: p, Excerpt: x}}
	s.ReadTogether(list)
	return &list[0]
}

// Pages of some of the parts, one behind the other, have the entries of the page.
func TestReadParts(t *testing.T) {
	for _, codec := range partedCodecs {
		t.Run(fmt.Sprint("codec=", codec), func(t *testing.T) { readParts(t, codec) })
	}
}

func readParts(t *testing.T, codec Codec) {
	s, p, raw, keys := partedStore(t, codec)
	var x Excerpt
	r := openParts(s, p, &x)
	if must(t, r.Err); !r.Opened || r.Raw != nil || r.Header.Kind != KindLeaf || r.Header.Keyspace != 7 {
		t.Fatalf("%+v", r)
	}
	n := x.Parts()
	for step := 1; step <= n; step++ {
		i := 0
		for from := 0; from < n; from += step {
			part, ok, err := s.ReadParts(&x, from, min(from+step, n))
			if err != nil || !ok {
				t.Fatalf("parts from %d: %v, %v", from, ok, err)
			}
			var it page.Iterator
			for must(t, it.Reset(part)); it.Next(); i++ {
				if !bytes.Equal(it.Key(), keys[i]) {
					t.Fatalf("entry %d has key %q", i, it.Key())
				}
			}
			must(t, it.Err())
		}
		if i != len(keys) {
			t.Errorf("%d entries, want %d", i, len(keys))
		}
	}
	for _, key := range keys {
		first, end, ok := x.Find(key)
		part, _, err := s.ReadParts(&x, first, end)
		if must(t, err); !ok || end-first > 2 {
			t.Fatalf("key %q: %v, parts from %d, before %d", key, ok, first, end)
		}
		if r, found, err := page.Find(part, key); err != nil || !found || len(r.Value) != 100 {
			t.Fatalf("key %q is not in the parts from %d on: %v", key, first, err)
		}
	}
	if _, _, ok := x.Find([]byte("another prefix")); ok {
		t.Error("a part for a key that begins like none")
	}

	// What is not known to be in the system's page cache is not read by parts.
	m := mappingAt(t, s, p)
	for i := range m.warm {
		m.warm[i].Store(0)
	}
	if _, ok, err := s.ReadParts(&x, 0, 1); ok || err != nil {
		t.Errorf("a part was read: %v, %v", ok, err)
	}
	if r := openParts(s, p, &x); r.Opened || r.Err != nil || !bytes.Equal(r.Raw, raw) {
		t.Errorf("%d bytes, opened is %v, %v", len(r.Raw), r.Opened, r.Err)
	}
}

// TestPartsAreVerified: parts are right or an error, whatever byte of their leaf has changed in the file.
func TestPartsAreVerified(t *testing.T) {
	for _, codec := range partedCodecs {
		t.Run(fmt.Sprint("codec=", codec), func(t *testing.T) { verifyParts(t, codec) })
	}
}

func verifyParts(t *testing.T, codec Codec) {
	s, p, _, keys := partedStore(t, codec)
	var x Excerpt
	eachDamagedByte(t, s, p, func(i int) {
		if entries, err := readByParts(s, p, &x, keys); err == nil || !errors.Is(err, corrupt.Err) {
			t.Fatalf("byte %d changed: %d entries, %v", i, entries, err)
		}
	})
	if entries, err := readByParts(s, p, &x, keys); err != nil || entries != len(keys) {
		t.Errorf("%d entries, %v", entries, err)
	}
}

// readByParts reads the parts of a page one by one, and compares the entries.
func readByParts(s *Store, p Pointer, x *Excerpt, keys [][]byte) (entries int, err error) {
	r := openParts(s, p, x)
	if r.Err != nil || !r.Opened {
		return 0, r.Err
	}
	for part := range x.Parts() {
		raw, ok, err := s.ReadParts(x, part, part+1)
		if err != nil || !ok {
			return entries, err
		}
		var it page.Iterator
		for err = it.Reset(raw); err == nil && it.Next(); entries++ {
			if !bytes.Equal(it.Key(), keys[entries]) || !bytes.Equal(it.Record().Value, noise(uint64(entries), 100)) {
				return entries, errors.New("another entry than there was")
			}
		}
		if err = errors.Join(err, it.Err()); err != nil {
			return entries, err
		}
	}
	return entries, nil
}

// A caller who gets over a panic has a store that can be closed, and whose files can go.
func TestPanicLetsGoOfTheFile(t *testing.T) {
	s, p, _, keys := partedStore(t, Parts)
	var x Excerpt
	if r := openParts(s, p, &x); !r.Opened {
		t.Fatalf("%+v", r)
	}
	f, err := s.lookup(p.Segment)
	must(t, err)
	f.release()
	panics := func(name string, call func()) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", name)
			}
			if n := f.references.Load(); n != 0 {
				t.Errorf("%s: the file is held %d times", name, n)
			}
		}()
		call()
	}
	panics("parts that are not there", func() { s.ReadParts(&x, 0, 1<<20) })
	m := f.mapped.Load()
	f.mapped.Store(&mapped{data: m.data}) // without marks of pages
	panics("a page without marks", func() { s.ReadExcerpt(p, keys[0], new(Buffer)) })
	f.mapped.Store(m)
}
