package codec

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
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

// recordKey is a key in the order of _id, about as long as that of package keyenc.
func recordKey(i int, doc bsoncore.Document) []byte {
	if id, ok := doc.Index(0).Value().StringValueOK(); ok {
		return append([]byte("\x30"+id), 0)
	}
	return binary.BigEndian.AppendUint32([]byte{0x20}, uint32(i))
}

// TestSizes reports what collections of the real data take on the disk after Compact, with leaves of several sizes.
func TestSizes(t *testing.T) {
	for _, set := range []struct {
		name string
		load func(testing.TB) []bsoncore.Document
	}{{"flights", realFlights}, {"packages", realPackages}} {
		t.Run(set.name, func(t *testing.T) {
			docs := set.load(t)
			for _, leaf := range []int{8 << 10, 32 << 10, 64 << 10, 128 << 10} {
				store := newMemory()
				c := open(t, Template, store)
				raw := 0
				n := diskBytes(t, leaf, len(docs), func(i int) ([]byte, []byte) {
					record, err := c.EncodeWithoutID(nil, docs[i])
					if err != nil {
						t.Fatal(err)
					}
					raw += len(record)
					return recordKey(i, docs[i]), record
				})
				definitions := 0
				for _, d := range store.kept {
					definitions += len(d)
				}
				templates, parts := store.templates()
				t.Logf("leaves of %3d KiB: %d documents, %.1f bytes/record, %d templates, %d parts (%d bytes): %d bytes on disk",
					leaf>>10, len(docs), float64(raw)/float64(len(docs)), templates, parts, definitions, n)
			}
		})
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
			t.Logf("%s %d", filepath.Base(name), info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}
