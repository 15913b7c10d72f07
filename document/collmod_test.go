package document

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/vfs/memfs"
)

// A change of an index and of options was two commits: where the disk was full between the two, the change failed, and the index was another all
// the same.
func TestAnIndexAndOptionsChangeTogether(t *testing.T) {
	change := bson.D{
		{Key: "index", Value: bson.D{{Key: "name", Value: "a_1"}, {Key: "hidden", Value: true}}},
		{Key: "validationAction", Value: "warn"},
	}
	outcomes := map[bool]int{}
	for pad := 0; pad < 1200; pad += 16 {
		fs := memfs.New()
		s := opened(t, &Options{Storage: pando.Options{FS: fs, MemoryBytes: 1 << 20}, TTLInterval: -1})
		c := s.Database("d").Lookup("c")
		if _, err := c.CreateIndex(t.Context(), Index{Keys: bson.D{{Key: "a", Value: 1}}}); err != nil {
			t.Fatal(err)
		}
		fillWith(t, s, fs, pad)
		err := c.Modify(t.Context(), change)
		outcomes[err == nil]++
		for _, when := range []string{"at once", "after a restart"} {
			x, wrong := c.use()
			if wrong != nil {
				t.Fatal(wrong)
			}
			if hides, warns := (*x.indexes.Load())[0].def.Hidden, x.settings.Load().warn; hides != (err == nil) || warns != (err == nil) {
				t.Errorf("pad %d, %s: %v, and the index is hidden: %v, and the options are others: %v", pad, when, err, hides, warns)
			}
			fs.SetCapacity(0)
			if wrong := s.Close(); wrong != nil {
				t.Fatal(wrong)
			}
			if when == "at once" {
				s = opened(t, &Options{Storage: pando.Options{FS: fs, MemoryBytes: 1 << 20}, TTLInterval: -1})
				c = s.Database("d").Lookup("c")
			}
		}
	}
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("they changed and did not: %v", outcomes)
	}
}

// The one change is one event, and one entry of the oplog, with all of it.
func TestAnIndexAndOptionsChangeInOneEvent(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	defer s.Close()
	c := s.Database("d").Lookup("c")
	if _, err := c.CreateIndex(t.Context(), Index{Keys: bson.D{{Key: "a", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	err := c.Modify(t.Context(), JSON(`{"index": {"name": "a_1", "hidden": true}, "validationAction": "warn"}`))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for entry, err := range s.Database("local").Lookup("oplog.rs").Find(t.Context(), JSON(`{"o.collMod": "c"}`), nil) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		for _, part := range []string{`"hidden"`, `"validationAction"`, `"indexOptions_old"`, `"collectionOptions_old"`} {
			if !strings.Contains(entry.String(), part) {
				t.Errorf("%s is not in %s", part, entry)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d entries", n)
	}
}

// "*" is all indexes to those who drop them only: no index has that name.
func TestAllIndexesAreNotChangedByOneName(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	defer s.Close()
	c := s.Database("d").Lookup("c")
	for _, field := range []string{"a", "b"} {
		if _, err := c.CreateIndex(t.Context(), Index{Keys: bson.D{{Key: field, Value: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Modify(t.Context(), JSON(`{"index": {"name": "*", "hidden": true}}`)); CodeOf(err) != mongoerror.IndexNotFound {
		t.Errorf("%v", err)
	}
	list, err := c.Indexes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if i.Spec.Lookup("hidden").Type != 0 {
			t.Errorf("%s is hidden", i.Name)
		}
	}
}
