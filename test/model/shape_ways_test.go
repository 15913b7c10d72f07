package model

import (
	"bytes"
	"errors"

	"github.com/pandodb/pando"
)

// way is how the writes of a step are committed.
type way struct {
	name   string
	commit func(p *plot, writes []write)
}

var ways = []way{
	{"each", func(p *plot, writes []write) { p.write(p.w.ks[p.ks], writes) }},
	{"unsynced", func(p *plot, writes []write) {
		p.puts(writes, p.w.ks[p.ks].PutUnsynced)
		p.w.must(p.w.db.SyncCommits(), "sync commits")
	}},
	{"streamed", func(p *plot, writes []write) {
		p.puts(writes, func(key, value []byte) error { return p.w.ks[p.ks].PutReader(key, bytes.NewReader(value)) })
	}},
	{"batch", batch},
	{"batches", func(p *plot, writes []write) {
		for len(writes) > 0 {
			n := min(len(writes), 1+p.w.rng.IntN(30))
			batch(p, writes[:n])
			writes = writes[n:]
		}
	}},
	{"batchOverItself", func(p *plot, writes []write) { // each key is written before, and some are deleted behind and written once more
		b := p.w.db.NewBatch()
		in := b.In(p.w.ks[p.ks])
		p.spoil(in, writes)
		p.write(in, writes)
		p.spoil(in, writes)
		p.write(in, writes)
		p.w.must(p.w.db.Write(b), "write batch")
	}},
	{"update", func(p *plot, writes []write) { p.update(func(tx *pando.Tx) error { p.write(tx, writes); return nil }) }},
	{"updateThatReads", func(p *plot, writes []write) { // and sees, each time, what it has written until then
		mine := p.w.state.Clone()
		p.update(func(tx *pando.Tx) error {
			for part := max(len(writes)/3, 1); len(writes) > 0; writes = writes[min(part, len(writes)):] {
				now := writes[:min(part, len(writes))]
				p.write(tx, now)
				p.apply(note{mine, func(event) {}}, now)
				p.w.checkAll(tx, mine, p.ks)
			}
			return nil
		})
	}},
	{"updateRolledBack", func(p *plot, writes []write) {
		p.update(func(tx *pando.Tx) error {
			half := len(writes) / 2
			p.write(tx, writes[:half])
			point := tx.Savepoint()
			p.spoil(tx, writes)
			p.w.must(tx.RollbackTo(point), "roll back")
			p.write(tx, writes[half:])
			point = tx.Savepoint()
			p.spoil(tx, writes)
			p.w.must(tx.RollbackTo(point), "roll back")
			return nil
		})
	}},
	{"updateGivenUp", func(p *plot, writes []write) {
		err := p.w.db.Update(func(tx *pando.Tx) error {
			p.spoil(tx.In(p.w.ks[p.ks]), writes)
			return errGiveUp
		})
		if !errors.Is(err, errGiveUp) {
			p.w.fail("update that gives up: %v", err)
		}
		batch(p, writes)
	}},
	{"optimistic", func(p *plot, writes []write) {
		tx, err := p.w.db.Begin(true)
		p.w.must(err, "begin")
		half := len(writes) / 2
		p.write(tx.In(p.w.ks[p.ks]), writes[:half])
		p.w.must(p.w.settle(), "settle")
		p.write(tx.In(p.w.ks[p.ks]), writes[half:])
		p.w.must(tx.Commit(), "commit")
	}},
}

func batch(p *plot, writes []write) {
	b := p.w.db.NewBatch()
	p.write(b.In(p.w.ks[p.ks]), writes)
	p.w.must(p.w.db.Write(b), "write batch")
}

func (p *plot) update(fn func(*pando.Tx) error) {
	p.w.must(p.w.db.Update(func(tx *pando.Tx) error { return fn(tx.In(p.w.ks[p.ks])) }), "update")
}

// write does writes. The slices are not needed any more when a call returns.
func (p *plot) write(to writer, writes []write) {
	var key, value []byte
	for _, c := range writes {
		key, value = append(key[:0], c.key...), append(value[:0], c.value...)
		switch {
		case c.bounds != nil:
			p.w.must(to.DeleteRange(c.bounds.Lo, c.bounds.Hi), "delete range")
		case c.value == nil:
			p.w.must(to.Delete(key), "delete")
		case !c.expires.IsZero():
			p.w.must(to.(*pando.Keyspace).PutExpiring(key, value, c.expires), "put expiring")
		default:
			p.w.must(to.Put(key, value), "put")
		}
		scribble(key)
		scribble(value)
	}
}

// puts does writes one by one, those that put with a function of their own.
func (p *plot) puts(writes []write, put func(key, value []byte) error) {
	for _, c := range writes {
		if c.value == nil {
			p.write(p.w.ks[p.ks], []write{c})
			continue
		}
		p.w.must(put(c.key, c.value), "put")
	}
}

// spoil does to the keys of writes what must not come to be seen.
func (p *plot) spoil(to writer, writes []write) {
	for i, c := range writes {
		switch {
		case c.bounds != nil:
			p.w.must(to.DeleteRange(c.bounds.Lo, c.bounds.Hi), "delete range")
		case i%3 == 0:
			p.w.must(to.Delete(c.key), "delete")
		default:
			p.w.must(to.Put(c.key, p.value()), "put")
		}
	}
}
