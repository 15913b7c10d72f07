package corrupt

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando"
)

// Values whose records lay in a damaged leaf once took their room for ever, though nobody could find them any more.
func TestRoomOfLostValuesComesBack(t *testing.T) {
	for _, length := range []int{2_000, 300_000} {
		t.Run(fmt.Sprintf("values of %d bytes", length), func(t *testing.T) { roomComesBack(t, length) })
	}
}

func roomComesBack(t *testing.T, length int) {
	fsys, o, db := uncompressed(t)
	rng := rand.New(rand.NewPCG(uint64(length), 1))
	value := make([]byte, length)
	name := func(i int) []byte { return fmt.Appendf(nil, "the key %05d", i) }
	for i := range 60 {
		for at := range value {
			value[at] = byte(rng.Uint32())
		}
		must(t, db.Put(name(i), value))
	}
	marker := []byte("what lies in the leaf itself")
	must(t, db.Put([]byte("the key"), marker))
	must(t, db.Compact(context.Background(), pando.CompactOptions{})) // all in one leaf
	must(t, db.Close())
	if damageValues(t, fsys, marker) == 0 {
		t.Fatal("no leaf was found")
	}
	db, err := pando.Open(dir, o)
	must(t, err)
	if _, err := db.Get(name(3)); err == nil {
		t.Fatal("nothing is damaged")
	}
	must(t, db.DeleteRange(nil, nil))
	must(t, db.Put([]byte("kept"), value))
	must(t, db.Checkpoint(context.Background()))
	must(t, db.Compact(context.Background(), pando.CompactOptions{}))
	must(t, db.Checkpoint(context.Background()))
	if n := db.Metrics().SegmentBytes; n > int64(3*length+100_000) {
		t.Errorf("%d bytes are left of %d values of %d bytes", n, 60, length)
	}
	if got, err := db.Get([]byte("kept")); err != nil || !bytes.Equal(got, value) {
		t.Errorf("the value that is there has %d bytes, %v", len(got), err)
	}
	report, err := db.Check(context.Background())
	must(t, err)
	must(t, report.Err())
	must(t, db.Close())
}
