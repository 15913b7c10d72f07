package execute

import (
	"encoding/binary"
	"fmt"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/path"
	"github.com/pandodb/pando/document/internal/plan"
	"github.com/pandodb/pando/document/internal/scratch"
	"github.com/pandodb/pando/document/internal/sortkey"
)

// sorter gives the rows of its input in an order.
type sorter struct {
	x      *run
	s      *plan.Sort
	st     *plan.Stats
	in     node
	out    *scratch.Sorter
	key    []byte
	packed []byte
}

// How a row is packed for sorting: its kind, the length of its key, the key, and the record or document.
const (
	packedRecord = 0
	packedDoc    = 1
)

func (n *sorter) next(r *row) bool {
	if n.out == nil && !n.fill() {
		n.st.Done = true
		return false
	}
	n.st.Works++
	_, packed, ok, err := n.out.Next()
	if err != nil || !ok || !n.x.tick() {
		n.st.Done = true
		return err != nil && n.x.fail(err)
	}
	if !unpack(r, packed) {
		return n.x.fail(fmt.Errorf("a sorted row cannot be read: %w", pando.ErrCorrupt))
	}
	n.st.Advanced++
	return true
}

// fill sorts the whole input.
func (n *sorter) fill() bool {
	if !n.x.alive() {
		return false
	}
	pattern, err := sortkey.Parse(n.s.Pattern, n.x.collation())
	if err != nil {
		return n.x.fail(err)
	}
	n.out = scratch.NewSorter(n.x.allowed, n.s.Limit)
	var r row
	for n.in.next(&r) {
		n.st.Works++
		if err := n.take(pattern, &r); err != nil {
			return n.x.fail(err)
		}
	}
	n.in.close()
	if n.x.err != nil {
		return false
	}
	err = n.out.Sort()
	n.st.Memory, n.st.Spilled, _ = n.out.Stats()
	return err == nil || n.x.fail(err)
}

// take adds a row.
func (n *sorter) take(pattern *sortkey.Pattern, r *row) error {
	var doc path.Fields
	if !n.x.complete(r) {
		return n.x.err
	}
	kind, body := byte(packedRecord), r.stored
	if r.stored == nil {
		made, err := n.x.document(r)
		if err != nil {
			return err
		}
		if kind, body, doc = packedDoc, made, path.Document(made); r.stored != nil {
			kind, body = packedRecord, r.stored
		}
	}
	if kind == packedRecord {
		if err := n.x.view.Reset(body); err != nil {
			return fmt.Errorf("%s: %w", n.x.c.Namespace, err)
		}
		doc = n.x.view
	}
	var err error
	if n.key, err = pattern.Append(n.key[:0], doc); err != nil {
		return err
	}
	if kind == packedRecord && !n.x.shown() {
		return n.x.err
	}
	n.packed = pack(n.packed[:0], kind, r.key, body)
	return n.out.Add(n.key, n.packed)
}

func pack(dst []byte, kind byte, key, body []byte) []byte {
	dst = append(dst, kind)
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	return append(append(dst, key...), body...)
}

func unpack(r *row, packed []byte) bool {
	if len(packed) < 2 {
		return false
	}
	size, n := binary.Uvarint(packed[1:])
	rest := packed[1:]
	if n <= 0 || size > uint64(len(rest)-n) {
		return false
	}
	rest = rest[n:]
	*r = row{key: rest[:size:size]}
	if packed[0] == packedDoc {
		r.doc = rest[size:]
	} else {
		r.stored = rest[size:]
	}
	return true
}

func (n *sorter) close() {
	n.in.close()
	if n.out != nil {
		if err := n.out.Close(); err != nil {
			n.x.fail(err)
		}
	}
}
