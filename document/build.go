package document

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/index"
	"github.com/pandodb/pando/document/internal/mongoerror"
)

// An index is built while readers and writers go on. From the moment at which it is registered every write keeps it up to date.
// The build then walks over the records, some at a time, and enters them in transactions that read what they enter: when a write
// comes in between, these records are read again. Planners see the index when it is complete. A build that a killed process leaves
// behind is undone when the store is opened.

// build is an index on its way.
type build struct {
	ctx   context.Context
	stop  context.CancelFunc
	ended chan struct{} // closed when the index is complete, or gone
}

func newBuild() *build {
	b := &build{ended: make(chan struct{})}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// abort ends a build; it may be nil, or over.
func (b *build) abort() {
	if b != nil {
		b.stop()
	}
}

// aborted reports whether a build was ended; of an index that nobody builds there is none.
func (b *build) aborted() bool { return b != nil && b.ctx.Err() != nil }

// wait waits until a build has ended, well or not.
func (b *build) wait(ctx context.Context, s *Store) error {
	select {
	case <-b.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.work.Done():
		return errBuildClosed()
	}
}

func errBuildClosed() error { return fmt.Errorf("build of an index: %w", ErrClosed) }

// cancelBuilds ends all builds of a collection that is about to be dropped.
func (c *collection) cancelBuilds() {
	for _, x := range *c.indexes.Load() {
		x.build.abort()
	}
}

// buildChunk is how many records are entered at once, if no writes come in between.
const buildChunk = 2000

// buildAll enters all records into new indexes and makes these known to planners.
func (c *collection) buildAll(ctx context.Context, list []*secondary, progress func(done, total int64)) error {
	if len(list) == 0 {
		return nil
	}
	if err := c.enterFully(ctx, list, progress); err != nil {
		return err
	}
	return c.finishBuilds(ctx, list)
}

// enterFully is enterAll for those who have asked for the indexes.
func (c *collection) enterFully(ctx context.Context, list []*secondary, progress func(done, total int64)) error {
	err := c.enterAll(ctx, list, progress)
	if errors.Is(err, pando.ErrDropped) || errors.Is(err, errDropped) {
		return mongoerror.New(mongoerror.IndexBuildAborted, "Index build failed: collection dropped")
	}
	if errors.Is(err, pando.ErrKeyTooLarge) {
		return keyTooLong(*c.name.Load(), err)
	}
	return err
}

// enterAll enters all records into indexes that hold none of them.
func (c *collection) enterAll(ctx context.Context, list []*secondary, progress func(done, total int64)) error {
	total, err := c.records.Count(nil, nil)
	if err != nil {
		return err
	}
	var from []byte
	done, chunk := int64(0), buildChunk
	for {
		if err := building(ctx, c.store, list); err != nil {
			return err
		}
		n, next, err := c.buildSome(list, from, chunk)
		if isConflict(err) {
			chunk = max(1, chunk/2)
			continue
		}
		if err != nil {
			return err
		}
		done += int64(n)
		chunk = min(chunk*2, buildChunk)
		if progress != nil {
			progress(done, max(done, total))
		}
		if from = next; next == nil {
			return nil
		}
	}
}

// building says why a build has to end, if it has.
func building(ctx context.Context, s *Store, list []*secondary) error {
	for _, x := range list {
		if x.build.aborted() {
			return mongoerror.New(mongoerror.IndexBuildAborted, "Index build failed: the index %s was dropped", x.def.Name)
		}
	}
	if s.work.Err() != nil {
		return errBuildClosed()
	}
	return ctx.Err()
}

// buildSome enters up to n records from a key on, and returns how many it did and from where to go on; nil: there are no more.
func (c *collection) buildSome(list []*secondary, from []byte, n int) (int, []byte, error) {
	tx, err := c.store.db.Begin(true)
	if err != nil {
		return 0, nil, err
	}
	defer tx.Rollback()
	b := &builder{c: c, w: &writer{store: c.store, tx: tx}, list: list, entries: make([][]batchEntry, len(list))}
	b.w.touch(c)
	count, next, err := b.collect(from, n)
	if err != nil || count == 0 {
		return 0, next, err
	}
	if err := b.enter(); err != nil {
		return 0, nil, err
	}
	// The list of indexes is that of the registration or a later one. Nothing depends on it but what the catalogue is told of arrays, which
	// goes there together with the list.
	commit := tx.Commit
	if len(b.w.raised) > 0 {
		commit = b.w.commit
	}
	if err := commit(); err != nil {
		return 0, nil, err
	}
	return count, next, nil
}

// builder is one step of a build.
type builder struct {
	c       *collection
	w       *writer
	list    []*secondary
	arena   []byte
	entries [][]batchEntry // by index; batchEntry.index is the number of the record
	records []span
}

// collect reads records and computes their entries. It returns from where to go on; nil: there are no more.
func (b *builder) collect(from []byte, n int) (count int, next []byte, err error) {
	// The range that is read must not reach further than the last record, or every insert behind it would be a conflict.
	end, err := b.end(from, n)
	if err != nil {
		return 0, nil, err
	}
	it := b.w.tx.In(b.c.records).Iter(&pando.IterOptions{Lower: from, Upper: end})
	defer func() { err = errors.Join(err, it.Close()) }()
	view := b.c.codec.NewView()
	var entries index.Entries
	for count < n && it.Next() {
		if err := lookAt(view, it); err != nil {
			return 0, nil, err
		}
		record := span{from: len(b.arena)}
		b.arena = append(b.arena, it.Key()...)
		record.to = len(b.arena)
		for i, x := range b.list {
			if err := x.def.Append(&entries, view); err != nil {
				return 0, nil, indexError(b.c, x, err)
			}
			if err := b.w.raiseMultikey(b.c, x, entries.Multikey); err != nil {
				return 0, nil, err
			}
			b.add(i, len(b.records), &entries)
		}
		if err := view.Err(); err != nil { // the entries are those of a field that is missing
			return 0, nil, err
		}
		b.records = append(b.records, record)
		next = append(append(next[:0], it.Key()...), 0)
		count++
	}
	if count < n {
		next = end // in front of which there are records that have come since, and have their entries
	}
	return count, next, it.Err()
}

// end returns a bound behind the n-th record from a key on; nil when there are fewer.
func (b *builder) end(from []byte, n int) ([]byte, error) {
	key, _, err := b.c.records.Nth(from, nil, int64(n))
	if errors.Is(err, pando.ErrNotFound) {
		return nil, nil
	}
	return key, err
}

func (b *builder) add(i, record int, entries *index.Entries) {
	for j, key := range entries.Keys {
		e := batchEntry{index: record, exact: entries.Exact[j]}
		e.key.from = len(b.arena)
		b.arena = append(b.arena, key...)
		e.key.to = len(b.arena)
		b.entries[i] = append(b.entries[i], e)
	}
}

func (b *builder) bytes(s span) []byte { return b.arena[s.from:s.to:s.to] }

// duplicate is the error of an entry that another document has too.
func (b *builder) duplicate(x *secondary, e batchEntry) error {
	record, err := b.w.tx.In(b.c.records).Get(b.bytes(b.records[e.index]))
	if err != nil {
		return err
	}
	doc, err := b.c.codec.Decode(nil, record)
	if err != nil {
		return err
	}
	return duplicateKey(b.c, x, b.bytes(e.key), doc)
}

// enter checks unique entries and writes all, in their order.
func (b *builder) enter() error {
	for i, x := range b.list {
		list := b.entries[i]
		slices.SortFunc(list, func(p, q batchEntry) int { return slices.Compare(b.bytes(p.key), b.bytes(q.key)) })
		if !x.def.Unique {
			continue
		}
		for j, e := range list {
			free := j == 0 || list[j-1].index == e.index || string(b.bytes(list[j-1].key)) != string(b.bytes(e.key))
			if free {
				var err error
				if free, err = b.w.isFree(x, b.bytes(e.key), b.bytes(b.records[e.index])); err != nil {
					return err
				}
			}
			if !free {
				return b.duplicate(x, e)
			}
		}
	}
	for i, x := range b.list {
		ks := b.w.tx.In(x.ks)
		for _, e := range b.entries[i] {
			record := b.bytes(b.records[e.index])
			if err := ks.Put(x.entryKey(b.bytes(e.key), record), x.entryValue(e.exact, record)); err != nil {
				return err
			}
		}
	}
	return nil
}

// finishBuilds makes complete indexes known to planners.
func (c *collection) finishBuilds(ctx context.Context, done []*secondary) error {
	c.store.schema.Lock()
	defer c.store.schema.Unlock()
	if err := building(ctx, c.store, done); err != nil {
		return err
	}
	var commands []document
	list := slices.Clone(*c.indexes.Load())
	for i, x := range list {
		if !slices.Contains(done, x) {
			continue
		}
		ready := &secondary{number: x.number, def: x.def, ks: x.ks, ready: true, since: c.store.db.LastSeq()}
		ready.multikey.Store(x.multikey.Load())
		list[i] = ready
		specs := bsoncore.NewArrayBuilder().AppendDocument(x.def.Spec).Build()
		commands = append(commands, c.indexCommand("createIndexes", specs))
	}
	return c.changeIndexes(ctx, list, commands, c.aboutSelf().Build())
}
