package salvage

import (
	"bytes"

	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/progress"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/value"
)

// scan looks for what the trees and hash tables did not give: first in value blobs, which know no more than their key, then in leaves,
// deltas and records of hash tables in the order in which they were written.
func (r *rescue) scan() error {
	if !r.blind && !r.behind && len(r.lost) == 0 {
		return nil
	}
	if r.blind || len(r.lost) > 0 {
		if err := r.scanValues(); err != nil {
			return err
		}
	}
	var it page.Iterator
	return r.eachBlob(func(p segment.Pointer, h segment.Header, raw []byte) error {
		if h.Kind == segment.KindLeaf || h.Kind == segment.KindDelta {
			return r.pageBlob(&it, p, h, raw)
		}
		return r.hashBlob(p, h, raw)
	})
}

// eachBlob calls fn for every blob that verifies, in the order in which they were written.
func (r *rescue) eachBlob(fn func(p segment.Pointer, h segment.Header, raw []byte) error) error {
	total := int64(0)
	for _, s := range r.segments {
		total += s.Size
	}
	meter := progress.From(r.ctx)
	meter.Begin(total)
	defer meter.End()
	for _, s := range r.segments {
		err := r.store.Scan(r.ctx, s.ID, func(p segment.Pointer, h segment.Header, raw []byte) error {
			meter.Add(int64(p.Length))
			return fromSink(fn(p, h, raw))
		}, nil)
		if err := r.scanFailed(s.ID, err); err != nil {
			return err
		}
	}
	return nil
}

// scanValues takes the values whose keys are lost. Of a long one the last chunk looks like a value: where those lie is found out first.
func (r *rescue) scanValues() error {
	v := values{chunks: map[uint64]bool{}, last: map[segment.Pointer]bool{}}
	err := r.eachBlob(func(_ segment.Pointer, h segment.Header, raw []byte) error {
		if h.Kind != segment.KindValueIndex {
			return nil
		}
		if ref, err := value.LastChunk(raw); err == nil {
			v.last[ref.Pointer] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.eachBlob(func(p segment.Pointer, h segment.Header, raw []byte) error {
		if h.Kind != segment.KindValue && h.Kind != segment.KindValueIndex || v.last[p] {
			return nil
		}
		return r.valueBlob(p, h, raw, &v)
	})
}

// values is what scanValues knows of chunks.
type values struct {
	last   map[segment.Pointer]bool // the last ones of long values
	chunks map[uint64]bool          // the hashes of the keys of long values whose index has not been met
}

// valueBlob takes a value whose key is lost. A blob does not say whether it is a value or the last chunk of a long one, whose index may be
// lost: one that follows on a chunk of the same key is not believed to be a value.
func (r *rescue) valueBlob(p segment.Pointer, h segment.Header, raw []byte, v *values) error {
	key, content, err := value.Owner(raw)
	if err != nil || !r.lostIn(h.Keyspace).has(key) {
		return nil
	}
	if ok, err := r.keyspace(h.Keyspace); !ok || err != nil {
		return err
	}
	hash := record.Hash(h.Keyspace, key)
	if h.Kind == segment.KindValueIndex {
		delete(v.chunks, hash)
		ref, ok := longValue(p, h, content)
		if !ok {
			return nil
		}
		return r.putOlder(h.Keyspace, key, record.Record{Kind: record.Apart, Value: value.AppendRef(nil, ref)})
	}
	if len(content) == value.ChunkBytes {
		v.chunks[hash] = true
	}
	if v.chunks[hash] {
		return nil
	}
	return r.putOlder(h.Keyspace, key, record.Record{Kind: record.Inline, Value: content})
}

// pageBlob takes from a leaf or delta what is lost. A leaf tells of all keys between its first and its last one, so that
// those which it does not have were deleted by then.
func (r *rescue) pageBlob(it *page.Iterator, p segment.Pointer, h segment.Header, raw []byte) error {
	id := h.Keyspace
	keys := r.lostIn(id)
	if r.behind && after(p, r.place) {
		keys = &lostKeys{all: true}
	}
	if keys.empty() {
		return nil
	}
	if ok, err := r.keyspace(id); !ok || err != nil {
		return err
	}
	if h.Kind == segment.KindLeaf {
		if err := r.forget(it, keys, id, raw); err != nil {
			return err
		}
	}
	if it.Reset(raw) != nil {
		return nil
	}
	for it.Next() {
		if !keys.has(it.Key()) {
			continue
		}
		var err error
		if rec := it.Record(); rec.Kind == record.Tombstone {
			err = r.sink.Delete(id, it.Key())
		} else {
			err = r.putOlder(id, it.Key(), rec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forget removes what a leaf says is not there. Under a key whose value it cannot give, what was found so far stays.
func (r *rescue) forget(it *page.Iterator, keys *lostKeys, id uint32, raw []byte) error {
	if it.Reset(raw) != nil || !it.Next() {
		return nil
	}
	remove := func(lo, hi []byte) error { return r.sink.DeleteRange(id, lo, hi) }
	from := bytes.Clone(it.Key())
	var last []byte
	for more := true; more; more = it.Next() {
		last = append(last[:0], it.Key()...)
		if it.Record().Kind != record.Apart || !keys.has(last) || r.readable(it.Record().Value) {
			continue
		}
		if err := keys.within(from, last, remove); err != nil {
			return err
		}
		if from = successor(last); from == nil {
			return nil
		}
	}
	if it.Err() != nil {
		return nil
	}
	return keys.within(from, successor(last), remove)
}

// readable reports whether the value of a reference is whole.
func (r *rescue) readable(encoded []byte) bool {
	ref, err := value.DecodeRef(encoded)
	return err == nil && value.Verify(r.store, ref) == nil
}
