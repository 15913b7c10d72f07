package mongo

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// garbage is a value of each type, with the extremes of those that have some.
func garbage() []any {
	return []any{
		nil, true, int32(-1), int64(math.MinInt64), int64(math.MaxInt64), math.NaN(), math.Inf(1), "", "$x", "a\x00b", bson.D{},
		bson.D{{Key: "$x", Value: 1}}, bson.A{}, bson.A{nil, "x", bson.D{}}, bson.Binary{Subtype: 4, Data: []byte{1}}, bson.NewObjectID(),
		bson.DateTime(math.MinInt64), bson.Regex{Pattern: "("}, bson.JavaScript("x"), bson.Timestamp{T: 1}, bson.NewDecimal128(1<<62, 1),
		bson.MinKey{}, bson.MaxKey{}, bson.Undefined{}, bson.Symbol("x"),
	}
}

// TestGarbage: every command takes values of every type in every place: it answers with ok or a code, and the connection lives on.
func TestGarbage(t *testing.T) {
	s := newServer(t, nil)
	for _, name := range slices.Sorted(maps.Keys(s.commands)) {
		command := s.commands[name]
		t.Run(name, func(t *testing.T) {
			c := dial(t, s)
			if err := c.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			try := func(d bson.D) {
				t.Helper()
				if reply := c.run("admin", d); okOf(reply) != 1 && codeIn(reply) == 0 {
					t.Errorf("%v: an error without a code: %s", d, reply)
				}
			}
			for _, v := range garbage() {
				try(bson.D{{Key: name, Value: v}})
				for _, field := range command.fields {
					try(bson.D{{Key: name, Value: "c"}, {Key: field, Value: v}})
				}
			}
			c.must("admin", bson.D{{Key: "ping", Value: 1}})
		})
	}
}
