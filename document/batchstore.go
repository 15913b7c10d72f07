package document

import (
	"context"
	"errors"

	"github.com/pandodb/pando"
)

// put writes what has not failed: everything before the first failure, or everything else. Records come first, then one index
// after the other.
func (b *batch) put(w *writer, failed WriteErrors) (int, error) {
	bad := map[int]bool{}
	for _, f := range failed {
		bad[f.Index] = true
	}
	stored, rest := 0, false
	records := w.tx.In(b.c.records)
	time := uint64(0)
	if w.keepsHistory() {
		time = w.store.timestamps(b.count()) - 1
	}
	for _, p := range b.parts {
		if p.loose {
			if err := w.loosen(b.c); err != nil {
				return 0, err
			}
		}
		for i := range p.items {
			it := &p.items[i]
			it.left = rest || len(bad) > 0 && bad[it.number]
			if it.left {
				rest = !b.all
				continue
			}
			if err := records.Put(p.bytes(it.key), p.bytes(it.record)); err != nil {
				return 0, err
			}
			if w.keepsHistory() {
				time++
				w.startNoteAt(opInsert, time)
				if err := w.endNote(b.c, it.id); err != nil {
					return 0, err
				}
			}
			w.did(it.number, Outcome{N: 1})
			stored++
		}
	}
	for i, x := range b.indexes {
		if err := b.putIndex(w, i, x); err != nil {
			return 0, err
		}
	}
	return stored, nil
}

func (b *batch) putIndex(w *writer, i int, x *secondary) error {
	ks := w.tx.In(x.ks)
	for _, p := range b.parts {
		if len(p.items) == 0 {
			continue
		}
		if err := w.raiseMultikey(b.c, x, p.multikey[i]); err != nil {
			return err
		}
		for n := range p.items {
			it := &p.items[n]
			if it.left {
				continue
			}
			for k := it.entries.from; k < it.entries.to; k++ {
				e := &p.entries[k]
				if e.index != i {
					continue
				}
				w.buf = x.appendEntryValue(w.buf[:0], e.exact, p.bytes(it.key))
				if err := ks.Put(p.bytes(e.key), w.buf); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// writeBatch commits a batch that is prepared first, without keeping anybody waiting, and then stored while no other writer is at
// work: nothing can overtake it. It is prepared again when the list of indexes, or the options, have changed meanwhile.
func (s *Store) writeBatch(ctx context.Context, x *collection, prepare func(indexes *[]*secondary), store func(w *writer) error) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		prepared := touch{x, x.indexes.Load(), x.settings.Load()}
		prepare(prepared.indexes)
		err := s.storeBatch(ctx, prepared, store)
		if errors.Is(err, pando.ErrDropped) {
			return errDropped
		}
		if !errors.Is(err, errSchemaChanged) {
			return err
		}
	}
}

func (s *Store) storeBatch(ctx context.Context, prepared touch, store func(w *writer) error) error {
	x := prepared.c
	x.schema.RLock() // before other writers are kept out: those who change the list write while they hold it
	defer x.schema.RUnlock()
	switch {
	case x.dropped.Load():
		return errDropped
	case x.indexes.Load() != prepared.indexes, x.settings.Load() != prepared.settings:
		return errSchemaChanged
	}
	w := &writer{store: s, touched: []touch{prepared}, exclusive: true}
	w.statements, _ = ctx.Value(statementsKey{}).(*statements)
	var record *sessionRecord
	err := s.db.Update(func(tx *pando.Tx) (err error) {
		w.tx = tx
		if err = store(w); err == nil {
			record, err = w.storeStatements()
		}
		return err
	})
	if err != nil {
		return err
	}
	w.keepRaised()
	if record != nil {
		s.remember(w.statements.session, record)
	}
	return nil
}
