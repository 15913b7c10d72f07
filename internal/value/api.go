// Package value keeps values that lie apart from their keys.
package value

import (
	"errors"

	"github.com/pandodb/pando/internal/segment"
)

// RefSize is the length of an encoded Ref.
const RefSize = 28

// Ref says where a value lies.
type Ref struct {
	segment.Pointer
	Length   uint64 // of the value
	Keyspace uint32
	Plain    bool // one blob, stored without compression
}

var errTODO = errors.New("not written yet")

func AppendRef(dst []byte, r Ref) []byte { return dst }
func DecodeRef(b []byte) (Ref, error)    { return Ref{}, errTODO }

// Append stores a whole value and returns where.
func Append(s *segment.Store, ks uint32, codec segment.Codec, key, val []byte) (Ref, error) {
	return Ref{}, errTODO
}

// Read appends the value to dst.
func Read(s *segment.Store, dst []byte, r Ref) ([]byte, error) { return nil, errTODO }

// Walk calls fn for every blob of the value.
func Walk(s *segment.Store, r Ref, fn func(p segment.Pointer, kind segment.Kind) error) error {
	return errTODO
}

// Free accounts every blob of the value dead when w is committed.
func Free(s *segment.Store, r Ref, w *segment.Writer) error { return errTODO }

// Move copies those blobs of the value that lie in segments for which victim is true, and frees the old ones, all through w.
func Move(s *segment.Store, r Ref, key []byte, codec segment.Codec, w *segment.Writer, victim func(segment uint32) bool) (Ref, error) {
	return Ref{}, errTODO
}

// Owner splits the raw payload of a KindValue blob.
func Owner(raw []byte) (key, val []byte, err error) { return nil, nil, errTODO }
