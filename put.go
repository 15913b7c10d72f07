package pando

import (
	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/engine"
	"github.com/pandodb/pando/internal/value"
)

// putter is what a single write needs: pooled, so that it allocates nothing.
type putter struct {
	enc command.Encoder
	req commit.Request
}

// keptBuffer is how large a buffer may be to be kept for the next write.
const keptBuffer = 256 << 10

// putter takes an empty one from the pool. commit gives it back.
func (db *DB) putter() *putter { return db.puts.Get().(*putter) }

// commit commits what was encoded.
func (db *DB) commit(p *putter) error { return db.commitWith(p, db.e.Syncs()) }

// commitWith commits what was encoded, and waits for a sync or not.
func (db *DB) commitWith(p *putter, sync bool) error {
	p.req.Commands, p.req.Count, p.req.Bytes = p.enc.Payload(), p.enc.Count(), p.enc.Data()
	p.req.Sync, p.req.Validate = sync, nil
	err := db.e.Commit(&p.req)
	p.req.Commands = nil
	p.enc.Release(keptBuffer)
	db.puts.Put(p)
	return err
}

// putApart stores a value apart and commits the reference, and waits for a sync or not.
func (k *Keyspace) putApart(key []byte, expiry uint64, sync bool, store func(*engine.ValueHold) (value.Ref, error)) error {
	hold := k.db.e.HoldValues()
	defer hold.Release() // also where the reader of the value panics
	ref, err := store(hold)
	if err != nil {
		return keyspaceError("put into", k.ks, err)
	}
	if err := k.dropped(); err != nil { // while the value came
		return hold.End(err)
	}
	p := k.db.putter()
	p.enc.PutApart(k.ks.ID, key, value.AppendRef(nil, ref), expiry)
	return hold.End(k.db.commitWith(p, sync))
}
