package document_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A store of which documents were lost once had indexes that told of them: counts were too high, and what was lost could not be inserted
// again where it had been unique. One of which entries were lost did not find all documents.
func TestSalvagedIndexesTellOfTheDocumentsThatAreThere(t *testing.T) {
	for _, lost := range []string{"filler", "unique"} {
		fs := memfs.New()
		storage := pando.Options{FS: fs, MemoryBytes: 4 << 20, Compression: pando.None}
		s, err := document.Open("db", &document.Options{Storage: storage, TTLInterval: -1})
		must(t, err)
		c := collection(t, s, "c", &document.CollectionOptions{Format: document.BSON, Compression: pando.None})
		_, err = c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "u", Value: 1}}, Unique: true})
		must(t, err)
		var docs []any
		for i := range 3000 {
			docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "u", Value: fmt.Sprintf("unique%05d", i)}, {Key: "f", Value: "filler"}})
		}
		_, err = c.InsertMany(ctx, docs, nil)
		must(t, err)
		must(t, s.DB().Compact(ctx, pando.CompactOptions{}))
		must(t, s.Close())
		if !spoil(t, fs, "db/segments", []byte(lost)) {
			t.Fatalf("there is no %q to damage", lost)
		}

		report, err := document.Salvage(ctx, "db", "saved", &document.Options{Storage: storage})
		must(t, err)
		if len(report.Lost) == 0 {
			t.Fatal("nothing was lost")
		}
		s, err = document.Open("saved", &document.Options{Storage: storage, TTLInterval: -1})
		must(t, err)
		c = s.Database("test").Lookup("c")
		all := find(t, c, `{}`, &document.FindOptions{Hint: document.JSON(`{"$natural": 1}`)})
		byIndex := find(t, c, `{"u": {"$gte": ""}}`, &document.FindOptions{Hint: "u_1", Sort: document.JSON(`{"_id": 1}`)})
		counted, err := c.Count(ctx, document.JSON(`{"u": {"$gte": ""}}`), nil)
		must(t, err)
		if n := strings.Count(all, "\n"); all != byIndex || int(counted) != n || n == 3000 && lost == "filler" {
			t.Errorf("%s: %d documents, %d by their index, which counts %d", lost, n, strings.Count(byIndex, "\n"), counted)
		}
		for i := range 3000 { // those that were lost
			if _, err := c.Insert(ctx, docs[i]); err != nil && document.CodeOf(err) != document.DuplicateKey {
				t.Fatal(err)
			}
		}
		if n, err := c.Count(ctx, nil, nil); err != nil || n != 3000 {
			t.Errorf("%s: %d documents after what was lost was inserted again, %v", lost, n, err)
		}
		must(t, s.Close())
	}
}

// spoil flips a bit in a page of every file that holds a text.
func spoil(t *testing.T, fs vfs.FS, dir string, text []byte) (found bool) {
	names, err := fs.List(dir)
	must(t, err)
	for _, name := range names {
		f, err := fs.OpenReadWrite(dir + "/" + name)
		must(t, err)
		b, err := vfs.ReadFile(fs, dir+"/"+name, 1<<30)
		must(t, err)
		if at := bytes.LastIndex(b, text); at >= 0 {
			_, err := f.WriteAt([]byte{b[at] ^ 1}, int64(at))
			must(t, err)
			found = true
		}
		must(t, f.Close())
	}
	return found
}
