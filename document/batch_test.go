package document_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// Large batches are prepared by several goroutines and stored while others wait: they fail, and keep the order of what they make,
// like small ones.
func TestLargeBatches(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "things", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "tags", Value: 1}}, Unique: true})
	must(t, err)
	const n = 3000
	batch := func(change func(i int, d bson.D) bson.D) []bson.D {
		list := make([]bson.D, n)
		for i := range list {
			list[i] = bson.D{{Key: "n", Value: i}, {Key: "tags", Value: bson.A{fmt.Sprint("a", i), fmt.Sprint("b", i), fmt.Sprint("c", i)}}}
			list[i] = change(i, list[i])
		}
		return list
	}
	count := func(what string, want int64) {
		t.Helper()
		if got, err := c.Count(ctx, nil, nil); err != nil || got != want {
			t.Errorf("%s: %d documents, not %d: %v", what, got, want, err)
		}
	}
	twice := func(i int, d bson.D) bson.D {
		if i == 1000 || i == 2500 {
			return append(d[:1], bson.E{Key: "tags", Value: bson.A{"x", "a3"}})
		}
		return d
	}
	var failed document.WriteErrors
	if _, err := c.InsertMany(ctx, batch(twice), nil); !errors.As(err, &failed) || len(failed) != 1 || failed[0].Index != 1000 || !errors.Is(err, document.DuplicateKey) {
		t.Errorf("all or none: %v", err)
	}
	count("all or none", 0)
	stored, err := c.InsertMany(ctx, batch(twice), &document.InsertOptions{Ordered: true})
	if !errors.As(err, &failed) || len(failed) != 1 || failed[0].Index != 1000 || stored != 1000 {
		t.Errorf("ordered: %d, %v", stored, err)
	}
	count("ordered", 1000)
	i := 0
	for doc, err := range c.Find(ctx, bson.D{}, &document.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}}) {
		must(t, err)
		if got := doc.Lookup("n").Int32(); int(got) != i {
			t.Fatalf("document %d is the %dth by its _id", got, i)
		}
		i++
	}
	stored, err = c.InsertMany(ctx, batch(func(i int, d bson.D) bson.D { return d }), &document.InsertOptions{Unordered: true})
	if !errors.As(err, &failed) || len(failed) != 1000 || stored != 2000 {
		t.Errorf("unordered: %d, %d errors", stored, len(failed))
	}
	count("unordered", 3000)
	plain := func(list []bson.D, first int) []bson.D {
		for i := range list {
			list[i] = bson.D{{Key: "_id", Value: first + i}, {Key: "tags", Value: fmt.Sprint(first + i)}}
		}
		return list
	}
	_, err = c.InsertMany(ctx, plain(make([]bson.D, n), 0), nil)
	must(t, err)
	if _, err := c.InsertMany(ctx, plain(make([]bson.D, n), n-1), nil); !errors.As(err, &failed) || failed[0].Index != 0 {
		t.Errorf("an _id that is there: %v", err)
	}
	bad := plain(make([]bson.D, n), n)
	bad[2800][0].Value = n + 10
	if _, err := c.InsertMany(ctx, bad, nil); !errors.As(err, &failed) || failed[0].Index != 2800 {
		t.Errorf("an _id that comes twice: %v", err)
	}
	bad = plain(make([]bson.D, n), n)
	bad[100][0].Value, bad[2900][0].Value = bson.A{1}, bson.A{1}
	stored, err = c.InsertMany(ctx, bad, &document.InsertOptions{Unordered: true})
	if !errors.As(err, &failed) || len(failed) != 2 || failed[0].Index != 100 || failed[1].Index != 2900 || stored != n-2 {
		t.Errorf("documents that are refused: %d, %v", stored, err)
	}
	count("in the end", 3000+n+n-2)
}

// New templates and new entries of dictionaries come with the document that needs them: they take no sync of their own.
func TestInsertSyncsOnce(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	insert := func(i int) {
		_, err := c.Insert(ctx, bson.D{
			{Key: "_id", Value: i}, {Key: fmt.Sprintf("shape%d", i/8), Value: fmt.Sprintf("text %d", i/4)}, {Key: "mail", Value: fmt.Sprintf("a%d@b%d", i, i/8)},
		})
		must(t, err)
	}
	insert(0)
	before := s.DB().Metrics().Syncs
	for i := range 200 {
		insert(i + 1)
	}
	if got := s.DB().Metrics().Syncs - before; got != 200 {
		t.Errorf("200 documents took %d syncs", got)
	}
	meta, err := s.DB().Keyspace("documents", nil)
	must(t, err)
	n := 0
	for range meta.Prefix([]byte{'t'}) {
		n++
	}
	if n < 50 {
		t.Errorf("%d templates and parts of dictionaries were made: the test is about many", n)
	}
}

// Documents are checked while they are encoded, once the collection knows their shape. Whatever is wrong with one, wherever it is in
// the batch, and whatever the options say: nothing is stored, and the error tells which one it is.
func TestInsertManyRefusesWhatIsNoBSON(t *testing.T) {
	good := func(i int) bson.Raw {
		raw, err := bson.Marshal(bson.D{
			{Key: "_id", Value: i}, {Key: "text", Value: fmt.Sprintf("text %d", i%7)}, {Key: "on", Value: true},
			{Key: "tags", Value: bson.A{"red", "green"}}, {Key: "in", Value: bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 2}}},
			{Key: "data", Value: bson.Binary{Subtype: 2, Data: []byte("data")}}, {Key: "like", Value: bson.Regex{Pattern: "x"}},
		})
		must(t, err)
		return raw
	}
	replaced := func(i int, old, with string) bson.Raw {
		raw := bytes.Replace(good(i), []byte(old), []byte(with), 1)
		if bytes.Equal(raw, good(i)) {
			t.Fatalf("%q is not in the document", old)
		}
		return raw
	}
	for _, c := range []struct {
		name   string
		damage func(i int) bson.Raw
	}{
		{"text that is not UTF-8", func(i int) bson.Raw { return replaced(i, "text ", "tex\xff ") }},
		{"text in an array that is not UTF-8", func(i int) bson.Raw { return replaced(i, "green", "gr\xffen") }},
		{"a boolean of 2", func(i int) bson.Raw { return replaced(i, "on\x00\x01", "on\x00\x02") }},
		{"a name twice", func(i int) bson.Raw { return replaced(i, "\x10b\x00", "\x10a\x00") }},
		{"a wrong length inside binary data", func(i int) bson.Raw { return replaced(i, "\x02\x04\x00\x00\x00data", "\x02\x05\x00\x00\x00data") }},
		{"a regular expression that is not UTF-8", func(i int) bson.Raw { return replaced(i, "like\x00x", "like\x00\xff") }},
		{"bytes behind the end", func(i int) bson.Raw { return append(good(i), 0) }},
		{"cut short", func(i int) bson.Raw { return good(i)[:20] }},
		{"nothing", func(int) bson.Raw { return bson.Raw{} }},
	} {
		for _, o := range []*document.InsertOptions{nil, {Ordered: true}, {Unordered: true}} {
			for _, n := range []int{4, 700} {
				t.Run(fmt.Sprintf("%s, %d documents, %+v", c.name, n, o), func(t *testing.T) {
					s := open(t, memfs.New())
					x := collection(t, s, "known", nil)
					insert := func(from int, damaged ...int) error {
						list := make([]bson.Raw, n)
						for i := range list {
							list[i] = good(from + i)
						}
						for _, i := range damaged {
							list[i] = c.damage(from + i)
						}
						_, err := x.InsertMany(ctx, list, o)
						return err
					}
					must(t, insert(0))
					err := insert(n, n/2, n-1)
					var list document.WriteErrors
					if !errors.As(err, &list) || len(list) != 1 || list[0].Index != n/2 || document.CodeOf(err) == 0 {
						t.Fatalf("error %v", err)
					}
					if count, err := x.Count(ctx, nil, nil); err != nil || count != int64(n) {
						t.Fatalf("%d documents, %v", count, err)
					}
					must(t, insert(n))
				})
			}
		}
	}
}
