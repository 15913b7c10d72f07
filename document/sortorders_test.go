package document_test

import (
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestOrdersAreRefusedHoweverDocumentsAreFound: what no sort takes is no order either where an index gives it, or where there is nothing to
// be put in order.
func TestOrdersAreRefusedHoweverDocumentsAreFound(t *testing.T) {
	store := open(t, memfs.New())
	plain, indexed := collection(t, store, "plain", nil), collection(t, store, "indexed", nil)
	_, err := indexed.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "a", Value: 1}}})
	must(t, err)
	for _, c := range []*document.Collection{plain, indexed} {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: 3}})
		must(t, err)
	}
	long := bson.D{}
	for i := range 33 {
		long = append(long, bson.E{Key: fmt.Sprint("f", i), Value: 1})
	}
	for code, order := range map[document.Code]bson.D{
		7472500:           {{Key: "a", Value: 1}, {Key: "a", Value: -1}},
		document.BadValue: long,
	} {
		for name, c := range map[string]*document.Collection{"plain": plain, "indexed": indexed, "absent": store.Database(document.DefaultDatabase).Lookup("absent")} {
			for _, filter := range []bson.D{{}, {{Key: "a", Value: 3}}, {{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{}}}}}} {
				if _, err := inWords(c.Find(ctx, filter, &document.FindOptions{Sort: order})); document.CodeOf(err) != code {
					t.Errorf("%s, %v in the order of %v: %v", name, filter, order, err)
				}
			}
		}
	}
}
