package document_test

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// A TTL index of some documents deletes no others: it once deleted all that had an old date. Which ones are in the index is for its own
// collation to say, and not for that of the collection.
func TestOnlyWhatAPartialIndexHoldsExpires(t *testing.T) {
	loose := bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: 2}}
	simple := bson.D{{Key: "locale", Value: "simple"}}
	for _, test := range []struct {
		name        string
		own, others any // collations of the index and of the collection
		want        []string
	}{
		{"no collation", nil, nil, []string{"new", "open", "upper", "without"}},
		{"that of the collection", nil, loose, []string{"new", "open", "without"}},
		{"its own", loose, nil, []string{"new", "open", "without"}},
		{"none in a collection that has one", simple, loose, []string{"new", "open", "upper", "without"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t, memfs.New())
			c := collection(t, s, "c", &document.CollectionOptions{Collation: test.others})
			seconds := int32(60)
			_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "at", Value: 1}}, ExpireAfterSeconds: &seconds,
				Partial: bson.D{{Key: "state", Value: "closed"}}, Collation: test.own})
			must(t, err)
			old := time.Now().Add(-time.Hour)
			for _, doc := range []bson.D{
				{{Key: "_id", Value: "closed"}, {Key: "state", Value: "closed"}, {Key: "at", Value: old}},
				{{Key: "_id", Value: "new"}, {Key: "state", Value: "closed"}, {Key: "at", Value: time.Now()}},
				{{Key: "_id", Value: "open"}, {Key: "state", Value: "open"}, {Key: "at", Value: old}},
				{{Key: "_id", Value: "upper"}, {Key: "state", Value: "CLOSED"}, {Key: "at", Value: old}},
				{{Key: "_id", Value: "without"}, {Key: "at", Value: old}},
			} {
				_, err := c.Insert(ctx, doc)
				must(t, err)
			}
			n, err := s.DeleteExpired(ctx)
			must(t, err)
			if n != int64(5-len(test.want)) {
				t.Errorf("%d documents have expired", n)
			}
			wantIDs(t, "afterwards", c, test.want...)
		})
	}
}
