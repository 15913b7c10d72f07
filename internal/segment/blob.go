package segment

import (
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando/internal/parts"
	"github.com/zeebo/xxh3"
)

// Kind says what a blob holds. The numbers are on disk: never change them.
type Kind uint8

const (
	KindLeaf       Kind = 1  // one leaf of a layout
	KindDelta      Kind = 2  // changes to a leaf
	KindInner      Kind = 3  // an inner node
	KindFilter     Kind = 4  // filters of the leaves under an inner node
	KindValue      Kind = 5  // a value, or one chunk of a long value, and its key (package value)
	KindValueIndex Kind = 6  // where the chunks of a long value lie (package value)
	KindCatalogue  Kind = 7  // what is reachable (package root)
	KindDictionary Kind = 8  // a compression dictionary
	KindPieces     Kind = 9  // records, each with a checksum of its own
	KindIndex      Kind = 10 // where such records lie
	KindIndexDelta Kind = 11 // changes to that

	maxKind = 31 // kinds of later versions; anything above cannot be a header
)

// Class says what kind of segment file a blob lies in.
type Class uint8

const (
	Nodes  Class = 1 // written by one Writer, reachable from roots
	Values Class = 2 // written by AppendValue or by a Writer, reachable from roots and from the log
)

// The blob header, as docs/format/segment.md lists it.
const (
	offsetSum        = 0
	offsetKind       = 8
	offsetCodec      = 9
	offsetDictionary = 10
	offsetKeyspace   = 12
	offsetStored     = 16
	offsetRaw        = 20

	// HeaderSize is the length of a blob's header in bytes.
	HeaderSize = 24
	// MaxBlob is the most that a blob may hold, before as well as after compression.
	MaxBlob = 64 << 20
)

// Header is what stands in front of a blob's payload.
type Header struct {
	Sum        uint64
	Kind       Kind
	Codec      Codec
	Dictionary uint16 // number of the dictionary when Codec is ZstdDictionary, else 0
	Keyspace   uint32
	Stored     uint32 // bytes of payload in the file
	Raw        uint32 // bytes of payload when decompressed
}

// put writes h into the first HeaderSize bytes of b.
func (h Header) put(b []byte) {
	_ = b[HeaderSize-1]
	binary.LittleEndian.PutUint64(b[offsetSum:], h.Sum)
	b[offsetKind] = byte(h.Kind)
	b[offsetCodec] = byte(h.Codec)
	binary.LittleEndian.PutUint16(b[offsetDictionary:], h.Dictionary)
	binary.LittleEndian.PutUint32(b[offsetKeyspace:], h.Keyspace)
	binary.LittleEndian.PutUint32(b[offsetStored:], h.Stored)
	binary.LittleEndian.PutUint32(b[offsetRaw:], h.Raw)
}

// parseHeader reads a header without judging it.
func parseHeader(b []byte) Header {
	_ = b[HeaderSize-1]
	return Header{
		Sum:        binary.LittleEndian.Uint64(b[offsetSum:]),
		Kind:       Kind(b[offsetKind]),
		Codec:      Codec(b[offsetCodec]),
		Dictionary: binary.LittleEndian.Uint16(b[offsetDictionary:]),
		Keyspace:   binary.LittleEndian.Uint32(b[offsetKeyspace:]),
		Stored:     binary.LittleEndian.Uint32(b[offsetStored:]),
		Raw:        binary.LittleEndian.Uint32(b[offsetRaw:]),
	}
}

// check tells why h can be no header of ours, or nil.
func (h *Header) check() error {
	switch {
	case h.Kind == 0 || h.Kind > maxKind:
		return fmt.Errorf("blob of unknown kind %d", h.Kind)
	case h.Codec > maxCodec:
		return fmt.Errorf("blob of unknown codec %d", h.Codec)
	case h.Codec != ZstdDictionary && h.Dictionary != 0:
		return fmt.Errorf("dictionary %d named without use", h.Dictionary)
	case h.Stored > MaxBlob || h.Raw > MaxBlob || (h.Stored > h.Raw) != (h.Codec == Parts):
		return fmt.Errorf("impossible lengths: %d bytes stored for %d", h.Stored, h.Raw)
	case h.Codec == None && h.Stored != h.Raw:
		return fmt.Errorf("%d bytes stored for %d without compression", h.Stored, h.Raw)
	}
	return nil
}

// place is the seed that binds a blob to its database, segment and offset.
func (s *Store) place(segment, offset uint32) uint64 {
	return s.databaseHash ^ (uint64(segment)<<32 | uint64(offset))
}

// payloadSeed folds the fields of an encoded header into the seed for the payload's hash. Hashing the two parts one into the
// other, instead of as one stretch, lets a value be hashed where it lies, without its header in front of it.
func payloadSeed(header []byte, place uint64) uint64 {
	return xxh3.HashSeed(header[offsetKind:HeaderSize], place)
}

// sum is the checksum of a blob of which header and payload are given.
func sum(header, payload []byte, place uint64) uint64 {
	return xxh3.HashSeed(payload, payloadSeed(header, place))
}

// proves checks the whole of a blob, of which header and payload are given, against the checksum in its header: it covers the
// payload, or in a page of parts the table, which covers the rest.
func (h *Header) proves(header, payload []byte, place uint64) error {
	if h.Codec.parted() {
		var t parts.Table
		if err := h.table(&t, header, payload, len(payload), place); err != nil {
			return err
		}
		from, length := t.Place(t.All())
		return t.Verify(t.All(), payload[from:from+length])
	}
	if got := sum(header, payload, place); got != h.Sum {
		return fmt.Errorf("checksum mismatch: %016x, want %016x", got, h.Sum)
	}
	return nil
}

// table verifies the table in a stored page of parts, of so many bytes, of which at least the table is given, and reads it into t.
func (h *Header) table(t *parts.Table, header, payload []byte, length int, place uint64) error {
	covered, err := parts.Covered(payload, length)
	if err != nil {
		return err
	}
	if covered > len(payload) {
		return fmt.Errorf("a table of %d bytes, more than were read", covered)
	}
	if got := sum(header, payload[:covered], place); got != h.Sum {
		return fmt.Errorf("checksum mismatch: %016x, want %016x", got, h.Sum)
	}
	if h.Codec == Stencil {
		return t.ParseStencil(payload[:covered], length)
	}
	return t.Parse(payload[:covered], length)
}

// seal fills in the header in front of the payload in blob and returns where and what the blob is.
func (s *Store) seal(blob []byte, h Header, segment, offset uint32) Pointer {
	h.put(blob)
	covered := blob[HeaderSize:]
	if h.Codec.parted() {
		if n, err := parts.Covered(covered, len(covered)); err == nil {
			covered = covered[:n]
		}
	}
	h.Sum = sum(blob, covered, s.place(segment, offset))
	binary.LittleEndian.PutUint64(blob[offsetSum:], h.Sum)
	return Pointer{Segment: segment, Offset: offset, Length: uint32(len(blob)), Sum: h.Sum}
}

// verify checks blob, which was read from p, and returns its header.
func (s *Store) verify(blob []byte, p Pointer) (Header, error) {
	h := parseHeader(blob)
	if err := h.belongs(p); err != nil {
		return h, err
	}
	return h, h.proves(blob, blob[HeaderSize:], s.place(p.Segment, p.Offset))
}

// belongs tells why a header read from p, which nothing has proven yet, cannot be that of the blob that p refers to, or nil.
func (h *Header) belongs(p Pointer) error {
	if h.Sum != p.Sum {
		return fmt.Errorf("another blob than the one referred to: checksum %016x, want %016x", h.Sum, p.Sum)
	}
	if err := h.check(); err != nil {
		return err
	}
	if p.Length-HeaderSize != h.Stored {
		return fmt.Errorf("blob of %d bytes says that it has %d", p.Length, HeaderSize+h.Stored)
	}
	return nil
}
