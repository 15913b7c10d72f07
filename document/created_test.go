package document

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// What listCollections shows of a collection is what mongod shows, so that tools that move collections find no difference.
func TestOptionsOfANewCollection(t *testing.T) {
	const full = `{"locale":"fr","caseLevel":false,"caseFirst":"off","strength":{"$numberInt":"1"},"numericOrdering":false,` +
		`"alternate":"non-ignorable","maxVariable":"punct","normalization":false,"backwards":false,"version":"57.1"}`
	for _, c := range []struct{ given, want, id string }{
		{`{}`, `{}`, `{"v":{"$numberInt":"2"},"key":{"_id":{"$numberInt":"1"}},"name":"_id_"}`},
		{`{"capped":1,"size":100000.5,"max":7.9}`, `{"capped":true,"size":{"$numberInt":"100096"},"max":{"$numberInt":"7"}}`, ``},
		{`{"capped":true,"size":{"$numberLong":"8589934591"},"max":0}`,
			`{"capped":true,"size":{"$numberLong":"8589934592"},"max":{"$numberInt":"2147483647"}}`, ``},
		{`{"capped":{"$numberDecimal":"1"},"size":{"$numberDecimal":"1E+3"}}`, `{"capped":true,"size":{"$numberInt":"1024"}}`, ``},
		{`{"capped":false}`, `{}`, ``},
		{`{"capped":{"$numberDecimal":"-0E+3"}}`, `{}`, ``},
		{`{"collation":{"locale":"simple"}}`, `{}`, ``},
		{`{"collation":{"locale":"fr","strength":1},"idIndex":{"key":{"_id":1},"name":"_id_"}}`, `{"collation":` + full + `}`,
			`{"v":{"$numberInt":"2"},"key":{"_id":{"$numberInt":"1"}},"name":"_id_","collation":` + full + `}`},
		{`{"collation":{"locale":"fr","strength":1},"idIndex":{"v":2,"key":{"_id":1.0},"name":"x","ns":"a.b","collation":{"locale":"fr","strength":1}}}`,
			`{"collation":` + full + `}`, ``},
		{`{"clusteredIndex":{"key":{"_id":1},"unique":true}}`,
			`{"clusteredIndex":{"v":{"$numberInt":"2"},"key":{"_id":{"$numberInt":"1"}},"name":"_id_","unique":true}}`,
			`{"v":{"$numberInt":"2"},"key":{"_id":{"$numberInt":"1"}},"name":"_id_","unique":true,"clustered":true}`},
		{`{"validator":{},"storageEngine":{},"indexOptionDefaults":{},"changeStreamPreAndPostImages":{"enabled":false}}`, `{}`, ``},
		// Spring Data says with every create whether the collection is capped.
		{`{"capped":false,"timeseries":{"timeField":"t"}}`,
			`{"timeseries":{"timeField":"t","granularity":"seconds","bucketMaxSpanSeconds":{"$numberInt":"3600"}}}`, ``},
		// A view keeps what it is, and nothing that only a collection has.
		{`{"viewOn":"x","validator":{"a":1},"validationLevel":"off","validationAction":"warn","storageEngine":{"wiredTiger":{}},` +
			`"indexOptionDefaults":{"storageEngine":{}},"changeStreamPreAndPostImages":{"enabled":false},"collation":{"locale":"simple"}}`,
			`{"viewOn":"x","pipeline":[]}`, ``},
	} {
		var given bson.Raw
		if err := bson.UnmarshalExtJSON([]byte(c.given), false, &given); err != nil {
			t.Fatal(err)
		}
		got, err := asCreated(document(given))
		if err != nil {
			t.Fatalf("%s: %v", c.given, err)
		}
		if text, err := bson.MarshalExtJSON(bson.Raw(got), true, false); err != nil || string(text) != c.want {
			t.Errorf("%s: kept as %s, %v; want %s", c.given, text, err, c.want)
		}
		if again, err := asCreated(got); err != nil || string(again) != string(got) {
			t.Errorf("%s: a second time %s, %v", c.given, again, err)
		}
		if text, err := bson.MarshalExtJSON(IDIndex(bson.Raw(got)), true, false); c.id != "" && (err != nil || string(text) != c.id) {
			t.Errorf("%s: the index of _id is %s, %v; want %s", c.given, text, err, c.id)
		}
	}
	for given, want := range map[string]mongoerror.Code{
		`{"size":5}`: mongoerror.InvalidOptions, `{"capped":false,"max":5}`: mongoerror.InvalidOptions,
		`{"idIndex":{}}`: mongoerror.FailedToParse, `{"idIndex":{"key":{"_id":1}}}`: mongoerror.FailedToParse,
		`{"idIndex":{"key":{"a":1},"name":"_id_"}}`: mongoerror.BadValue, `{"idIndex":{"key":{"_id":-1},"name":"_id_"}}`: mongoerror.BadValue,
		`{"idIndex":{"key":{"_id":1},"name":"_id_","collation":{"locale":"en"}}}`: mongoerror.BadValue,
		`{"idIndex":{"key":{"_id":1},"name":"_id_","unique":true}}`:               mongoerror.InvalidIndexSpecificationOption,
		`{"idIndex":{"key":{"_id":1},"name":"_id_"},"viewOn":"x"}`:                mongoerror.InvalidOptions,
		`{"viewOn":"x","changeStreamPreAndPostImages":{"enabled":true}}`:          mongoerror.InvalidOptions,
		`{"viewOn":"x","validationLevel":"bogus"}`:                                mongoerror.BadValue,
		`{"capped":true,"timeseries":{"timeField":"t"}}`:                          mongoerror.InvalidOptions,
		`{"capped":true,"size":0}`:                                                outOfRange, `{"capped":true,"size":5,"max":2147483648}`: outOfRange,
	} {
		var raw bson.Raw
		if err := bson.UnmarshalExtJSON([]byte(given), false, &raw); err != nil {
			t.Fatal(err)
		}
		var e *mongoerror.Error
		if _, err := asCreated(document(raw)); !errors.As(err, &e) || e.Code != want {
			t.Errorf("%s: %v, want the code %d", given, err, want)
		}
	}
}
