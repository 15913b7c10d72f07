package drivers

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// d makes a document of names and values in turn.
func d(pairs ...any) bson.D {
	doc := bson.D{}
	for i := 0; i+1 < len(pairs); i += 2 {
		doc = append(doc, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return doc
}

// moved are the databases that fill makes.
var moved = []string{"moved", "other"}

// fill makes what is moved between servers: documents of all types, indexes of all kinds, collections of all kinds, a user and a role.
func fill(c *connection) {
	id := bson.ObjectID{0x50, 0x7f, 0x1f, 11: 9}
	decimal, _ := bson.ParseDecimal128("1.10")
	insert := func(db, name string, docs ...any) { c.run(db, d("insert", name, "documents", bson.A(docs))) }
	insert("moved", "types", d("_id", int32(1), "double", 1.5, "string", "x", "document", d("a", d("b", bson.A{int32(1), int32(2)})),
		"array", bson.A{int32(1), "2", nil, bson.A{}}, "binary", bson.Binary{Subtype: 5, Data: []byte("abc")}, "old", bson.Binary{Subtype: 2, Data: []byte("abc")},
		"undefined", bson.Undefined{}, "oid", id, "true", true, "date", bson.DateTime(-1), "null", nil, "regex", bson.Regex{Pattern: "a.*", Options: "im"},
		"pointer", bson.DBPointer{DB: "a.b", Pointer: id}, "code", bson.JavaScript("f()"), "symbol", bson.Symbol("s"),
		"scoped", bson.CodeWithScope{Code: "f()", Scope: d("x", int32(1))}, "int", int32(-7), "timestamp", bson.Timestamp{T: 1, I: 2},
		"long", int64(math.MaxInt64), "decimal", decimal, "min", bson.MinKey{}, "max", bson.MaxKey{}, "inf", math.Inf(-1), "nan", math.NaN(),
		"", "no name", "a.b", int32(1), "$c", int32(2)),
		d("_id", d("k", int32(1), "l", bson.A{int32(1)}), "zero", math.Copysign(0, -1)), d("_id", "text"), d("_id", id), d("_id", nil),
		d("_id", int64(9)), d("_id", 2.5), d("_id", bson.Binary{Subtype: 4, Data: make([]byte, 16)}))
	docs := bson.A{}
	for i := range int32(3000) {
		docs = append(docs, d("_id", i, "n", i%97, "s", fmt.Sprintf("s%d", i), "tags", bson.A{i % 3, i % 5}, "at", bson.DateTime(1e12)+bson.DateTime(i)*3600e3,
			"loc", d("type", "Point", "coordinates", bson.A{i % 180, i % 90})))
	}
	insert("moved", "many", docs...)
	one, list := int32(1), bson.A{}
	for _, x := range []bson.D{
		d("key", d("n", one)), d("key", d("n", one, "s", int32(-1))), d("key", d("s", one), "unique", true), d("key", d("tags", one)),
		d("key", d("x", one), "sparse", true), d("key", d("at", one), "expireAfterSeconds", int32(2e9)), d("key", d("n", "hashed")),
		d("key", d("n", one, "at", one), "partialFilterExpression", d("n", d("$gt", int32(5)))), d("key", d("$**", one), "wildcardProjection", d("s", one)),
		d("key", d("loc", "2dsphere")), d("key", d("h", one), "hidden", true), d("key", d("s", one, "n", one), "collation", d("locale", "de", "strength", int32(2))),
	} {
		list = append(list, append(x, bson.E{Key: "name", Value: fmt.Sprintf("index %d", len(list))}))
	}
	c.run("moved", d("createIndexes", "many", "indexes", list))
	create := func(name string, options ...any) { c.run("moved", append(d("create", name), d(options...)...)) }
	create("capped", "capped", true, "size", 100_000.0, "max", int32(1000))
	docs = bson.A{}
	for i := range int32(50) {
		docs = append(docs, d("_id", 100-i))
	}
	insert("moved", "capped", docs...)
	create("validated", "validator", d("$jsonSchema", d("required", bson.A{"a"})), "validationLevel", "moderate", "validationAction", "warn")
	insert("moved", "validated", d("_id", one), d("_id", int32(2), "a", one))
	create("collated", "collation", d("locale", "fr", "strength", one))
	insert("moved", "collated", d("_id", "a"), d("_id", "b"))
	c.run("moved", d("createIndexes", "collated", "indexes", bson.A{d("key", d("z", one), "name", "z")}))
	create("clustered", "clusteredIndex", d("key", d("_id", one), "unique", true, "name", "by id"))
	insert("moved", "clustered", d("_id", one))
	create("series", "timeseries", d("timeField", "at", "metaField", "m", "granularity", "minutes"), "expireAfterSeconds", int64(1e9))
	docs = bson.A{}
	for i := range int32(3000) {
		docs = append(docs, d("_id", i, "at", bson.DateTime(17e11)+bson.DateTime(i)*60_500, "m", d("s", i%3), "v", float64(i)/8, "n", d("p", bson.A{i, "x"}), "s", fmt.Sprint("s", i%40)))
	}
	insert("moved", "series", docs...)
	insert("moved", "series", d("_id", "late", "at", bson.DateTime(1e12), "z", nil), d("_id", "far", "at", bson.DateTime(4e12), "m", d("s", one)))
	create("images", "changeStreamPreAndPostImages", d("enabled", true))
	create("empty")
	create("view", "viewOn", "many", "pipeline", bson.A{d("$match", d("n", one)), d("$project", d("s", one))}, "collation", d("locale", "de"))
	insert("other", "dots. and spaces", d("_id", one))
	insert("other", "\u00fc%/", d("_id", one))
	c.run("moved", d("createRole", "keeper", "privileges", bson.A{d("resource", d("db", "moved", "collection", "many"), "actions", bson.A{"find"})}, "roles", bson.A{"read"}))
	c.run("moved", d("createUser", "mover", "pwd", "secret", "roles", bson.A{"readWrite", "keeper"}, "customData", d("a", one)))
}

// empty drops what fill makes.
func empty(c *connection) {
	for _, db := range moved {
		c.run(db, d("dropAllUsersFromDatabase", int32(1)))
		c.run(db, d("dropAllRolesFromDatabase", int32(1)))
		c.run(db, d("dropDatabase", int32(1)))
	}
}

// contents describes what a server holds of the moved databases, in parts that can be compared: a document is there with its bytes.
func contents(c *connection) map[string]string {
	parts := map[string]string{}
	for _, db := range moved {
		for _, info := range c.all(db, d("listCollections", int32(1))) {
			name := info.Lookup("name").StringValue()
			if name == "system.views" || strings.HasPrefix(name, "system.buckets.") {
				continue // how mongod keeps views and time series
			}
			ns := db + "." + name
			parts[ns] = info.Lookup("type").StringValue() + unordered(info.Lookup("options").Document())
			if info.Lookup("type").StringValue() == "view" {
				continue
			}
			for _, x := range c.all(db, d("listIndexes", name)) {
				if name == "series" {
					continue // 7.0 makes an index of meta and time by itself, 6.0 does not
				}
				parts[ns+" index "+x.Lookup("name").StringValue()] = x.Lookup("key").String() + unordered(x)
			}
			docs := c.all(db, d("find", name))
			if name != "capped" {
				slices.SortFunc(docs, func(a, b bson.Raw) int { return slices.Compare(a.Lookup("_id").Value, b.Lookup("_id").Value) })
			}
			for i, doc := range docs {
				if name == "series" {
					doc = bson.Raw(unordered(doc)) // the fields of a measurement are in no order
				}
				parts[fmt.Sprintf("%s document %d", ns, i)] = string(doc)
			}
		}
		users := c.run(db, d("usersInfo", int32(1), "showCredentials", true, "showCustomData", true)).Lookup("users").Array()
		roles := c.run(db, d("rolesInfo", int32(1), "showPrivileges", true)).Lookup("roles").Array()
		for _, list := range []bson.RawArray{users, roles} {
			values, err := list.Values()
			if err != nil {
				c.t.Fatal(err)
			}
			for _, v := range values {
				doc := v.Document()
				kept := bson.D{}
				for _, field := range []string{"userId", "credentials", "customData", "roles", "privileges"} {
					if x, err := doc.LookupErr(field); err == nil {
						kept = append(kept, bson.E{Key: field, Value: x})
					}
				}
				raw, err := bson.Marshal(kept)
				if err != nil {
					c.t.Fatal(err)
				}
				parts["account "+doc.Lookup("_id").StringValue()] = unordered(raw)
			}
		}
	}
	return parts
}

// unordered describes a document whose order says nothing.
func unordered(doc bson.Raw) string {
	elements, _ := doc.Elements()
	list := make([]string, len(elements))
	for i, e := range elements {
		if inner, ok := e.Value().DocumentOK(); ok {
			list[i] = e.Key() + ": " + unordered(inner)
		} else {
			list[i] = e.Key() + ": " + e.Value().String()
		}
	}
	slices.Sort(list)
	return "{" + strings.Join(list, ", ") + "}"
}

// same fails the test where one server holds something else than the other.
func same(t *testing.T, from, to *connection) {
	t.Helper()
	want, got := contents(from), contents(to)
	for _, part := range slices.Sorted(maps.Keys(want)) {
		if v, ok := got[part]; !ok {
			t.Errorf("%s did not arrive", part)
		} else if v != want[part] {
			t.Errorf("%s arrived as\n%q, was\n%q", part, last(v, 1500), last(want[part], 1500))
		}
	}
	for part := range got {
		if _, ok := want[part]; !ok {
			t.Errorf("%s was not there before", part)
		}
	}
	if len(want) < 3000 {
		t.Errorf("only %d parts were compared", len(want))
	}
}

// built builds one of MongoDB's tools.
func built(t *testing.T, bin, tool string) {
	t.Helper()
	fetched(t, "tools", "go", "build", "-o", bin, "github.com/mongodb/mongo-tools/"+tool+"/main")
}
