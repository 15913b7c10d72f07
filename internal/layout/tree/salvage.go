package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/segment"
)

// Salvage reads all that can be read under an encoded root, from the disk: it calls leaf with the content of each leaf whose
// blobs all verify, its deltas folded in, and lost for each stretch of keys of which a node, leaf or delta does not. lo is
// nil at the start of the keyspace, hi at its end. Both kinds of call come in the order of the keys; their slices are valid during
// the call. An error of either ends the walk. Only env.Store is used.
func Salvage(ctx context.Context, env *layout.Environment, keyspace uint32, encoded []byte, leaf func(raw []byte) error, lost func(lo, hi []byte, err error) error) error {
	if len(encoded) == 0 {
		return nil
	}
	info, err := decodeRoot(encoded)
	if err != nil {
		return lost(nil, nil, fmt.Errorf("root of keyspace %d: %w", keyspace, err))
	}
	s := &salvager{ctx: ctx, r: &root{env: env, keyspace: keyspace}, leaf: leaf, lost: lost}
	return s.node(info.ptr, info.level, nil, nil)
}

// Salvageable returns how many records lie under an encoded root, expired ones included, or somewhat more than that; 0 when it does
// not verify.
func Salvageable(encoded []byte) int64 {
	info, err := decodeRoot(encoded)
	if err != nil {
		return 0
	}
	n, _ := splitCount(info.count)
	return n
}

// salvager walks over what may be damaged.
type salvager struct {
	ctx  context.Context
	r    *root
	leaf func(raw []byte) error
	lost func(lo, hi []byte, err error) error
	s    layout.Scratch
	it   page.Iterator
}

// unreadable passes damage on as a lost stretch of keys. Where the device fails to read, the bytes are lost as well; a call
// that was cancelled is not damage.
func (s *salvager) unreadable(lo, hi []byte, err error) error {
	if s.ctx.Err() != nil || errors.Is(err, segment.ErrClosed) {
		return err
	}
	return s.lost(lo, hi, err)
}

func (s *salvager) node(p segment.Pointer, level int, lo, hi []byte) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	raw, err := s.r.readBlob(&s.s.Blob, p, segment.KindInner)
	var b *body
	if err == nil {
		b, err = decodeNode(raw, level)
	}
	if err == nil && b.len() > 1 && (bytes.Compare(b.separator(1), lo) < 0 || (hi != nil && bytes.Compare(b.separator(b.len()-1), hi) >= 0)) {
		err = corrupt.New(segment.FilePath(p.Segment), int64(p.Offset), int64(p.Length), "separators lie outside of the node's bounds")
	}
	if err != nil {
		return s.unreadable(lo, hi, err)
	}
	for i := range b.slots {
		clo, chi := b.bounds(i, lo, hi)
		if level > 0 {
			err = s.node(b.slots[i].ptr, level-1, clo, chi)
		} else {
			err = s.page(b, i, clo, chi)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// page hands out one leaf. It is read to its end first, so that a leaf is either whole or lost.
func (s *salvager) page(b *body, i int, lo, hi []byte) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	raw, err := s.r.readLeaf(&s.s, b, i)
	if err == nil {
		err = s.it.Reset(raw)
	}
	if err != nil {
		return s.unreadable(lo, hi, err)
	}
	for s.it.Next() {
		if key := s.it.Key(); bytes.Compare(key, lo) < 0 || (hi != nil && bytes.Compare(key, hi) >= 0) {
			p := b.slots[i].ptr
			return s.lost(lo, hi, corrupt.New(segment.FilePath(p.Segment), int64(p.Offset), int64(p.Length), "key %x lies outside of the leaf's bounds", key))
		}
	}
	if err := s.it.Err(); err != nil {
		return s.lost(lo, hi, s.r.badLeaf(b, i, err))
	}
	return s.leaf(raw)
}
