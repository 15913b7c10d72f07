package codec

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/keyenc"
)

// dataFile opens a file of the data that PANDO_DATA names the directory of, or skips.
func dataFile(tb testing.TB, name string) *zstd.Decoder {
	tb.Helper()
	dir := os.Getenv("PANDO_DATA")
	if dir == "" {
		tb.Skip("PANDO_DATA does not say where flights.csv.zst and debian-packages.jsonl.zst are")
	}
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		tb.Fatal(err)
	}
	r, err := zstd.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.Close(); file.Close() })
	return r
}

// realFlights returns the flights data. What is not known is not in the documents.
func realFlights(tb testing.TB) []bsoncore.Document {
	rows := csv.NewReader(dataFile(tb, "flights.csv.zst"))
	names, err := rows.Read()
	if err != nil {
		tb.Fatal(err)
	}
	all, err := rows.ReadAll()
	if err != nil {
		tb.Fatal(err)
	}
	var list []bsoncore.Document
	for i, row := range all {
		d := bson.D{{Key: "_id", Value: int32(i)}}
		for f, text := range row {
			var v any = text
			if n, err := strconv.Atoi(text); err == nil {
				v = int32(n)
			} else if at, err := time.Parse(time.RFC3339, text); err == nil {
				v = at
			}
			if text != "NA" && text != "" {
				d = append(d, bson.E{Key: names[f], Value: v})
			}
		}
		list = append(list, document(d))
	}
	return list
}

// realPackages returns the debian-packages data.
func realPackages(tb testing.TB) []bsoncore.Document {
	var list []bsoncore.Document
	lines := bufio.NewScanner(dataFile(tb, "debian-packages.jsonl.zst"))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var d bson.D
		if err := bson.UnmarshalExtJSON(lines.Bytes(), false, &d); err != nil {
			tb.Fatal(err)
		}
		list = append(list, document(d))
	}
	slices.SortFunc(list, func(a, b bsoncore.Document) int {
		return bytes.Compare(a.Index(0).Value().Data[4:], b.Index(0).Value().Data[4:])
	})
	return list
}

// users returns n documents as a program makes them up that wants to try a database.
func users(n int) []bsoncore.Document {
	r := rand.New(rand.NewPCG(5, 6))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	list := make([]bsoncore.Document, n)
	for i := range list {
		first := pick("Anna", "Boris", "Clara", "David", "Elena", "Felix", "Greta", "Hugo", "Irene", "Jonas", "Karin", "Lukas", "Maria", "Nils", "Olga", "Peter")
		last := pick("Adler", "Brandt", "Costa", "Dubois", "Eriksen", "Ferrari", "Garcia", "Horvat", "Ivanov", "Jansen", "Kowalski", "Larsen", "Moreau", "Novak", "Olsen", "Petrov")
		list[i] = document(bson.D{
			{Key: "_id", Value: int32(i)}, {Key: "name", Value: first + " " + last},
			{Key: "email", Value: strings.ToLower(fmt.Sprintf("%s.%s%d@example.com", first, last, i))},
			{Key: "age", Value: int32(18 + r.IntN(60))}, {Key: "city", Value: pick("Lisbon", "Krakow", "Turku", "Leipzig", "Ghent", "Bergen", "Porto", "Graz", "Malmo", "Seville")},
			{Key: "plan", Value: pick("free", "team", "business", "enterprise")}, {Key: "active", Value: r.IntN(4) > 0},
			{Key: "score", Value: float64(r.IntN(10000)) / 100}, {Key: "logins", Value: int32(r.IntN(1000))},
			{Key: "created", Value: bson.DateTime(1700000000000 + int64(i)*60000)},
		})
	}
	return list
}

// key is the key of doc under a field, as an index has it: followed by that of the _id unless the index is unique.
func key(doc bsoncore.Document, field string, unique bool) []byte {
	k := keyenc.Append(nil, doc.Lookup(field), false, nil)
	if unique {
		return k
	}
	return append(k, key(doc, "_id", true)...)
}

// TestSizes reports what collections of real data, and of made up users, take on the disk after Compact, with leaves of
// several sizes.
func TestSizes(t *testing.T) {
	for _, set := range []struct {
		name           string
		load           func(testing.TB) []bsoncore.Document
		unique, second string
	}{
		{"flights", realFlights, "", "tailnum"}, {"packages", realPackages, "", "section"},
		{"users", func(tb testing.TB) []bsoncore.Document { dataFile(tb, "flights.csv.zst"); return users(100_000) }, "email", "city"},
	} {
		t.Run(set.name, func(t *testing.T) {
			docs := set.load(t)
			for _, leaf := range []int{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10} {
				store := newMemory()
				c := open(t, Template, store)
				raw := 0
				records := diskBytes(t, leaf, len(docs), func(i int) ([]byte, []byte) {
					record, err := c.Encode(nil, docs[i])
					if err != nil {
						t.Fatal(err)
					}
					raw += len(record)
					return key(docs[i], "_id", true), record
				})
				var unique int64
				if set.unique != "" {
					unique = diskBytes(t, leaf, len(docs), func(i int) ([]byte, []byte) {
						return key(docs[i], set.unique, true), append([]byte{0}, key(docs[i], "_id", true)...)
					})
				}
				second := diskBytes(t, leaf, len(docs), func(i int) ([]byte, []byte) { return key(docs[i], set.second, false), nil })
				definitions := 0
				for _, d := range store.kept {
					definitions += len(d)
				}
				templates, parts := store.templates()
				t.Logf("leaves of %3d KiB: %d documents, %.1f bytes/record, %d templates, %d parts (%d bytes); on disk: records %d, index on %s %d, unique %s %d",
					leaf>>10, len(docs), float64(raw)/float64(len(docs)), templates, parts, definitions, records, set.second, second, set.unique, unique)
			}
		})
	}
}

// TestRealDocumentsComeBack: every document of the real data, from the codec that encoded it and from one opened later.
func TestRealDocumentsComeBack(t *testing.T) {
	for _, load := range []func(testing.TB) []bsoncore.Document{realFlights, realPackages} {
		docs, store := load(t), newMemory()
		c := open(t, Template, store)
		var records [][]byte
		for _, doc := range docs {
			record, err := c.Encode(nil, doc)
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, record)
		}
		later := open(t, Template, store)
		for i, doc := range docs {
			same(t, records[i], doc, c, later)
		}
	}
}

// diskBytes returns the size of a database with one compacted keyspace of n pairs.
func diskBytes(t *testing.T, leaf, n int, pair func(i int) (key, value []byte)) int64 {
	dir := t.TempDir()
	db, err := pando.Open(dir, &pando.Options{Profile: pando.Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	codec := pando.Zstd
	ks, err := db.Keyspace("records", &pando.KeyspaceOptions{Compression: &codec, LeafBytes: leaf})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < n; {
		b := db.NewBatch()
		for range min(16000, n-i) {
			key, value := pair(i)
			if err := b.In(ks).Put(key, value); err != nil {
				t.Fatal(err)
			}
			i++
		}
		if err := db.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Compact(context.Background(), pando.CompactOptions{Compression: pando.Zstd}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var total int64
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if info, _ := e.Info(); err == nil && !e.IsDir() {
			total += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return total - emptyBytes
}

// emptyBytes is about what a database without records takes: the root and a file of the log.
const emptyBytes = 8192 + 4136
