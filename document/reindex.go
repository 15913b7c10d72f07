package document

import (
	"context"
	"errors"
	"slices"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// Reindex makes the indexes of the collection anew from its documents, but for that of _id, while readers and writers go on: each beside the one
// that there is, in whose place it comes when it is complete. Where that fails the indexes are there as before. It fails with
// NamespaceNotFound when there is no collection, and with IndexBuildAborted when an index is dropped or changed meanwhile.
func (c *Collection) Reindex(ctx context.Context) error {
	if err := c.alterable(); err != nil {
		return err
	}
	x, err := c.useExisting()
	if err != nil {
		return err
	}
	for _, old := range *x.indexes.Load() {
		if !old.ready || old.def.Name == cappedIDIndex {
			continue
		}
		if err := x.buildAnew(ctx, old); err != nil {
			return err
		}
	}
	return nil
}

// buildAnew builds an index once more, and puts it into the place of the one that there is.
func (c *collection) buildAnew(ctx context.Context, old *secondary) error {
	fresh, err := c.registerAnew(ctx, old)
	if err != nil {
		return err
	}
	defer close(fresh.build.ended)
	list := []*secondary{fresh}
	if err := c.enterFully(ctx, list, nil); err != nil {
		return errors.Join(err, c.unregister(list))
	}
	if err := c.exchangeIndex(ctx, fresh); err != nil {
		return errors.Join(err, c.unregister(list))
	}
	return nil
}

// registerAnew puts a second one of an index into the list, so that all writes that begin from now on keep it up to date.
func (c *collection) registerAnew(ctx context.Context, old *secondary) (*secondary, error) {
	c.store.schema.Lock()
	defer c.store.schema.Unlock()
	list := *c.indexes.Load()
	if !slices.Contains(list, old) {
		return nil, indexChanged(old)
	}
	x := &secondary{number: c.nextIndex.Add(1), def: old.def, build: newBuild(), anew: old}
	var err error
	if x.ks, err = c.store.makeKeyspace(indexName(c.number, x.number), c.indexOptionsOf(x.def)); err != nil {
		return nil, err
	}
	if err = c.changeIndexes(ctx, append(slices.Clone(list), x), nil, nil); err != nil {
		c.dropEntries([]*secondary{x})
		return nil, err
	}
	return x, nil
}

// exchangeIndex puts an index that is complete into the place of the one that it was built beside.
func (c *collection) exchangeIndex(ctx context.Context, fresh *secondary) error {
	c.store.schema.Lock()
	defer c.store.schema.Unlock()
	if err := building(ctx, c.store, []*secondary{fresh}); err != nil {
		return err
	}
	list := slices.DeleteFunc(slices.Clone(*c.indexes.Load()), func(x *secondary) bool { return x == fresh })
	at := slices.Index(list, fresh.anew)
	if at < 0 {
		return indexChanged(fresh)
	}
	ready := &secondary{number: fresh.number, def: fresh.def, ks: fresh.ks, ready: true, since: c.store.db.LastSeq()}
	ready.multikey.Store(fresh.multikey.Load())
	list[at] = ready
	if err := c.changeIndexes(ctx, list, nil, nil); err != nil {
		return err
	}
	c.dropEntries([]*secondary{fresh.anew})
	return nil
}

func indexChanged(x *secondary) error {
	return mongoerror.New(mongoerror.IndexBuildAborted, "Index build failed: the index %s was dropped or changed meanwhile", x.def.Name)
}
