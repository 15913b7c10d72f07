package hash

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/test/golden"
)

func pointer(n uint32) segment.Pointer {
	return segment.Pointer{Segment: n, Offset: 64 + n*16, Length: 100 + n, Sum: 0x0102030405060700 + uint64(n)}
}

// sampleRoot is a root of two groups that uses every field.
func sampleRoot() *root {
	r := &root{depth: 9, count: 123_456, open: true, apart: true, expiry: 1_700_000_000_000}
	r.groups = []*group{{ptr: pointer(5)}, {ptr: pointer(6)}}
	return r
}

// sampleSlots are the slots of a group of eight pages, with every field.
func sampleSlots() []slot {
	list := make([]slot, 8)
	list[1] = slot{base: pointer(1), count: 300}
	list[2] = slot{base: pointer(2), deltas: []segment.Pointer{pointer(20), pointer(21)}, count: 301, apart: true, expiry: 1_700_000_000_000}
	list[3] = slot{lost: true, open: true, count: 1}
	list[4] = slot{lost: true, open: true, count: 3, deltas: []segment.Pointer{pointer(22)}}
	list[7] = slot{base: pointer(7), count: 1<<32 - 1, open: true}
	return list
}

// spaced returns n entries of page 5 of depth 3, in so many segments: with two of one hash, and two whose hashes have the same 32 bits.
func spaced(n, segments int) []entry {
	list := make([]entry, n)
	for i := range list {
		list[i] = entry{
			hash:  5<<61 | uint64(i)*(1<<61/uint64(n))&keptBits,
			at:    segment.Piece{Segment: uint32(1 + i%segments), Offset: uint32(64 + 1000*i), Length: uint32(5 + i)},
			apart: i%3 == 1,
		}
	}
	list[1].hash = list[0].hash
	list[2].hash = list[1].hash + 1<<(64-hashBits)
	list[n-1].at.Offset, list[n-1].at.Length = 1<<offsetBits-1, 1<<lengthBits-1
	return list
}

// nearby returns n entries as spaced does, but such as fit into the words of a packed page.
func nearby(n int) []entry {
	list := spaced(n, 2)
	list[n-1].at.Offset, list[n-1].at.Length = 4096, 100
	return list
}

// sampleOps are changes to page 5 of depth 3, of every kind.
func sampleOps() []op {
	list := spaced(5, 2)
	return []op{
		{entry: list[0], flags: opAdd},
		{entry: list[1], flags: opDrop | opAdd},
		{entry: entry{hash: list[2].hash}, flags: opDrop},
		{entry: list[4], flags: opAdd},
	}
}

// samplePieces are records of every kind, as they are stored.
func samplePieces() [][]byte {
	return [][]byte{
		appendPiece(nil, []byte("key"), &record.Record{Kind: record.Inline, Value: []byte("a value")}),
		appendPiece(nil, nil, &record.Record{Kind: record.Inline, Expiry: 1_700_000_000_000}),
		appendPiece(nil, bytes.Repeat([]byte("k"), 200), &record.Record{Kind: record.Apart, Value: []byte("a reference")}),
		appendPiece(nil, []byte("gone"), &record.Record{}),
	}
}

func TestGoldenBytes(t *testing.T) {
	pieces := samplePieces()
	blobs := []struct {
		name string
		raw  []byte
	}{
		{"root", sampleRoot().Encode(nil)},
		{"group", appendGroup(nil, sampleSlots())},
		{"index page", new(imager).append(nil, 3, 5, spaced(6, 3))},
		{"packed index page", new(imager).append(nil, 3, 5, nearby(6))},
		{"index page of more segments than it can number", new(imager).append(nil, 3, 5, spaced(maxSegments+1, maxSegments+1))},
		{"delta", appendDelta(nil, sampleOps())},
		{"record", pieces[0]},
		{"record that expires", pieces[1]},
		{"record with its value apart, and a long key", pieces[2]},
		{"tombstone", pieces[3]},
	}
	var text strings.Builder
	for _, g := range blobs {
		fmt.Fprintf(&text, "# %s, %d bytes\n", g.name, len(g.raw))
		if len(g.raw) < 1000 {
			fmt.Fprintf(&text, "%s\n", hex.Dump(g.raw))
			continue
		}
		for _, at := range []int{0, imageHead + 4*(maxSegments+1) - 16, len(g.raw) - 16} { // hash and places begin
			fmt.Fprintf(&text, "from %d on:\n%s\n", at, hex.Dump(g.raw[at:min(at+48, len(g.raw))]))
		}
	}
	golden.Compare(t, "format.txt", text.String())
}

func TestRootRoundTrip(t *testing.T) {
	small := &root{groups: []*group{{ptr: pointer(1)}}, count: 7}
	for _, r := range []*root{sampleRoot(), small} {
		raw, got := r.Encode(nil), new(root)
		if err := got.decode(raw); err != nil || !bytes.Equal(got.Encode(nil), raw) {
			t.Errorf("%x: %v, %x", raw, err, got.Encode(nil))
		}
		for n := range raw {
			for _, bad := range [][]byte{raw[:n], append(slices.Clone(raw), raw[:n+1]...)} {
				if err := new(root).decode(bad); !errors.Is(err, corrupt.Err) {
					t.Fatalf("%x: %v", bad, err)
				}
			}
		}
	}
	if raw := new(root).Encode(nil); len(raw) > 0 {
		t.Errorf("an empty root takes %d bytes", len(raw))
	}
}

// A root that points to where nothing can lie is damage when it is loaded, not when a group is asked for.
func TestRootRefusesImpossiblePointers(t *testing.T) {
	raw := sampleRoot().Encode(nil)
	copy(raw[len(raw)-segment.PointerSize:], make([]byte, 4)) // no segment
	if err := new(root).decode(raw); !errors.Is(err, corrupt.Err) {
		t.Errorf("a pointer into no segment: %v", err)
	}
}

func TestGroupRoundTrip(t *testing.T) {
	many := make([]slot, groupSlots)
	many[200].base = pointer(3)
	many[200].deltas = slices.Repeat([]segment.Pointer{pointer(4)}, deltasMost)
	for _, list := range [][]slot{sampleSlots(), many, make([]slot, 1)} {
		raw := appendGroup(nil, list)
		b, err := decodeGroup(raw, len(list))
		if err != nil || !reflect.DeepEqual(b.slots, list) {
			t.Fatalf("%v: %+v", err, b)
		}
		for n := range raw {
			if _, err := decodeGroup(raw[:n], len(list)); err == nil {
				t.Fatalf("%d of %d bytes are a group", n, len(raw))
			}
		}
		if _, err := decodeGroup(append(raw, 0), len(list)); err == nil {
			t.Error("a group with a byte behind it")
		}
		if _, err := decodeGroup(raw, len(list)+1); err == nil {
			t.Error("a group of the wrong number of slots")
		}
	}
}

func TestPieceRoundTrip(t *testing.T) {
	for _, raw := range samplePieces() {
		var r record.Record
		key, err := parsePiece(raw, &r)
		if err != nil || !bytes.Equal(appendPiece(nil, key, &r), raw) {
			t.Errorf("%x: key %q, %+v, %v", raw, key, r, err)
		}
		whole := len(raw) - len(r.Value)
		for n := range whole {
			if _, err := parsePiece(raw[:n], &r); err == nil {
				t.Fatalf("%d bytes of %d before the value are a record", n, whole)
			}
		}
	}
	for _, kind := range []byte{byte(record.Apart) + 1, 0x7f, 0xff} {
		raw := append([]byte{0, 0, 0, 0, kind}, make([]byte, 20)...)
		if _, err := parsePiece(raw, new(record.Record)); err == nil {
			t.Errorf("a record of kind %x", kind)
		}
	}
}

// The longest record there may be has a piece whose length an entry can hold.
func TestLongestPieceFits(t *testing.T) {
	r := record.Record{Kind: record.Inline, Expiry: 1, Value: make([]byte, record.MaxInline)}
	if n := len(appendPiece(nil, make([]byte, record.MaxKey), &r)); n > 1<<lengthBits-1 {
		t.Errorf("%d bytes, an entry holds %d", n, 1<<lengthBits-1)
	}
}

func FuzzRoot(f *testing.F) {
	f.Add(sampleRoot().Encode(nil))
	f.Add((&root{groups: []*group{{ptr: pointer(1)}}}).Encode(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var r, again root
		if err := r.decode(raw); err != nil {
			if !errors.Is(err, corrupt.Err) {
				t.Fatal(err)
			}
			return
		}
		if err := again.decode(r.Encode(nil)); err != nil || !reflect.DeepEqual(&again, &r) {
			t.Fatalf("round trip of %+v: %+v %v", &r, &again, err)
		}
	})
}

func FuzzGroup(f *testing.F) {
	f.Add(appendGroup(nil, sampleSlots()), uint8(8))
	f.Add(appendGroup(nil, make([]slot, 1)), uint8(1))
	f.Fuzz(func(t *testing.T, raw []byte, slots uint8) {
		b, err := decodeGroup(raw, int(slots))
		if err != nil {
			return
		}
		again, err := decodeGroup(appendGroup(nil, b.slots), int(slots))
		if err != nil || !reflect.DeepEqual(again.slots, b.slots) {
			t.Fatalf("round trip of %+v: %v", b.slots, err)
		}
		_ = b.memory()
	})
}

func FuzzPiece(f *testing.F) {
	for _, raw := range samplePieces() {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var r, again record.Record
		key, err := parsePiece(raw, &r)
		if err != nil {
			return
		}
		k, err := parsePiece(appendPiece(nil, key, &r), &again)
		if err != nil || !bytes.Equal(k, key) || again.Kind != r.Kind || again.Expiry != r.Expiry || !bytes.Equal(again.Value, r.Value) {
			t.Fatalf("round trip of %x: %+v, %+v, %v", key, r, again, err)
		}
	})
}

// FuzzImage asks everything of an index page that was checked.
func FuzzImage(f *testing.F) {
	var m imager
	f.Add([]byte(m.append(nil, 3, 5, spaced(6, 3))), uint8(3), uint64(5), uint64(5)<<61)
	f.Add([]byte(m.append(nil, 3, 5, nearby(6))), uint8(3), uint64(5), uint64(5)<<61)
	f.Add([]byte(m.append(nil, 3, 5, spaced(maxSegments+1, maxSegments+1))), uint8(3), uint64(5), spaced(9, 1)[2].hash)
	f.Add(make([]byte, imageHead), uint8(0), uint64(0), uint64(1))
	f.Fuzz(func(t *testing.T, raw []byte, depth uint8, number, hash uint64) {
		p := image(raw)
		if depth > maxDepth || checked(p, int(depth), number) != nil {
			return
		}
		list := p.appendTo(nil)
		if len(list) != p.len() {
			t.Fatalf("%d entries of %d", len(list), p.len())
		}
		again := new(imager).append(nil, int(depth), number, list)
		if err := checked(again, int(depth), number); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(again.appendTo(nil), list) {
			t.Fatal("an image of the entries has others")
		}
		hashes := []uint64{hash, number << (64 - depth), hash &^ keptBits}
		for i, e := range list {
			if i%64 == 0 && !p.refers(segment.SetOf(e.at.Segment)) {
				t.Fatalf("entry %d lies in segment %d, to which the page does not refer", i, e.at.Segment)
			}
			if i%(1+len(list)/32) == 0 {
				hashes = append(hashes, list[i].hash, list[i].hash|1)
			}
		}
		for _, h := range hashes {
			if pageOf(h, int(depth)) == number {
				sameAsPlain(t, p, hashesOf(p), h)
			}
		}
	})
}

// FuzzDelta merges changes that were decoded into entries that were.
func FuzzDelta(f *testing.F) {
	f.Add(appendDelta(nil, sampleOps()), []byte(new(imager).append(nil, 3, 5, spaced(6, 3))), uint8(3), uint64(5))
	f.Add(appendDelta(nil, sampleOps()), []byte(new(imager).append(nil, 3, 5, nearby(6))), uint8(3), uint64(5))
	f.Add(appendDelta(nil, nil), make([]byte, imageHead), uint8(0), uint64(0))
	f.Fuzz(func(t *testing.T, raw, page []byte, depth uint8, number uint64) {
		if depth > maxDepth {
			return
		}
		ops, err := decodeDelta(nil, raw, int(depth), number)
		if err != nil {
			return
		}
		again, err := decodeDelta(nil, appendDelta(nil, ops), int(depth), number)
		if err != nil || !slices.Equal(again, ops) {
			t.Fatalf("round trip of %+v: %+v, %v", ops, again, err)
		}
		p := image(page)
		if checked(p, int(depth), number) != nil {
			p = new(imager).append(nil, int(depth), number, nil)
		}
		list := p.appendTo(nil)
		merged := merge(nil, list, ops)
		if want := mergePlainly(list, ops); !slices.Equal(merged, want) {
			t.Fatalf("%+v, want %+v", merged, want)
		}
		if got := new(imager).merge(nil, p, ops); !slices.Equal(got.appendTo(nil), merged) {
			t.Fatalf("%+v, want %+v", got.appendTo(nil), merged)
		}
		if err := checked(new(imager).append(nil, int(depth), number, merged), int(depth), number); err != nil {
			t.Fatal(err)
		}
	})
}
