package fault

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs"
)

// stormStore is a store of documents that runs on the device of a storm.
type stormStore struct {
	options document.Options
	store   *document.Store
}

// on says on which device the store lies.
func (x *stormStore) on(fs vfs.FS) { x.options.Storage.FS, x.options.FS = fs, fs }

func (x *stormStore) openStore() (err error) {
	o := x.options
	x.store, err = document.Open("db", &o)
	return err
}

func (x *stormStore) database() *document.Database { return x.store.Database("test") }

func (x *stormStore) collection(name string) *document.Collection { return x.database().Lookup(name) }

// pairs are the collections of documents that are written together.
var pairs = []string{"left", "right"}

// writePair writes a document into both of them, in one transaction.
func (x *stormStore) writePair(id int32, doc any) error {
	return x.store.Transaction(ctx, func(tx *document.Tx) error {
		for _, name := range pairs {
			if _, err := tx.In(x.collection(name)).Replace(ctx, byID(id), doc, &document.UpdateOptions{Upsert: true}); err != nil {
				return err
			}
		}
		return nil
	})
}

func byID(id int32) bson.D { return bson.D{{Key: "_id", Value: id}} }

// between is a filter for n from low up to high.
func between(low, high int32) bson.D {
	return bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: low}, {Key: "$lt", Value: high}}}}
}

// disagreement says which index tells something else than the documents; nil: none.
func disagreement(v *document.Validation) error {
	for _, i := range v.Indexes {
		if i.Missing > 0 || i.Extra > 0 {
			return fmt.Errorf("index %s: %+v", i.Name, i)
		}
	}
	return nil
}
