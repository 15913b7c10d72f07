package codec

import (
	"bufio"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"os"
	"testing"
)

func exportTo(t *testing.T, name string, docs []bsoncore.Document) {
	f, err := os.Create("/tmp/codecwork/" + name + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for _, d := range docs {
		b, _ := bson.MarshalExtJSON(bson.Raw(d), false, false)
		w.Write(b)
		w.WriteByte(10)
	}
	w.Flush()
	f.Close()
}
