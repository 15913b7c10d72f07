package race

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pandodb/pando"
)

// call is what an action works on: a key and a value picked at random.
type call struct {
	ctx        context.Context
	db         *pando.DB
	rng        *rand.Rand
	key, value []byte
}

// actions are all that goroutines do at once with a database.
var actions = []action[func(call) error]{
	{"put", 5, func(c call) error { return c.db.Put(c.key, c.value) }},
	{"delete", 1, func(c call) error { return c.db.Delete(c.key) }},
	{"delete range", 1, func(c call) error { return c.db.DeleteRange(c.key, append(c.key, '5')) }},
	{"get", 3, func(c call) error { return second(c.db.Get(c.key)) }},
	{"count", 1, func(c call) error { return second(c.db.Count(c.key, nil)) }},
	{"range", 1, call.walk},
	{"iterate a snapshot", 1, call.iterate},
	{"batch", 1, call.batch},
	{"update", 1, call.update},
	{"optimistic transaction", 1, call.optimistic},
	{"sync or checkpoint", 1, call.settle},
	{"check or compact", 1, call.maintain},
	{"keyspace", 1, call.keyspace},
	{"changes", 1, call.changes},
	{"metrics", 1, call.describe},
	{"compare and set", 1, func(c call) error { return second(c.db.CompareAndSet(c.key, nil, c.value)) }},
	{"read a value", 1, call.openValue},
	{"expiry or backup", 1, call.backup},
	{"large batch", 1, call.largeBatch},
	{"transaction with savepoints", 1, call.savepoints},
	{"put a stream or what expires", 1, call.putOdd},
	{"follow changes", 1, call.follow},
}

// second drops the result of a call that is made for its error.
func second(_ any, err error) error { return err }

func (c call) walk() error {
	for range c.db.Range(c.key, nil) {
	}
	return second(c.db.Has(c.key))
}

func (c call) iterate() error {
	s := c.db.Snapshot()
	defer s.Close()
	it := s.Iter(nil)
	defer it.Close()
	for range 50 {
		if !it.Next() {
			break
		}
		_ = it.Value()
		if !it.Prev() {
			it.SeekGE(c.key)
		}
		it.Next()
	}
	return it.Err()
}

func (c call) batch() error {
	b := c.db.NewBatch()
	defer b.Reset()
	for range 20 {
		if err := b.Put(c.key, c.value); err != nil {
			return err
		}
	}
	return c.db.Write(b)
}

func (c call) update() error {
	return c.db.Update(func(tx *pando.Tx) error {
		if err := tx.Put(c.key, c.value); err != nil {
			return err
		}
		return second(tx.Get(c.key))
	})
}

func (c call) optimistic() error {
	tx, err := c.db.Begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := errors.Join(tx.Put(c.key, c.value), second(tx.Count(nil, c.key))); err != nil {
		return err
	}
	return tx.Commit()
}

func (c call) settle() error {
	if c.rng.IntN(4) == 0 {
		return c.db.Checkpoint(c.ctx)
	}
	return c.db.Sync()
}

func (c call) maintain() error {
	if c.rng.IntN(10) == 0 {
		return c.db.Compact(c.ctx, pando.CompactOptions{})
	}
	return second(c.db.Check(c.ctx))
}

func (c call) keyspace() error {
	n := c.rng.IntN(3)
	ks, err := c.db.Keyspace(fmt.Sprint("space", n), &pando.KeyspaceOptions{Layout: []pando.Layout{pando.Tree, pando.Hash, pando.Hash}[n]})
	if err != nil {
		return err
	}
	if c.rng.IntN(3) == 0 {
		return c.db.DropKeyspace(ks.Name())
	}
	err = errors.Join(ks.Put(c.key, c.value), second(ks.Get(c.key)), second(ks.Count(nil, nil)))
	for range ks.Range(nil, nil) {
	}
	return errors.Join(err, ks.Err())
}

func (c call) changes() error {
	for _, err := range c.db.Changes(c.ctx, pando.ChangesOptions{From: c.db.LastSeq()}) {
		if err != nil && !errors.Is(err, pando.ErrChangesGone) {
			return err
		}
	}
	return nil
}

func (c call) describe() error {
	_ = c.db.Metrics()
	return second(c.db.Keyspaces())
}

func (c call) openValue() error {
	r, err := c.db.OpenValue(c.key)
	if err != nil {
		return err
	}
	defer r.Close()
	if n, err := r.ReadAt(make([]byte, r.Size()), 0); err != nil && n < int(r.Size()) {
		return err
	}
	return nil
}

func (c call) backup() error {
	if c.rng.IntN(20) == 0 {
		return c.db.Backup(c.ctx, fmt.Sprint("backup", c.rng.Uint64()))
	}
	return second(c.db.Default().Expiry(c.key))
}

// largeBatch writes a batch that is larger than memory, now and then.
func (c call) largeBatch() error {
	if c.rng.IntN(8) > 0 {
		return c.batch()
	}
	b := c.db.NewBatch()
	defer b.Reset()
	for i := range 1500 {
		if err := b.Put(fmt.Appendf(nil, "key%03d", i%400), c.value[:min(len(c.value), 60+i%60)]); err != nil {
			return err
		}
	}
	return c.db.Write(b)
}

func (c call) savepoints() error {
	return c.db.Update(func(tx *pando.Tx) error {
		err := tx.Put(c.key, c.value)
		p := tx.Savepoint()
		err = errors.Join(err, tx.Delete(c.key), second(tx.Count(nil, nil)))
		if c.rng.IntN(2) == 0 {
			err = errors.Join(err, tx.RollbackTo(p), second(tx.Get(c.key)))
		}
		return err
	})
}

func (c call) putOdd() error {
	if c.rng.IntN(4) > 0 {
		return c.db.Default().PutExpiring(c.key, c.value, time.Now().Add(time.Duration(c.rng.IntN(50))*time.Millisecond))
	}
	return c.db.PutReader(c.key, bytes.NewReader(make([]byte, c.rng.IntN(1<<21))))
}

// follow reads a few changes, and waits for some.
func (c call) follow() error {
	ctx, cancel := context.WithTimeout(c.ctx, 5*time.Millisecond)
	defer cancel()
	left := 50
	for _, err := range c.db.Changes(ctx, pando.ChangesOptions{From: c.db.OldestChange(), Follow: true}) {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, pando.ErrChangesGone) {
			return nil
		}
		if left--; err != nil || left == 0 {
			return err
		}
	}
	return nil
}
