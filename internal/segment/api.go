package segment

import (
	"context"
	"errors"

	"github.com/pandodb/pando/vfs"
)

const (
	HeaderSize     = 24
	FileHeaderSize = 64
)

type Kind uint8

const (
	KindLeaf Kind = iota + 1
	KindDelta
	KindInner
	KindFilter
	KindValue
	KindValueIndex
	KindCatalogue
	KindDictionary
)

type Codec uint8

const (
	None Codec = iota
	S2
	Zstd
	ZstdDictionary
)

type Class uint8

const (
	Nodes Class = iota + 1
	Values
)

type Header struct {
	Sum        uint64
	Kind       Kind
	Codec      Codec
	Dictionary uint16
	Keyspace   uint32
	Stored     uint32
	Raw        uint32
}

type Options struct {
	FS           vfs.FS
	Dir          string // the database directory; segments lie in its subdirectory "segments"
	Database     [16]byte
	SegmentBytes int64 // 0 = 64 MiB
	ReadOnly     bool
}

type Info struct {
	ID      uint32
	Class   Class
	Size    int64
	Live    int64
	LastSeq uint64
}

type Buffer struct{ stored, raw []byte }

type Store struct{}

type Writer struct{}

var errTODO = errors.New("not written yet")

func Open(o Options, table []Info, nextID uint32) (*Store, error)   { return nil, errTODO }
func (s *Store) NewWriter(class Class, keyspaceHint uint32) *Writer { return &Writer{} }
func (s *Store) Read(p Pointer, buf *Buffer) (raw []byte, h Header, err error) {
	return nil, Header{}, errTODO
}
func (s *Store) AppendValue(ks uint32, codec Codec, parts ...[]byte) (Pointer, error) {
	return Pointer{}, errTODO
}
func (s *Store) SyncValues() error                               { return errTODO }
func (s *Store) Live(p Pointer, delta int64)                     {}
func (s *Store) Segments() []Info                                { return nil }
func (s *Store) NextID() uint32                                  { return 0 }
func (s *Store) SetLastSeq(segment uint32, seq uint64)           {}
func (s *Store) SealValues()                                     {}
func (s *Store) Orphans() []Info                                 { return nil }
func (s *Store) Adopt(id uint32) error                           { return errTODO }
func (s *Store) Remove(id uint32) error                          { return errTODO }
func (s *Store) AddDictionary(id uint16, raw []byte) error       { return errTODO }
func TrainDictionary(samples [][]byte, size int) ([]byte, error) { return nil, errTODO }
func (s *Store) Close() error                                    { return errTODO }
func (s *Store) Scan(ctx context.Context, id uint32, fn func(p Pointer, h Header, raw []byte) error, bad func(offset, length int64, err error)) error {
	return errTODO
}

func (w *Writer) Append(kind Kind, ks uint32, codec Codec, dict uint16, raw []byte) (Pointer, error) {
	return Pointer{}, errTODO
}
func (w *Writer) Free(p Pointer) {}
func (w *Writer) Flush() error   { return errTODO }
func (w *Writer) Sync() error    { return errTODO }
func (w *Writer) Commit()        {}
func (w *Writer) Abort() error   { return errTODO }
func (w *Writer) Written() int64 { return 0 }
func (w *Writer) Table() []Info  { return nil } // the store's table as it will be after Commit
