package document

import (
	"encoding/binary"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// Of a capped collection a document may come back that was forgotten, or deleted, beside a later one of its _id, or as what cannot be read. Then its index of _id could not
// be made again and was dropped, without which the collection cannot be used: the next insert ended the process.
func TestSalvagedCappedCollectionKeepsItsIndexOfID(t *testing.T) {
	o := &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1}
	s := opened(t, o)
	ctx := t.Context()
	c, err := s.Collection(ctx, "c", &CollectionOptions{Capped: true, SizeBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateIndex(ctx, Index{Keys: bson.D{{Key: "v", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	x, err := c.use()
	if err != nil {
		t.Fatal(err)
	}
	var old [][]byte
	for _, v := range []string{"older", "old", "new"} {
		if _, err := c.Delete(ctx, nil, &DeleteOptions{Many: true}); err != nil {
			t.Fatal(err)
		}
		for id := range 2 {
			if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: id}, {Key: "v", Value: v}}); err != nil {
				t.Fatal(err)
			}
			_, value, err := x.records.Nth(nil, nil, int64(id))
			if err != nil {
				t.Fatal(err)
			}
			old = append(old, value)
		}
	}
	old[4], old[5] = nil, nil // these are there
	for i, value := range append(old, []byte("no document")) {
		if value == nil {
			continue
		}
		if err := x.records.Put(binary.BigEndian.AppendUint64(nil, uint64(i+1)), value); err != nil {
			t.Fatal(err)
		}
	}
	report := &pando.SalvageReport{Older: 1}
	if err := remake(ctx, s.DB(), report); err != nil {
		t.Fatal(err)
	}
	if len(report.Lost) != 1 || !strings.HasPrefix(report.Lost[0].Reason, "5 documents") {
		t.Errorf("the report tells of %v", report.Lost)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = opened(t, o)
	c = s.Database("test").Lookup("c")
	for id := range 2 {
		if doc, err := c.Get(ctx, id); err != nil || doc.Lookup("v").StringValue() != "new" {
			t.Errorf("by its _id there is %s, %v", doc, err)
		}
	}
	if _, err := c.Insert(ctx, bson.D{{Key: "_id", Value: 2}}); err != nil {
		t.Error(err)
	}
	if got := idsOf(ctx, t, c); got != "[0 1 2]" {
		t.Errorf("there are %s", got)
	}
	if n, err := c.Count(ctx, bson.D{{Key: "v", Value: bson.D{{Key: "$gte", Value: ""}}}}, &FindOptions{Hint: "v_1"}); n != 2 || err != nil {
		t.Errorf("%d are in the other index, %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
