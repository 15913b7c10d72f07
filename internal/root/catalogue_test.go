package root

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/test/golden"
)

func sealed(slot []byte) []byte {
	binary.LittleEndian.PutUint32(slot[offsetSlotChecksum:], crc32.Checksum(slot[:offsetSlotChecksum], castagnoli))
	return slot
}

func exampleCatalogue() *Catalogue {
	return &Catalogue{
		Seq:          0x1234,
		Log:          Position{Segment: 5, Offset: 640},
		Clock:        1_700_000_000_000,
		NextKeyspace: 9,
		Keyspaces: []Keyspace{
			{ID: 0, Name: "default", Records: 12, Root: []byte{0xa0, 0xa1, 0xa2}},
			{ID: 5, Name: "Pappeln-\u00e4", Layout: 1, Options: []byte{0xb0, 0xb1}},
		},
		Segments: []segment.Info{
			{ID: 2, Class: segment.Nodes, Size: 0x1000, Live: 0x0fff},
			{ID: 3, Class: segment.Values, Size: 0x2000, Live: -1, LastSeq: 77},
		},
		Dictionaries: []Dictionary{{ID: 1, Pointer: segment.Pointer{Segment: 2, Offset: 64, Length: 100, Sum: 0x0102030405060708}}},
	}
}

func TestCatalogueRoundTrip(t *testing.T) {
	for _, c := range []*Catalogue{{}, exampleCatalogue()} {
		b := c.Encode([]byte("before"))
		if !bytes.HasPrefix(b, []byte("before")) {
			t.Fatal("not appended")
		}
		got, err := Decode(b[len("before"):])
		must(t, err)
		if diff := cmp.Diff(c.Encode(nil), got.Encode(nil)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestCatalogueRefusesWhatCannotBe(t *testing.T) {
	b := exampleCatalogue().Encode(nil)
	for n := range b {
		if _, err := Decode(b[:n]); !errors.Is(err, corrupt.Err) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	if _, err := Decode(append(bytes.Clone(b), 0)); !errors.Is(err, corrupt.Err) {
		t.Errorf("a byte more: %v", err)
	}
	for name, change := range map[string]func(*Catalogue){
		"keyspaces out of order":    func(c *Catalogue) { c.Keyspaces[0], c.Keyspaces[1] = c.Keyspaces[1], c.Keyspaces[0] },
		"keyspace twice":            func(c *Catalogue) { c.Keyspaces[1].ID = 0 },
		"name twice":                func(c *Catalogue) { c.Keyspaces[1].Name = "default" },
		"name that is not UTF-8":    func(c *Catalogue) { c.Keyspaces[1].Name = "\xff" },
		"keyspace above the next":   func(c *Catalogue) { c.NextKeyspace = 5 },
		"log before its segment":    func(c *Catalogue) { c.Log.Offset = -1 },
		"segment twice":             func(c *Catalogue) { c.Segments[1].ID = 2 },
		"segment 0":                 func(c *Catalogue) { c.Segments[0].ID = 0 },
		"segment of no class":       func(c *Catalogue) { c.Segments[0].Class = 0 },
		"segment of negative size":  func(c *Catalogue) { c.Segments[0].Size = -1 },
		"dictionary twice":          func(c *Catalogue) { c.Dictionaries = append(c.Dictionaries, c.Dictionaries[0]) },
		"dictionary that cannot be": func(c *Catalogue) { c.Dictionaries[0].Pointer.Length = 1 },
	} {
		c := exampleCatalogue()
		change(c)
		if _, err := Decode(c.Encode(nil)); !errors.Is(err, corrupt.Err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGoldenRoot(t *testing.T) {
	content, older, newer := written(t)
	golden.Compare(t, "root.txt", fmt.Sprintf(
		"# The file ROOT. Its first slot: %+v\n# Its second slot: %+v\n%s", newer, older, golden.HexDump(content)))
}

func TestGoldenCatalogue(t *testing.T) {
	c := exampleCatalogue()
	golden.Compare(t, "catalogue.txt", fmt.Sprintf("# Catalogue: %+v\n%s", *c, golden.HexDump(c.Encode(nil))))
}

func FuzzCatalogue(f *testing.F) {
	f.Add(new(Catalogue).Encode(nil))
	f.Add(exampleCatalogue().Encode(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Decode(b)
		if err != nil {
			if !errors.Is(err, corrupt.Err) {
				t.Fatalf("unnamed error: %v", err)
			}
			return
		}
		if !bytes.Equal(c.Encode(nil), b) {
			t.Fatal("not what was decoded")
		}
	})
}
