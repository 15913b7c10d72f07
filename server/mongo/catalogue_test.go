package mongo

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestAnswersOfTheCatalogue: the answers are those of a mongod 6.0.5.
func TestAnswersOfTheCatalogue(t *testing.T) {
	c := dial(t, newServer(t, nil))
	c.must("d", cmd("create", "c"))
	c.must("d", cmd("create", "v", "viewOn", "c", "pipeline", bson.A{}))
	c.refused("d", cmd("listIndexes", "v"), 166)
	c.refused("d", cmd("listIndexes", "none"), 26)
	c.refused("admin", cmd("renameCollection", "d.c", "to", "d.c"), 20)
	c.refused("admin", cmd("renameCollection", "d.c"), 40414)
	c.refused("admin", cmd("dropDatabase", 1), 20)
	c.must("d", cmd("createIndexes", "c", "indexes", bson.A{cmd("key", cmd("a", 1), "name", "a")}))
	if got := c.must("d", cmd("dropIndexes", "c", "index", "*")).Lookup("msg"); got.StringValue() != "non-_id indexes dropped for collection" {
		t.Errorf("all indexes were dropped: %s", got)
	}
}
