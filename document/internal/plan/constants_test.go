package plan

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// TestConditionsOfManyConstants: an index follows a comparison with a constant that has to be computed, but not with thousands that take long:
// while a plan is made nobody looks whether anybody waits for it.
func TestConditionsOfManyConstants(t *testing.T) {
	for n, want := range map[int]int{3: 1, 3000: 0} {
		list := bson.A{}
		for range n {
			list = append(list, bson.D{{Key: "$sqrt", Value: bson.NewDecimal128(0x3040000000000000, 2)}})
		}
		spec, err := bson.Marshal(bson.D{{Key: "$eq", Value: bson.A{"$a", list}}})
		if err != nil {
			t.Fatal(err)
		}
		p := &planner{q: &Query{}}
		found := p.expressions(nil, bsoncore.Value{Type: bsoncore.TypeEmbeddedDocument, Data: spec}, 0, true)
		if len(found) != want {
			t.Errorf("of %d constants: %d conditions, want %d", n, len(found), want)
		}
	}
}
