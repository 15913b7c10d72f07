package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/index"
)

// Validation is what Validate has found.
type Validation struct {
	Documents int64
	Indexes   []IndexValidation // but that of _id where the records are in its order, and those that are not complete yet
}

// IndexValidation is what Validate has found in an index.
type IndexValidation struct {
	Name    string
	Entries int64 // that it has
	Missing int64 // that documents say it has, and it does not
	Extra   int64 // of which no document knows
}

// Validate reads each document as a whole, all as they are at one moment, and compares the indexes with what the documents say: each entry of theirs is
// looked up, and an index must not have more. It fails with the first document or entry that cannot be read, and then has found what
// there is in front of it; a collection that is not there has no documents.
func (c *Collection) Validate(ctx context.Context) (*Validation, error) {
	const looks = 5 // each is at all documents
	return undisturbed(looks, func() (*Validation, error) { return c.validate(ctx) })
}

// undisturbed looks at a collection, up to so many times: again when it, or an index of it, is dropped meanwhile, or another one put in its
// place.
func undisturbed[T any](looks int, look func() (T, error)) (found T, err error) {
	for range looks {
		if found, err = look(); !errors.Is(err, pando.ErrDropped) {
			break
		}
	}
	return found, err
}

func (c *Collection) validate(ctx context.Context) (_ *Validation, err error) {
	v := new(Validation)
	x, err := c.use()
	if x == nil || err != nil {
		return v, err
	}
	var list []*secondary
	for _, i := range *x.indexes.Load() { // before the snapshot, which then has all that they hold
		if i.ready && i.ks != nil {
			list = append(list, i)
			v.Indexes = append(v.Indexes, IndexValidation{Name: i.def.Name})
		}
	}
	snap := c.store.db.Snapshot()
	defer func() { err = errors.Join(err, snap.Close()) }()
	if err := v.compare(ctx, x, snap, list); err != nil {
		return v, fmt.Errorf("validate %s: %w", c.ns, err)
	}
	return v, nil
}

// compare goes over the documents, and then counts the entries.
func (v *Validation) compare(ctx context.Context, c *collection, snap *pando.Snapshot, list []*secondary) (err error) {
	it := snap.In(c.records).Iter(nil)
	defer func() { err = errors.Join(err, it.Close()) }()
	found := make([]int64, len(list))
	view := c.codec.NewView()
	var entries index.Entries
	var doc, value []byte
	for it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := lookAt(view, it); err != nil {
			return err
		}
		if doc, err = view.Document(doc[:0]); err != nil { // of which the indexes may ask for little
			return err
		}
		for i, x := range list {
			if err := x.def.Append(&entries, view); err != nil {
				return indexError(c, x, err)
			}
			for j, key := range entries.Keys {
				value, err = snap.In(x.ks).GetTo(value[:0], x.entryKey(key, it.Key()))
				switch {
				case err == nil && bytes.Equal(value, x.entryValue(entries.Exact[j], it.Key())):
					found[i]++
				case err == nil || errors.Is(err, pando.ErrNotFound):
					v.Indexes[i].Missing++
				default:
					return indexError(c, x, err)
				}
			}
		}
		v.Documents++
	}
	if err := it.Err(); err != nil {
		return err
	}
	for i, x := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := snap.In(x.ks).Count(nil, nil)
		if err != nil {
			return indexError(c, x, err)
		}
		v.Indexes[i].Entries, v.Indexes[i].Extra = n, n-found[i]
	}
	return nil
}
