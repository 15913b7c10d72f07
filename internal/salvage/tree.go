package salvage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/hash"
	"github.com/pandodb/pando/internal/layout/tree"
	"github.com/pandodb/pando/internal/page"
	"github.com/pandodb/pando/internal/progress"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/value"
)

// walk hands over what the trees and hash tables of the catalogue still give.
func (r *rescue) walk() error {
	total := int64(0)
	for _, k := range r.catalogue.Keyspaces {
		if layout.Number(k.Layout) == layout.Hash {
			total += hash.Salvageable(k.Root)
		} else {
			total += tree.Salvageable(k.Root)
		}
	}
	meter := progress.From(r.ctx)
	meter.Begin(total)
	for _, k := range r.catalogue.Keyspaces {
		if r.dropped[k.ID] {
			continue
		}
		if err := r.makeKeyspace(k.ID, creation{name: k.Name, options: k.Options}); err != nil {
			return err
		}
		walk := r.walkTree
		if layout.Number(k.Layout) == layout.Hash {
			walk = r.walkHash
		}
		if err := walk(k); err != nil {
			return err
		}
	}
	meter.End()
	return nil
}

func (r *rescue) walkTree(k root.Keyspace) error {
	lost := &lostKeys{}
	var it page.Iterator
	meter := progress.From(r.ctx)
	leaf := func(raw []byte) error {
		if err := it.Reset(raw); err != nil {
			return err
		}
		for it.Next() {
			if err := r.handOver(meter, k.ID, it.Key(), it.Record()); err != nil {
				return err
			}
		}
		return it.Err()
	}
	missing := func(lo, hi []byte, err error) error {
		r.report.lose(Loss{Keyspace: k.Name, Keys: true, Lo: bytes.Clone(lo), Hi: bytes.Clone(hi)}, err)
		if !lost.add(lo, hi) {
			r.report.lose(Loss{Keyspace: k.Name, Keys: true, Lo: bytes.Clone(lo), Hi: bytes.Clone(hi)},
				errors.New("so much is lost that older versions of these keys are not looked for"))
		}
		return nil
	}
	return r.walked(k.ID, lost, tree.Salvage(r.ctx, &r.env, k.ID, k.Root, leaf, missing))
}

// handOver hands a settled record over, and lists its key when its value cannot be read.
func (r *rescue) handOver(meter *progress.Meter, id uint32, key []byte, rec record.Record) error {
	if rec.Kind == record.Tombstone {
		return nil
	}
	meter.Add(1)
	bad, err := r.put(id, key, rec)
	if bad != nil && err == nil {
		r.loseValue(id, key, bad)
	}
	return fromSink(err)
}

// walked takes note of what is lost of a keyspace whose settled records have been walked over. err is how that ended.
func (r *rescue) walked(id uint32, lost *lostKeys, err error) error {
	if !lost.empty() {
		r.lost[id] = lost
	}
	var failed *sinkError
	if errors.As(err, &failed) {
		return failed.error
	}
	return err
}

// put hands one record over. bad tells why its value, which lies apart, cannot be read: then the sink has what it had.
func (r *rescue) put(id uint32, key []byte, rec record.Record) (bad, err error) {
	if rec.Kind == record.Inline {
		r.report.Bytes += int64(len(key) + len(rec.Value))
		return nil, r.sink.Put(id, key, rec.Value, rec.Expiry)
	}
	ref, err := value.DecodeRef(rec.Value)
	if err == nil {
		err = r.putApart(id, key, ref, rec.Expiry)
	}
	var failed *sinkError
	if errors.As(err, &failed) {
		return nil, failed.error
	}
	return err, r.ctx.Err()
}

// putOlder hands over a record that may be outdated. One whose value cannot be read is passed by.
func (r *rescue) putOlder(id uint32, key []byte, rec record.Record) error {
	bad, err := r.put(id, key, rec)
	if bad == nil && err == nil {
		r.report.Older++
	}
	return err
}

// loseValue lists a key whose value cannot be read.
func (r *rescue) loseValue(id uint32, key []byte, bad error) {
	key = bytes.Clone(key)
	r.report.lose(Loss{Keyspace: r.names[id], Keys: true, Lo: key, Hi: successor(key)}, fmt.Errorf("value: %w", bad))
}

// putApart hands a value apart over. Errors of the sink are marked as such, others say that the value cannot be read.
func (r *rescue) putApart(id uint32, key []byte, ref value.Ref, expiry uint64) error {
	if ref.Length <= value.ChunkBytes {
		v, err := value.Read(r.store, r.value[:0], ref)
		if err != nil {
			return err
		}
		r.value = v
		r.report.Bytes += int64(len(key) + len(v))
		return fromSink(r.sink.Put(id, key, v, expiry))
	}
	source := &watched{from: value.NewReader(r.store, ref)}
	err := r.sink.PutReader(id, key, source, expiry)
	if source.err != nil {
		return source.err
	}
	if err == nil {
		r.report.Bytes += int64(len(key)) + int64(ref.Length)
	}
	return fromSink(err)
}

// watched remembers the error of a reader, so that it is told from one of the writer.
type watched struct {
	from io.Reader
	err  error
}

// Read reads on.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// longValue returns the reference to a long value, given its index blob.
func longValue(p segment.Pointer, h segment.Header, content []byte) (value.Ref, bool) {
	if len(content) < 8 {
		return value.Ref{}, false
	}
	total := binary.LittleEndian.Uint64(content)
	return value.Ref{Pointer: p, Length: total, Keyspace: h.Keyspace}, total > value.ChunkBytes && total <= value.MaxValue
}
