package document_test

import (
	"errors"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

func TestSizes(t *testing.T) {
	s := open(t, memfs.New())
	c, err := s.Collection(t.Context(), "c", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateIndex(t.Context(), document.Index{Keys: bson.D{{Key: "n", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	insert := func(from, to int32) (bytes int64) {
		for i := from; i < to; i++ {
			doc := bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i}, {Key: "s", Value: strings.Repeat("x", 100)}}
			raw, err := bson.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Insert(t.Context(), bson.Raw(raw)); err != nil {
				t.Fatal(err)
			}
			bytes += int64(len(raw))
		}
		return bytes
	}
	bytes := insert(0, 200)
	z, err := c.Sizes(t.Context())
	if err != nil || z.Documents != 200 || z.DataBytes != bytes || z.StoredBytes <= 0 || len(z.Indexes) != 2 || z.Indexes[1].Bytes <= 0 {
		t.Errorf("200 documents of %d bytes together: %+v, %v", bytes, z, err)
	}
	bytes += insert(200, 1500)
	if z, err = c.Sizes(t.Context()); err != nil || z.Documents != 1500 || z.DataBytes < bytes*9/10 || z.DataBytes > bytes*11/10 {
		t.Errorf("1500 documents of %d bytes together: %+v, %v", bytes, z, err)
	}
	if z, err := s.Database("test").Lookup("none").Sizes(t.Context()); err != nil || z.Documents != 0 {
		t.Errorf("a collection that is not there: %+v, %v", z, err)
	}
	if err := s.Database("test").Create(t.Context(), "v", bson.D{{Key: "viewOn", Value: "c"}}); err != nil {
		t.Fatal(err)
	}
	var e *document.Error
	if _, err := s.Database("test").Lookup("v").StorageStats(t.Context(), 1); !errors.As(err, &e) || e.Code != 166 {
		t.Errorf("a view: %v", err)
	}
}
