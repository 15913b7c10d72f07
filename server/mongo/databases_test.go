package mongo

import (
	"fmt"
	"runtime"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Each collection is counted once for a list of all databases, and not once for each of them; for a list of names none is.
func TestListingDatabasesTakesAsLongAsThereAre(t *testing.T) {
	c := dial(t, newServer(t, nil))
	made := 0
	more := func(n int) {
		for ; made < n; made++ {
			c.must(fmt.Sprint("d", made), cmd("insert", "c", "documents", bson.A{bson.D{{Key: "x", Value: 1}}}))
		}
	}
	allocated := func(command bson.D) int64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c.must("admin", command)
		runtime.ReadMemStats(&after)
		return int64(after.Mallocs - before.Mallocs)
	}
	all, names := cmd("listDatabases", 1), cmd("listDatabases", 1, "nameOnly", true)
	more(20)
	c.must("admin", all)
	few := allocated(all)
	more(160)
	c.must("admin", all)
	if many := allocated(all); many > 3*8*few {
		t.Errorf("eight times as many databases take %d allocations instead of %d", many, few)
	}
	if n := allocated(names); n > allocated(all) {
		t.Errorf("their names take %d allocations", n)
	}
	reply := c.must("admin", all)
	values, err := reply.Lookup("databases").Array().Values()
	if err != nil || len(values) != 162 { // with admin and local
		t.Fatalf("%d databases, %v", len(values), err)
	}
	total := int64(0)
	for _, v := range values {
		total += v.Document().Lookup("sizeOnDisk").AsInt64()
	}
	if total == 0 || total != reply.Lookup("totalSize").AsInt64() {
		t.Errorf("their sizes are %d together, and %s is said", total, reply.Lookup("totalSize"))
	}
}
