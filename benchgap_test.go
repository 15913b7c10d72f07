package pando

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pandodb/pando/vfs/memfs"
)

// What is written with the Bench profile comes to no log. Who reads the changes of a database that was opened with it for a while is told
// that they are gone, and does not get what came afterwards in their place.
func TestChangesThatNoLogHas(t *testing.T) {
	fs := memfs.New()
	write := func(profile Profile, n int) (last uint64) {
		db := openMem(t, fs, Options{Profile: profile, KeepChanges: 1 << 20})
		for i := range n {
			must(t, db.Put(fmt.Appendf(nil, "%v %d", profile, i), nil))
		}
		last = db.LastSeq()
		must(t, db.Close())
		return last
	}
	before := write(Durable, 5)
	during := write(Bench, 20)
	write(Durable, 3)
	db := openMem(t, fs, Options{KeepChanges: 1 << 20})
	for from := before + 1; from <= during; from++ {
		err := errors.New("nothing came")
		for _, err = range db.Changes(context.Background(), ChangesOptions{From: from}) {
			break
		}
		wantErr(t, fmt.Sprint("changes from ", from), err, ErrChangesGone)
	}
	n := 0
	for c, err := range db.Changes(context.Background(), ChangesOptions{From: during + 1}) {
		must(t, err)
		if n++; c.Seq <= during {
			t.Errorf("change %d, from %d on", c.Seq, during+1)
		}
	}
	if n != 3 {
		t.Errorf("%d changes of 3", n)
	}
}
