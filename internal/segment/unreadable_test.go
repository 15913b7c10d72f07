package segment

import (
	"errors"
	"testing"
	"time"

	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestUnreadablePlaceIsDamageAfterAWhile: what cannot be read at first may be readable a moment later, what cannot be for half a minute is
// lost, and neither a long pause between two failures nor one success counts towards that.
func TestUnreadablePlaceIsDamageAfterAWhile(t *testing.T) {
	ffs, hand := faultfs.New(memfs.New()), clock.NewManual(time.Unix(0, 0))
	s, err := Open(Options{FS: ffs, Dir: "db", Clock: hand}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w := s.NewWriter(Nodes, 0)
	p, err := w.Append(KindLeaf, 1, None, 0, []byte("a page"))
	if err := errors.Join(err, w.Sync()); err != nil {
		t.Fatal(err)
	}
	w.Commit()
	read := func() error {
		_, _, err := s.Read(p, new(Buffer))
		return err
	}
	device := func(fails bool) {
		ffs.Set()
		if fails {
			ffs.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpReadAt), Times: -1})
		}
	}
	fail := func(times int, pause time.Duration) (damage bool) {
		t.Helper()
		for range times {
			err = read()
			if !errors.Is(err, ErrUnreadable) || !errors.Is(err, faultfs.ErrInjected) {
				t.Fatalf("an unreadable place: %v", err)
			}
			hand.Advance(pause)
		}
		return errors.Is(err, corrupt.Err)
	}
	device(true)
	if fail(1000, 0) {
		t.Error("damage at once")
	}
	device(false)
	if err := read(); err != nil {
		t.Fatal(err)
	}
	device(true)
	if fail(9, time.Minute) {
		t.Error("damage after nine failures")
	}
	hand.Advance(failurePause)
	if fail(1, 0) {
		t.Error("damage though nobody has tried for a long time")
	}
	if fail(9, time.Second) {
		t.Error("damage after a few seconds")
	}
	if hand.Advance(lostAfter); !fail(1, 0) {
		t.Error("no damage after half a minute")
	}
	device(false)
	if err := read(); err != nil {
		t.Errorf("the device works again: %v", err)
	}
	device(true)
	if fail(1, 0) {
		t.Error("damage at once after a success")
	}
}
