package document

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// What happens to an index while it is made anew comes first: whoever drops it drops the new one, whoever changes it keeps his change. A store
// whose process is killed meanwhile has the index that there was.
func TestIndexThatIsMadeAnewWhileItChanges(t *testing.T) {
	for what, happens := range map[string]func(c *Collection) error{
		"nothing": func(*Collection) error { return nil },
		"a document": func(c *Collection) error {
			_, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: 9}, {Key: "u", Value: bson.A{9, 10}}})
			return err
		},
		"a drop": func(c *Collection) error { return c.DropIndex(t.Context(), "*") },
		"a change": func(c *Collection) error {
			return c.Modify(t.Context(), bson.D{{Key: "index", Value: bson.D{{Key: "name", Value: "u_1"}, {Key: "hidden", Value: true}}}})
		},
		"the same again": func(c *Collection) error {
			_, err := c.CreateIndex(t.Context(), Index{Keys: bson.D{{Key: "u", Value: 1}}, Unique: true})
			return err
		},
		"the end": func(c *Collection) error { return c.Drop(t.Context()) },
	} {
		fs := memfs.New()
		o := &Options{Storage: pando.Options{FS: fs, MemoryBytes: 8 << 20}, TTLInterval: -1}
		s := opened(t, o)
		c := s.Database("d").Lookup("c")
		if _, err := c.CreateIndex(t.Context(), Index{Keys: bson.D{{Key: "u", Value: 1}}, Unique: true}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := c.Insert(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "u", Value: i}}); err != nil {
				t.Fatal(err)
			}
		}
		x, err := c.use()
		if err != nil {
			t.Fatal(err)
		}
		before := *x.indexes.Load()
		fresh, err := x.registerAnew(t.Context(), before[0])
		if err != nil {
			t.Fatal(err)
		}
		killed := fs.KillImage()
		if err := happens(c); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		err = x.enterFully(t.Context(), []*secondary{fresh}, nil)
		if err == nil {
			err = x.exchangeIndex(t.Context(), fresh)
		}
		overtaken := what == "a drop" || what == "a change" || what == "the end"
		if overtaken != (CodeOf(err) == 276) || !overtaken && err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if err != nil {
			if err := x.unregister([]*secondary{fresh}); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		list := *x.indexes.Load()
		if left := what != "a drop"; what != "the end" && left != (len(list) == 1) {
			t.Errorf("%s: there are %d indexes", what, len(list))
		}
		for _, i := range list {
			if what != "the end" && (!i.ready || i.anew != nil || i.def.Hidden != (what == "a change")) {
				t.Errorf("%s: there is %+v", what, i)
			}
		}
		if v, err := c.Validate(t.Context()); err != nil || len(v.Indexes) == 1 && (v.Indexes[0].Missing != 0 || v.Indexes[0].Extra != 0) {
			t.Errorf("%s: %+v, %v", what, v, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		o.Storage.FS = killed
		s = opened(t, o)
		if list, err := s.Database("d").Lookup("c").Indexes(t.Context()); len(list) != 2 || !list[1].Ready || err != nil {
			t.Errorf("%s: after a kill there are %v, %v", what, list, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
