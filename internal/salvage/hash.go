package salvage

import (
	"errors"

	"github.com/pandodb/pando/internal/layout/hash"
	"github.com/pandodb/pando/internal/progress"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
)

// walkHash hands over what a hash table still gives. Where a part of it is lost that is the keys with certain hashes, which nobody can
// name.
func (r *rescue) walkHash(k root.Keyspace) error {
	lost := &lostKeys{keyspace: k.ID}
	meter := progress.From(r.ctx)
	pair := func(key []byte, rec record.Record) error {
		return r.handOver(meter, k.ID, key, rec)
	}
	missing := func(from, to uint64, err error) error {
		r.report.lose(Loss{Keyspace: k.Name}, err)
		if !lost.addHashes(from, to) {
			r.report.lose(Loss{Keyspace: k.Name}, errors.New("so much is lost that older versions of some of it are not looked for"))
		}
		return nil
	}
	return r.walked(k.ID, lost, hash.Salvage(r.ctx, &r.env, k.ID, k.Root, pair, missing))
}

// hashBlob takes from a blob of a hash table the records that are lost. It does not tell which keys were deleted by then: what was comes
// back.
func (r *rescue) hashBlob(p segment.Pointer, h segment.Header, raw []byte) error {
	id := h.Keyspace
	keys := r.lostIn(id)
	if r.behind && after(p, r.place) {
		keys = &lostKeys{all: true}
	}
	if keys.empty() {
		return nil
	}
	err := hash.Records(h.Kind, raw, func(key []byte, rec record.Record) error { return fromSink(r.takeOlder(id, keys, key, rec)) })
	var failed *sinkError
	if errors.As(err, &failed) {
		return failed.error
	}
	return nil // what makes no sense in a blob is passed by, as in a leaf
}

// takeOlder hands over a record that may be outdated, if its key is lost.
func (r *rescue) takeOlder(id uint32, keys *lostKeys, key []byte, rec record.Record) error {
	if !keys.has(key) {
		return nil
	}
	if ok, err := r.keyspace(id); !ok || err != nil {
		return err
	}
	if rec.Kind == record.Tombstone {
		return r.sink.Delete(id, key)
	}
	return r.putOlder(id, key, rec)
}
