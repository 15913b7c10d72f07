package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/server/wire"
)

// FuzzCommand: whatever bytes come as the body of a message, they are answered or the connection ends, and others can still work.
func FuzzCommand(f *testing.F) {
	for _, d := range []bson.D{
		{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}},
		{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.D{{Key: "a", Value: bson.D{{Key: "$gt", Value: 1}}}}}, {Key: "$db", Value: "d"}},
		{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: 1}}}}, {Key: "$db", Value: "d"}},
	} {
		body, err := bson.Marshal(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s := newServer(t, nil)
		c := dial(t, s)
		if _, err := c.conn.Write(wire.AppendMsg(nil, 1, 0, 0, bsoncore.Document(body))); err == nil {
			if m, err := c.r.Read(); err != nil {
				t.Logf("the connection ended: %v, %v", m, err)
			}
		}
		dial(t, s).must("admin", bson.D{{Key: "ping", Value: 1}})
	})
}
