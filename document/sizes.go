package document

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
)

// Sizes is how large a collection is. Bytes are estimates, of a sample, when there are more than a few hundred documents.
type Sizes struct {
	Documents   int64
	DataBytes   int64 // the documents as BSON
	StoredBytes int64 // the records as they are stored, before compression
	Indexes     []IndexSize
}

// IndexSize is how large an index is. That of _id takes nothing of its own: the records are in its order.
type IndexSize struct {
	Name  string
	Bytes int64
}

// sampled is how many records of a larger collection Sizes looks at.
const (
	sampled     = 256
	sampledRuns = 8
)

// Sizes returns how large the collection is; one that is not there has no size.
func (c *Collection) Sizes(ctx context.Context) (*Sizes, error) {
	const looks = 10
	return undisturbed(looks, func() (*Sizes, error) { return c.sizes(ctx) })
}

func (c *Collection) sizes(ctx context.Context) (*Sizes, error) {
	x, err := c.use()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	if c.store.isOplog(c.ns) {
		stats, err := c.store.oplogStats(ctx)
		if err != nil {
			return nil, err
		}
		return &Sizes{Documents: stats.Documents, DataBytes: stats.Bytes, StoredBytes: stats.Bytes}, nil
	}
	if x == nil {
		return new(Sizes), nil
	}
	s, view, doc := &Sizes{}, x.codec.NewView(), []byte(nil)
	s.Documents, s.StoredBytes, err = estimate(ctx, x.records, func(value []byte) error {
		if err := view.Reset(value); err != nil {
			return err
		}
		var err error
		doc, err = view.Document(doc[:0])
		s.DataBytes += int64(len(doc))
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.Documents > sampled {
		s.DataBytes = s.DataBytes * s.Documents / sampled
	}
	list, err := c.Indexes(ctx)
	if err != nil {
		return nil, err
	}
	own := *x.indexes.Load()
	for _, i := range list {
		size := IndexSize{Name: i.Name}
		if at := slices.IndexFunc(own, func(o *secondary) bool { return o.def.Name == i.Name && o.ks != nil }); at >= 0 {
			if _, size.Bytes, err = estimate(ctx, own[at].ks, nil); err != nil {
				return nil, err
			}
		}
		s.Indexes = append(s.Indexes, size)
	}
	return s, nil
}

// estimate returns how many pairs a keyspace has, and about how many bytes: exactly when they are few. see gets the pairs that
// were looked at: all of them, or so many as sampled says, in runs from a few places.
func estimate(ctx context.Context, ks *pando.Keyspace, see func(value []byte) error) (n, size int64, err error) {
	if n, err = ks.Count(nil, nil); err != nil || n == 0 {
		return 0, 0, err
	}
	runs := int64(1)
	if n > sampled {
		runs = sampledRuns
	}
	looked := int64(0)
	for i := range runs {
		o := &pando.IterOptions{}
		if i > 0 {
			if o.Lower, _, err = ks.Nth(nil, nil, i*n/runs); err != nil {
				return 0, 0, err
			}
		}
		seen, bytes, err := walk(ctx, ks.Iter(o), sampled/runs, see)
		if err != nil {
			return 0, 0, err
		}
		looked += seen
		size += bytes
	}
	return n, size * n / max(looked, 1), nil
}

// walk looks at so many pairs of an iterator, and closes it.
func walk(ctx context.Context, it *pando.Iterator, most int64, see func(value []byte) error) (n, size int64, err error) {
	for n < most && err == nil && it.Next() {
		value := it.Value()
		n++
		size += int64(len(it.Key()) + len(value))
		err = cmp.Or(ctx.Err(), it.Err())
		if see != nil && err == nil {
			err = see(value)
		}
	}
	return n, size, errors.Join(cmp.Or(err, it.Err()), it.Close())
}

// StorageStats describes sizes as MongoDB's collStats does, in units of so many bytes.
func (c *Collection) StorageStats(ctx context.Context, scale int64) (bson.D, error) {
	if c.view() != nil {
		return nil, onView(c.ns)
	}
	s, err := c.Sizes(ctx)
	if err != nil {
		return nil, err
	}
	all, each := int64(0), bson.D{}
	for _, i := range s.Indexes {
		all += i.Bytes
		each = append(each, bson.E{Key: i.Name, Value: Number(i.Bytes / scale)})
	}
	d := bson.D{{Key: "size", Value: Number(s.DataBytes / scale)}}
	if c.IsTimeSeries() {
		d = append(d, bson.E{Key: "timeseries", Value: s.seriesStats(c.ns)})
	} else {
		d = append(d, bson.E{Key: "count", Value: Number(s.Documents)})
		if s.Documents > 0 {
			d = append(d, bson.E{Key: "avgObjSize", Value: Number(s.DataBytes / s.Documents)})
		}
	}
	d = append(d, bson.D{
		{Key: "numOrphanDocs", Value: int32(0)}, {Key: "storageSize", Value: Number(s.StoredBytes / scale)}, {Key: "freeStorageSize", Value: int32(0)},
	}...)
	if x, err := c.use(); err != nil {
		return nil, err
	} else if c.store.isOplog(c.ns) {
		d = append(d, bson.E{Key: "capped", Value: true}, bson.E{Key: "max", Value: int32(0)}, bson.E{Key: "maxSize", Value: Number(c.store.oplogBytes() / scale)})
	} else if x != nil {
		settings := x.settings.Load()
		if d = append(d, bson.E{Key: "capped", Value: settings.capped}); settings.capped {
			most := settings.maxCount
			if most == math.MaxInt32 {
				most = 0
			}
			d = append(d, bson.E{Key: "max", Value: Number(most)}, bson.E{Key: "maxSize", Value: Number(settings.maxBytes / scale)})
		}
	}
	return append(d, bson.D{
		{Key: "nindexes", Value: int32(len(s.Indexes))}, {Key: "indexBuilds", Value: bson.A{}}, {Key: "totalIndexSize", Value: Number(all / scale)},
		{Key: "totalSize", Value: Number((s.StoredBytes + all) / scale)}, {Key: "indexSizes", Value: each}, {Key: "scaleFactor", Value: Number(scale)},
	}...), nil
}

// Number returns a count as MongoDB's answers have it: an int32 if it fits.
func Number(n int64) any {
	if n == int64(int32(n)) {
		return int32(n)
	}
	return n
}
