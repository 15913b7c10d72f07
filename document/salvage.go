package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pandodb/pando"
)

// Salvage is pando.Salvage for a store of documents. Where anything was lost, or taken from older versions, indexes are made again of
// the documents that are there: what was saved of them would tell of others. An index that cannot be made, because what came back from
// older versions is there twice for instance, is dropped, and listed as a loss; but of a capped collection the later document of an _id
// stays, and none that cannot be read. Where a part of the catalogue of collections is lost, nothing is done beyond what pando.Salvage does,
// which the report says: to open the store would drop what it does not know. A database without documents is salvaged all the same.
func Salvage(ctx context.Context, dir, target string, o *Options) (*pando.SalvageReport, error) {
	var storage pando.Options
	if o != nil {
		storage = o.Storage
	}
	return pando.SalvageWith(ctx, dir, target, &storage, func(db *pando.DB, report *pando.SalvageReport) error {
		if len(report.Lost) == 0 && report.Older == 0 {
			return nil
		}
		if slices.ContainsFunc(report.Lost, func(l pando.Loss) bool { return l.Keyspace == metaKeyspace }) {
			report.Lost = append(report.Lost, pando.Loss{Keyspace: metaKeyspace, Reason: "what tells of collections is lost in part: indexes are not " +
				"made again, and whoever opens this as a store drops the keyspaces of collections that it does not know"})
			return nil
		}
		if err := remake(ctx, db, report); err != nil {
			return fmt.Errorf("make the indexes again: %w", err)
		}
		return nil
	})
}

// remake makes the indexes of a salvaged store again.
func remake(ctx context.Context, db *pando.DB, report *pando.SalvageReport) (err error) {
	list, err := db.Keyspaces()
	if err != nil || !slices.ContainsFunc(list, func(k pando.KeyspaceInfo) bool { return k.Name == metaKeyspace }) {
		return err
	}
	s, err := NewWith(db, &Options{History: -1, TTLInterval: -1})
	if err != nil { // what tells of collections is damaged: a store that does not open gives no wrong answers
		report.Lost = append(report.Lost, pando.Loss{Keyspace: metaKeyspace, Reason: err.Error()})
		return nil
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	collections := s.current.Load().byName
	for _, name := range slices.Sorted(maps.Keys(collections)) {
		c := collections[name]
		if err := c.open(); err != nil {
			report.Lost = append(report.Lost, pando.Loss{Keyspace: recordsName(c.number), Reason: fmt.Sprintf("collection %s: %v", name, err)})
			continue
		}
		if c.settings.Load().capped {
			n, err := c.removeUnindexable(ctx)
			if n > 0 {
				reason := fmt.Sprintf("%d documents of %s are removed: they came back beside later ones of the same _id, or cannot be read", n, name)
				report.Lost = append(report.Lost, pando.Loss{Keyspace: recordsName(c.number), Reason: reason})
			}
			if err != nil {
				return err
			}
		}
		for _, x := range *c.indexes.Load() {
			err := c.remakeIndex(ctx, x)
			if err == nil {
				continue
			}
			if ctx.Err() != nil || errors.Is(err, pando.ErrDiskFull) || errors.Is(err, pando.ErrFailed) {
				return err
			}
			reason := fmt.Sprintf("index %s of %s cannot be made again and is dropped: %v", x.def.Name, name, err)
			report.Lost = append(report.Lost, pando.Loss{Keyspace: x.ks.Name(), Reason: reason})
			if err := c.unregister([]*secondary{x}); err != nil {
				return err
			}
		}
	}
	return nil
}

// remakeIndex enters all records into an index that nobody uses, instead of what it holds.
func (c *collection) remakeIndex(ctx context.Context, x *secondary) error {
	if err := x.ks.DeleteRange(nil, nil); err != nil {
		return err
	}
	return c.enterAll(ctx, []*secondary{x}, nil)
}

// removeUnindexable removes of a capped collection what cannot be in its index of _id, without which there is no such collection, and returns how
// many documents that were: those that came back from older versions beside a later one of their _id, as their records have other keys, and
// those that cannot be read, as a value of a write that failed may be one. Whatever the index holds, before and afterwards, counts for nothing.
func (c *collection) removeUnindexable(ctx context.Context) (n int, err error) {
	ids := c.idIndex().ks
	if err := ids.DeleteRange(nil, nil); err != nil {
		return 0, err
	}
	var doc document
	for key, record := range c.records.RangeReverse(nil, nil) {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		var id []byte
		read, err := c.codec.Decode(doc[:0], record)
		bad := err != nil
		if !bad {
			doc = document(read)
			id = c.key(nil, doc.Lookup("_id"))
			if bad, err = ids.Has(id); err != nil {
				return n, err
			}
		}
		if bad {
			n++
			err = c.records.Delete(bytes.Clone(key))
		} else {
			err = ids.PutUnsynced(id, nil)
		}
		if err != nil {
			return n, err
		}
	}
	return n, c.records.Err()
}
