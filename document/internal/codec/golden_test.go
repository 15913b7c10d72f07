package codec

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// goldenDocuments is a document for each part of the format.
func goldenDocuments() []bsoncore.Document {
	day := bson.DateTime(dateEpoch + 366*86400_000)
	list := []bson.D{
		{{Key: "_id", Value: int32(7)}, {Key: "small", Value: int32(-3)}, {Key: "two", Value: int32(1000)}, {Key: "near", Value: int32(1007)},
			{Key: "three", Value: int32(100000)}, {Key: "long", Value: int64(math.MinInt64)}},
		{{Key: "_id", Value: "x"}, {Key: "day", Value: day}, {Key: "hour", Value: day + 3600_000}, {Key: "second", Value: day + 1000},
			{Key: "milli", Value: day + 1}, {Key: "far", Value: bson.DateTime(math.MaxInt64)}},
		{{Key: "whole", Value: 3.0}, {Key: "tenth", Value: 2.5}, {Key: "cent", Value: 19.99}, {Key: "micro", Value: -73.872611},
			{Key: "third", Value: 1.0 / 3}, {Key: "zero", Value: math.Copysign(0, -1)}, {Key: "nan", Value: math.Float64frombits(0x7ff8000000000001)}},
		{{Key: "yes", Value: true}, {Key: "no", Value: false}, {Key: "null", Value: nil}, {Key: "undefined", Value: bson.Undefined{}},
			{Key: "min", Value: bson.MinKey{}}, {Key: "max", Value: bson.MaxKey{}}},
		{{Key: "oid", Value: bson.ObjectID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}, {Key: "time", Value: bson.Timestamp{T: 1, I: 2}},
			{Key: "decimal", Value: bson.NewDecimal128(0x3040000000000000, 42)}, {Key: "binary", Value: bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}}},
		{{Key: "regex", Value: bson.Regex{Pattern: "^a", Options: "i"}}, {Key: "pointer", Value: bson.DBPointer{DB: "d.c"}}, {Key: "code", Value: bson.JavaScript("f()")},
			{Key: "symbol", Value: bson.Symbol("s")}, {Key: "scope", Value: bson.CodeWithScope{Code: "g()", Scope: bson.D{{Key: "x", Value: int32(1)}}}}},
		{{Key: "text", Value: "not in a dictionary, and longer than thirty bytes"}, {Key: "in", Value: bson.D{{Key: "a", Value: int32(1)}, {Key: "empty", Value: bson.D{}}, {Key: "b", Value: "inner"}}}, {Key: "", Value: int32(2)}, {Key: "", Value: int32(3)}},
		{{Key: "none", Value: bson.A{}}, {Key: "numbers", Value: bson.A{int32(1), int32(300)}}, {Key: "texts", Value: bson.A{"red", "green"}},
			{Key: "mixed", Value: bson.A{int32(1), nil, bson.A{true}, bson.D{{Key: "k", Value: int32(1)}}}}, {Key: "list", Value: bson.A{bson.D{{Key: "k", Value: int32(1)}}, bson.D{{Key: "k", Value: int32(2)}}}}},
	}
	docs := make([]bsoncore.Document, len(list))
	for i, d := range list {
		docs[i] = document(d)
	}
	// An array whose elements have other names than 0, 1, 2.
	return append(docs, bsoncore.BuildDocument(nil, bsoncore.AppendArrayElement(nil, "odd", document(bson.D{{Key: "01", Value: true}}))))
}

// TestGolden shows the bytes of definitions and records. Those of a change here can be read by no earlier version.
func TestGolden(t *testing.T) {
	var store *memory
	var c *Codec
	datadriven.RunTest(t, "testdata/golden.txt", func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "format":
			store = newMemory()
			c = open(t, map[string]Format{"template": Template, "bson": BSON, "json": JSON}[d.CmdArgs[0].Key], store)
			c.seed = seedApart("red", "green")
			return ""
		case "encode":
			var doc bsoncore.Document
			if d.HasArg("document") {
				var n int
				d.ScanArgs(t, "document", &n)
				doc = goldenDocuments()[n]
			} else if err := bson.UnmarshalExtJSON([]byte(d.Input), true, (*bson.Raw)(&doc)); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if !d.HasArg("quiet") {
				fmt.Fprintf(&out, "document\n%s", dump(doc))
			}
			times := 3
			if d.HasArg("once") {
				times = 1
			}
			for range times {
				before := maps.Clone(store.kept)
				record, err := c.Encode(nil, doc)
				if err != nil {
					return err.Error()
				}
				for _, number := range slices.Sorted(maps.Keys(store.kept)) {
					if !bytes.Equal(before[number], store.kept[number]) {
						fmt.Fprintf(&out, "definition %#x\n%s", number, dump(store.kept[number]))
					}
				}
				fmt.Fprintf(&out, "record\n%s", dump(record))
				same(t, record, doc, c, open(t, c.format, store.clone()))
			}
			return out.String()
		}
		return "unknown command"
	})
}

// seedApart returns a seed under which a column remembers both strings from the start. Under one of rememberedStrings they have the same
// place there, each takes that of the other, and neither becomes an entry.
func seedApart(a, b string) maphash.Seed {
	for {
		c := &Codec{seed: maphash.MakeSeed()}
		col := &column{codec: c}
		place := func(s string) uint64 {
			return col.hash(bsoncore.AppendString(nil, s)) >> 16 % rememberedStrings
		}
		if place(a) != place(b) {
			return c.seed
		}
	}
}

// dump shows bytes, sixteen in a line.
func dump(b []byte) string {
	var out strings.Builder
	for chunk := range slices.Chunk(b, 16) {
		text := bytes.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return '.'
			}
			return r
		}, chunk)
		fmt.Fprintf(&out, "  %-47s  %s\n", fmt.Sprintf("% x", chunk), text)
	}
	return out.String()
}
