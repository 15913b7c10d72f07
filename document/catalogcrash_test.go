package document_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// catalogueChanges are calls that change what there is, in more commits than one, most of them.
var catalogueChanges = map[string]func(s *document.Store, d *document.Database) error{
	"rename": func(s *document.Store, d *document.Database) error {
		return d.Lookup("a").Rename(ctx, "test", "new", false)
	},
	"rename over": func(s *document.Store, d *document.Database) error {
		return d.Lookup("a").Rename(ctx, "test", "b", true)
	},
	"rename away": func(s *document.Store, d *document.Database) error {
		return d.Lookup("a").Rename(ctx, "other", "new", false)
	},
	"rename away over": func(s *document.Store, d *document.Database) error {
		return d.Lookup("a").Rename(ctx, "other", "o", true)
	},
	"out":          func(s *document.Store, d *document.Database) error { return piped(d, `[{"$out": "b"}]`) },
	"out into new": func(s *document.Store, d *document.Database) error { return piped(d, `[{"$out": "new"}]`) },
	"make capped":  func(s *document.Store, d *document.Database) error { return d.Lookup("a").MakeCapped(ctx, 10_000) },
	"copy capped": func(s *document.Store, d *document.Database) error {
		return d.Lookup("a").CopyCapped(ctx, "new", 10_000)
	},
	"drop": func(s *document.Store, d *document.Database) error { return d.Lookup("a").Drop(ctx) },
	"create": func(s *document.Store, d *document.Database) error {
		return d.Create(ctx, "new", bson.D{{Key: "capped", Value: true}, {Key: "size", Value: 5000}})
	},
	"create series": func(s *document.Store, d *document.Database) error {
		return d.Create(ctx, "new", bson.D{{Key: "timeseries", Value: bson.D{{Key: "timeField", Value: "at"}}}, {Key: "expireAfterSeconds", Value: 1000}})
	},
	"create view": func(s *document.Store, d *document.Database) error {
		return d.Create(ctx, "new", bson.D{{Key: "viewOn", Value: "a"}})
	},
	"create index": func(s *document.Store, d *document.Database) error {
		_, err := d.Lookup("a").CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "w", Value: 1}}})
		return err
	},
	"drop index":   func(s *document.Store, d *document.Database) error { return d.Lookup("a").DropIndex(ctx, "v_1") },
	"drop indexes": func(s *document.Store, d *document.Database) error { return d.Lookup("a").DropIndex(ctx, "*") },
	"modify": func(s *document.Store, d *document.Database) error {
		return d.Lookup("a").Modify(ctx, document.JSON(`{"validator": {"v": 1}}`))
	},
	"modify more": func(s *document.Store, d *document.Database) error {
		return d.Lookup("a").Modify(ctx, document.JSON(`{"index": {"name": "v_1", "expireAfterSeconds": 100}}`))
	},
	"transaction": func(s *document.Store, d *document.Database) error {
		return s.Transaction(ctx, func(tx *document.Tx) error {
			if err := tx.Create(ctx, d, "new", bson.D{}); err != nil {
				return err
			}
			_, err := tx.In(d.Lookup("new")).Insert(ctx, bson.D{{Key: "_id", Value: 1}})
			return err
		})
	},
}

func piped(d *document.Database, pipeline string) error {
	for _, err := range d.Lookup("a").Aggregate(ctx, document.JSON(pipeline), nil) {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestPowerCutsWhileTheCatalogueChanges: whatever moment the power fails at, what there is is as it was before, or as it is afterwards, and
// nothing is left of what others have never seen.
func TestPowerCutsWhileTheCatalogueChanges(t *testing.T) {
	for name, change := range catalogueChanges {
		t.Run(name, func(t *testing.T) {
			fs := memfs.New()
			faults := faultfs.New(fs)
			s := open(t, faults)
			d := s.Database("test")
			for _, c := range []*document.Collection{d.Lookup("a"), d.Lookup("b"), s.Database("other").Lookup("o")} {
				_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "v", Value: 1}}})
				must(t, err)
				for i := range 5 {
					_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: c.Name() + fmt.Sprint(i)}, {Key: "v", Value: i % 2}, {Key: "w", Value: c.Name()}})
					must(t, err)
				}
			}
			before := whatThereIs(t, s)
			var images []*memfs.FS
			faults.OnCall(func(faultfs.Op, string) error {
				images = append(images, fs.CrashImage(memfs.Policy{}), fs.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: uint64(len(images)), Reordered: true}), fs.KillImage())
				return nil
			})
			must(t, change(s, d))
			faults.OnCall(nil)
			after := whatThereIs(t, s)
			images = append(images, fs.CrashImage(memfs.Policy{}))
			if before == after {
				t.Error("nothing has changed")
			}
			for i, image := range images {
				lookAtCatalogue(t, image, i, len(images), before, after)
			}
		})
	}
}

func lookAtCatalogue(t *testing.T, image *memfs.FS, i, n int, before, after string) {
	s, err := document.Open("db", &document.Options{Storage: pando.Options{FS: image, MemoryBytes: 4 << 20}, TTLInterval: -1})
	if err != nil {
		t.Errorf("image %d of %d: %v", i, n, err)
		return
	}
	if is := whatThereIs(t, s); is != after && (is != before || i == n-1) {
		t.Errorf("image %d of %d:\n%s\nbefore:\n%s\nafter:\n%s", i, n, is, before, after)
	}
	must(t, s.Close())
}

// whatThereIs tells of all collections and keyspaces.
func whatThereIs(t *testing.T, s *document.Store) string {
	t.Helper()
	var b strings.Builder
	databases, err := s.Databases(ctx)
	must(t, err)
	for _, name := range databases {
		list, err := s.Database(name).Collections(ctx)
		must(t, err)
		for _, info := range list {
			c := s.Database(name).Lookup(info.Name)
			fmt.Fprintf(&b, "%s.%s %v\n", name, info.Name, info.Options)
			if !info.View {
				v, err := c.Validate(ctx)
				must(t, err)
				for _, x := range v.Indexes {
					if x.Missing > 0 || x.Extra > 0 {
						t.Errorf("%s: %+v", info.Name, x)
					}
				}
				indexes, err := c.Indexes(ctx)
				must(t, err)
				for _, x := range indexes {
					fmt.Fprintf(&b, "\t%v ready: %v\n", x.Spec, x.Ready)
				}
			}
			b.WriteString(find(t, c, `{}`, &document.FindOptions{Sort: document.JSON(`{"_id": 1}`)}))
			b.WriteString("\n")
		}
	}
	keyspaces, err := s.DB().Keyspaces()
	must(t, err)
	var names []string
	for _, k := range keyspaces {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	fmt.Fprintf(&b, "%d keyspaces\n", len(names))
	return b.String()
}
