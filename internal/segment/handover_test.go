package segment

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pandodb/pando/vfs/faultfs"
)

// A store that has handed its directory over can be read, and changes nothing there: what was to go stays for the next one to remove.
func TestDirectoryThatWasHandedOverIsOnlyRead(t *testing.T) {
	fsys := faultfs.New(newFS(t))
	s := sparingStore(t, fsys, 1)
	dead, _ := fillSegment(t, s, 1)
	values, contents := fillSegment(t, s, 1000)
	must(t, s.Remove(dead[0].Segment)) // it is kept to be used again
	kept, unfinished := s.NewWriter(Nodes, 0), s.NewWriter(Nodes, 0)
	node := mustAppend(t, kept, KindLeaf, Zstd, text(1, 5000))
	mustAppend(t, unfinished, KindLeaf, Zstd, text(2, 5000))
	must(t, kept.Flush())
	kept.Commit()
	must(t, unfinished.Flush())
	mustAppend(t, unfinished, KindLeaf, Zstd, text(3, 5000)) // waits in the buffer

	s.HandOver()
	before, names := fsys.Mutations(), segmentFiles(t, s)
	if slices.Contains(names, FileName(dead[0].Segment)) {
		t.Error("a file that was kept to be used again stays")
	}
	for what, err := range map[string]error{
		"a value":           errorOf(s.AppendValue(1, None, []byte("too late"))),
		"a renewed value":   s.Renew(values[0]),
		"an open writer":    unfinished.Flush(),
		"a new writer":      errorOf(s.NewWriter(Nodes, 0).Append(KindLeaf, 7, None, 0, text(1, 5000))),
		"a sync of a value": s.syncFile(s.files.Load().find(values[0].Segment)),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i, p := range values {
		mustRead(t, s, p, contents[i])
	}
	mustRead(t, s, node, text(1, 5000))
	must(t, s.Remove(values[0].Segment))
	must(t, unfinished.Abort())
	s.SealValues()
	s.GiveBack()
	must(t, s.Close())
	if n := fsys.Mutations() - before; n > 0 || !slices.Equal(segmentFiles(t, s), names) {
		t.Errorf("%d calls changed what is stored", n)
	}
	if leaks := fsys.Leaks(); len(leaks) > 0 {
		t.Errorf("open still: %q", leaks)
	}
}

func errorOf[T any](_ T, err error) error { return err }

// Whoever writes while the directory is handed over has written before, or is refused.
func TestHandOverWaitsForWhatIsBeingWritten(t *testing.T) {
	fsys := faultfs.New(newFS(t))
	s := sparingStore(t, fsys, 2)
	var writing sync.WaitGroup
	begun := make(chan struct{})
	var handedOver atomic.Bool
	for n := range uint64(4) {
		writing.Go(func() {
			for i, late := uint64(0), 0; late < 100; i++ {
				if handedOver.Load() {
					late++
				}
				p, err := s.AppendValue(1, None, noise(10*n+i%10, 100_000))
				if err == nil && i%10 == 9 {
					err = s.Remove(p.Segment)
				}
				if errors.Is(err, ErrClosed) {
					return
				}
				if err != nil && !errors.Is(err, ErrUnknownSegment) { // somebody else has removed it
					t.Error(err)
				}
				if i == 20 {
					begun <- struct{}{}
				}
			}
			t.Error("nobody refused to write")
		})
	}
	for range 4 {
		<-begun
	}
	s.HandOver()
	before := fsys.Mutations()
	handedOver.Store(true)
	writing.Wait()
	if n := fsys.Mutations() - before; n > 0 {
		t.Errorf("%d calls changed what is stored behind it", n)
	}
}
