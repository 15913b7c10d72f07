package root

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
)

// catalogueVersion is the first field of an encoded catalogue.
const catalogueVersion = 1

// Keyspace is what the catalogue knows of one keyspace.
type Keyspace struct {
	ID      uint32
	Name    string // UTF-8, of at most 255 bytes; empty only for the default keyspace, if its owner wishes
	Layout  uint8
	Records uint64 // under Root, as far as its layout counted them
	Options []byte // what the keyspace was created with, as its layout encodes it
	Root    []byte // where its settled data lies, as its layout encodes it; empty: nothing is settled
}

// Dictionary says where a compression dictionary lies.
type Dictionary struct {
	ID      uint16
	Pointer segment.Pointer
}

// Catalogue is everything that is reachable from one root slot. Its lists are sorted by ID, and no ID is in a list twice.
//
// Seq, Log and Clock are those of the slot that refers to it: with them a database whose ROOT is lost can still be read.
type Catalogue struct {
	Seq          uint64
	Log          Position
	Clock        uint64
	NextKeyspace uint32 // above the ID of every keyspace that ever was
	Keyspaces    []Keyspace
	Segments     []segment.Info
	Dictionaries []Dictionary
}

const (
	infoSize       = 4 + 1 + 8 + 8 + 8
	dictionarySize = 2 + segment.PointerSize
	keyspaceMin    = 4 + 1 + 8 + 1 + 4 + 4 // with an empty name, options and root
)

// Encode appends the encoded form of c to dst. c's lists must be sorted by ID; Decode refuses them otherwise.
func (c *Catalogue) Encode(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, catalogueVersion)
	dst = binary.LittleEndian.AppendUint64(dst, c.Seq)
	dst = binary.LittleEndian.AppendUint64(dst, c.Log.Segment)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(c.Log.Offset))
	dst = binary.LittleEndian.AppendUint64(dst, c.Clock)
	dst = binary.LittleEndian.AppendUint32(dst, c.NextKeyspace)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(c.Keyspaces)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(c.Segments)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(c.Dictionaries)))
	for _, k := range c.Keyspaces {
		dst = binary.LittleEndian.AppendUint32(dst, k.ID)
		dst = append(dst, k.Layout)
		dst = binary.LittleEndian.AppendUint64(dst, k.Records)
		dst = append(dst, byte(len(k.Name)))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(k.Options)))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(k.Root)))
		dst = append(dst, k.Name...)
		dst = append(dst, k.Options...)
		dst = append(dst, k.Root...)
	}
	for _, i := range c.Segments {
		dst = binary.LittleEndian.AppendUint32(dst, i.ID)
		dst = append(dst, byte(i.Class))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(i.Size))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(i.Live))
		dst = binary.LittleEndian.AppendUint64(dst, i.LastSeq)
	}
	for _, d := range c.Dictionaries {
		dst = binary.LittleEndian.AppendUint16(dst, d.ID)
		dst = segment.AppendPointer(dst, d.Pointer)
	}
	return dst
}

// reader takes fields from the front of b; after the first that is missing, all are zero and short is true.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.b) {
		r.b, r.short = nil, true
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u8() uint8 {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Decode reads an encoded catalogue. Its errors are corrupt.Err. Options and Root of the keyspaces alias b.
func Decode(b []byte) (*Catalogue, error) {
	c, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("decode catalogue: %w: %w", err, corrupt.Err)
	}
	return c, nil
}

func decode(b []byte) (*Catalogue, error) {
	r := &reader{b: b}
	if found := r.u32(); found != catalogueVersion && !r.short {
		return nil, fmt.Errorf("format %d, known is %d", found, catalogueVersion)
	}
	c := &Catalogue{Seq: r.u64(), Log: Position{Segment: r.u64(), Offset: int64(r.u64())}, Clock: r.u64(), NextKeyspace: r.u32()}
	keyspaces, segments, dictionaries := int64(r.u32()), int64(r.u32()), int64(r.u32())
	if need := keyspaces*keyspaceMin + segments*infoSize + dictionaries*dictionarySize; r.short || need > int64(len(r.b)) {
		return nil, fmt.Errorf("%d bytes are too few", len(b))
	}
	if c.Log.Offset < 0 {
		return nil, fmt.Errorf("log position %d", c.Log.Offset)
	}
	if keyspaces > 0 { // as many as there are bytes for, at most
		c.Keyspaces = make([]Keyspace, 0, keyspaces)
	}
	for range keyspaces {
		k, err := r.keyspace()
		if err != nil {
			return nil, err
		}
		if k.ID >= c.NextKeyspace {
			return nil, fmt.Errorf("keyspace %d, though the next one is %d", k.ID, c.NextKeyspace)
		}
		c.Keyspaces = append(c.Keyspaces, k)
	}
	for range segments {
		i := segment.Info{ID: r.u32(), Class: segment.Class(r.u8()), Size: int64(r.u64()), Live: int64(r.u64()), LastSeq: r.u64()}
		if i.Class != segment.Nodes && i.Class != segment.Values || i.ID == 0 || i.Size < 0 {
			return nil, fmt.Errorf("segment %d of class %d and size %d", i.ID, i.Class, i.Size)
		}
		c.Segments = append(c.Segments, i)
	}
	for range dictionaries {
		d := Dictionary{ID: r.u16()}
		pointer, err := segment.DecodePointer(r.bytes(segment.PointerSize))
		if err != nil {
			return nil, fmt.Errorf("dictionary %d: %w", d.ID, err)
		}
		d.Pointer = pointer
		c.Dictionaries = append(c.Dictionaries, d)
	}
	if r.short || len(r.b) > 0 {
		return nil, fmt.Errorf("%d bytes too many or too few", len(r.b))
	}
	return c, c.check()
}

func (r *reader) keyspace() (Keyspace, error) {
	k := Keyspace{ID: r.u32(), Layout: r.u8(), Records: r.u64()}
	name, options, root := int(r.u8()), int64(r.u32()), int64(r.u32())
	if r.short || int64(name)+options+root > int64(len(r.b)) {
		return Keyspace{}, fmt.Errorf("keyspace %d is cut short", k.ID)
	}
	k.Name = string(r.bytes(name))
	k.Options, k.Root = r.bytes(int(options)), r.bytes(int(root))
	if !utf8.ValidString(k.Name) {
		return Keyspace{}, fmt.Errorf("name of keyspace %d is not UTF-8", k.ID)
	}
	return k, nil
}

// check tells whether IDs ascend and names are unique.
func (c *Catalogue) check() error {
	if !ascending(c.Keyspaces, func(k Keyspace) uint32 { return k.ID }) {
		return fmt.Errorf("keyspaces out of order")
	}
	if !ascending(c.Segments, func(i segment.Info) uint32 { return i.ID }) {
		return fmt.Errorf("segments out of order")
	}
	if !ascending(c.Dictionaries, func(d Dictionary) uint16 { return d.ID }) {
		return fmt.Errorf("dictionaries out of order")
	}
	names := make(map[string]bool, len(c.Keyspaces))
	for _, k := range c.Keyspaces {
		if names[k.Name] {
			return fmt.Errorf("two keyspaces have the name %q", k.Name)
		}
		names[k.Name] = true
	}
	return nil
}

func ascending[E any, ID cmp.Ordered](list []E, id func(E) ID) bool {
	out := slices.IsSortedFunc(list, func(a, b E) int { return cmp.Compare(id(a), id(b)) })
	for i := 1; out && i < len(list); i++ {
		out = id(list[i-1]) != id(list[i])
	}
	return out
}
