package segment

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

func TestValuesInParts(t *testing.T) {
	s := emptyStore(t)
	for _, codec := range []Codec{None, S2, Zstd} {
		for _, n := range []int{0, 1, 100, 5000, gatherBytes, gatherBytes + 1, 200_000} {
			for _, whole := range [][]byte{text(1, n), noise(2, n)} {
				for _, parts := range [][][]byte{{whole}, {whole[:n/3], whole[n/3:]}, {nil, whole[:n/2], nil, whole[n/2:], nil}} {
					p, err := s.AppendValue(9, codec, parts...)
					must(t, err)
					if h := mustRead(t, s, p, whole); h.Kind != KindValue || h.Keyspace != 9 {
						t.Fatalf("header %+v", h)
					}
				}
			}
		}
		if p, err := s.AppendValue(9, codec); err != nil {
			t.Fatal(err)
		} else {
			mustRead(t, s, p, nil)
		}
	}
	if _, err := s.AppendValue(9, ZstdDictionary, nil); err == nil {
		t.Error("a value with a dictionary")
	}
	for _, i := range s.Segments() {
		if i.Live != 0 {
			t.Errorf("segment %d: %d bytes live, though no root refers to it", i.ID, i.Live)
		}
	}
}

// A plain value is read into the caller's memory by who knows its header; nothing else passes.
func TestReadPlain(t *testing.T) {
	s := emptyStore(t)
	raw := noise(1, 5000)
	p, err := s.AppendValue(9, None, raw)
	must(t, err)
	dst := make([]byte, 5000)
	must(t, s.ReadPlain(p, KindValue, 9, dst))
	if !bytes.Equal(dst, raw) {
		t.Error("other bytes than written")
	}
	wantCorrupt(t, s.ReadPlain(p, KindValueIndex, 9, dst))
	wantCorrupt(t, s.ReadPlain(p, KindValue, 8, dst))
	if err := s.ReadPlain(p, KindValue, 9, dst[1:]); err == nil || errors.Is(err, corrupt.Err) {
		t.Errorf("too little memory: %v", err)
	}
}

// Committers, readers, syncs, seals, accounting and removals meet.
func TestConcurrentUse(t *testing.T) {
	fsys := newFS(t)
	o := testOptions(fsys)
	o.SegmentBytes = 64 << 10
	s := open(t, o, nil, 1)
	const writers, rounds = 8, 60
	var wg sync.WaitGroup
	kept := make([][]Pointer, writers)
	for g := range writers {
		wg.Go(func() {
			var buf Buffer
			for i := range rounds {
				raw := text(uint64(g*1000+i), 100+i*40)
				codec := Codec(i % 3)
				p, err := s.AppendValue(uint32(g), codec, raw)
				if err != nil {
					t.Error(err)
					return
				}
				kept[g] = append(kept[g], p)
				got, _, err := s.Read(p, &buf)
				if err != nil || !bytes.Equal(got, raw) {
					t.Errorf("read back: %v", err)
				}
				switch i % 10 {
				case 3:
					if err := s.SyncValues(); err != nil {
						t.Error(err)
					}
				case 5:
					s.SealValues()
					s.SetLastSeq(p.Segment, uint64(i))
				case 7:
					w := s.NewWriter(Nodes, 0)
					q, err := w.Append(KindLeaf, 0, S2, 0, raw)
					if err != nil || w.Flush() != nil {
						t.Errorf("writer: %v", err)
					}
					if got, _, err := s.Read(q, &buf); err != nil || !bytes.Equal(got, raw) {
						t.Errorf("read a node back: %v", err)
					}
					if i%20 == 7 {
						w.Commit()
						err = s.Remove(q.Segment)
					} else {
						err = w.Abort()
					}
					if err != nil {
						t.Error(err)
					}
				case 9:
					s.Segments()
					s.OpenValueSegment()
				}
			}
		})
	}
	wg.Wait()
	for g, ps := range kept {
		for i, p := range ps {
			mustRead(t, s, p, text(uint64(g*1000+i), 100+i*40))
		}
	}
}

// Remove waits for the readers inside; those that come later find nothing. Close likewise.
func TestRemoveUnderReaders(t *testing.T) {
	for _, closing := range []bool{false, true} {
		s := emptyStore(t)
		w := s.NewWriter(Nodes, 0)
		p := mustAppend(t, w, KindLeaf, None, noise(1, 9000))
		must(t, w.Flush())
		w.Commit()
		var wg sync.WaitGroup
		started := make(chan struct{}, 4)
		for range 4 {
			wg.Go(func() {
				var buf Buffer
				for i := 0; ; i++ {
					_, _, err := s.Read(p, &buf)
					if i == 0 {
						started <- struct{}{}
					}
					if err == nil {
						continue
					}
					if closing && !errors.Is(err, ErrClosed) || !closing && !errors.Is(err, corrupt.Err) {
						t.Errorf("read: %v", err)
					}
					return
				}
			})
		}
		for range 4 {
			<-started
		}
		if closing {
			must(t, s.Close())
		} else {
			must(t, s.Remove(p.Segment))
		}
		wg.Wait()
	}
}

// What SyncValues covered survives every power cut; what AppendValue returned survives a kill, and a power cut after the next
// run has synced.
func TestValuesSurviveCrashes(t *testing.T) {
	fsys := newFS(t)
	s := open(t, testOptions(fsys), nil, 1)
	var table []Info
	next := uint32(1)
	var synced, written []Pointer
	raw := func(i int) []byte { return text(uint64(i), 3000+i) }
	check := func(image vfs.FS, ps []Pointer) *Store {
		t.Helper()
		again, err := Open(testOptions(image), table, next)
		must(t, err)
		for i, p := range ps {
			mustRead(t, again, p, raw(i))
		}
		return again
	}
	for i := range 40 {
		p, err := s.AppendValue(1, Codec(i%3), raw(i))
		must(t, err)
		written = append(written, p)
		switch i % 8 {
		case 1:
			s.SealValues()
		case 3:
			must(t, s.SyncValues())
			synced = append(synced, written[len(synced):]...)
		case 6:
			table, next = s.Segments(), s.NextID()
		}
		for seed := range uint64(3) {
			for _, policy := range []memfs.Policy{
				{Unsynced: memfs.None}, {Unsynced: memfs.All},
				{Unsynced: memfs.Random, Seed: seed, Reordered: true, Torn: 512, Stale: true},
			} {
				must(t, check(fsys.CrashImage(policy), synced).Close())
			}
		}
		killed := fsys.KillImage()
		second := check(killed, written)
		for _, p := range written {
			second.SetLastSeq(p.Segment, 1<<40) // as the replay of a log does that refers to them
		}
		must(t, second.SyncValues())
		must(t, check(killed.CrashImage(memfs.Policy{Unsynced: memfs.None}), written).Close())
		must(t, second.Close())
	}
}

// Without a sync in between, what was synced once is not synced again.
func TestSyncValuesSyncsOnlyWhatIsUnsynced(t *testing.T) {
	fsys := faultfs.New(newFS(t))
	s := open(t, testOptions(fsys), nil, 1)
	for range 3 {
		_, err := s.AppendValue(1, None, []byte("x"))
		must(t, err)
		s.SealValues()
	}
	must(t, s.SyncValues())
	if got := fsys.Count(faultfs.OpSync); got != 3 {
		t.Errorf("%d syncs for 3 segments", got)
	}
	must(t, s.SyncValues())
	_, err := s.AppendValue(1, None, []byte("x"))
	must(t, err)
	must(t, s.SyncValues())
	must(t, s.SyncValues())
	if got := fsys.Count(faultfs.OpSync); got != 4 {
		t.Errorf("%d syncs after one value more", got)
	}
}

func TestFailedSyncPoisons(t *testing.T) {
	for _, fault := range []faultfs.Fault{faultfs.Fail, faultfs.DropSync, faultfs.DropSyncOnce} {
		for _, ofWriter := range []bool{false, true} {
			fsys := faultfs.New(newFS(t))
			s := open(t, testOptions(fsys), nil, 1)
			p, err := s.AppendValue(1, None, []byte("value"))
			must(t, err)
			w := s.NewWriter(Nodes, 0)
			mustAppend(t, w, KindLeaf, None, []byte("node"))
			fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync), Fault: fault})
			sync := s.SyncValues
			if ofWriter {
				sync = w.Sync
			}
			if err := sync(); !errors.Is(err, faultfs.ErrInjected) {
				t.Fatalf("sync: %v", err)
			}
			for range 2 {
				if _, err := s.AppendValue(1, None, []byte("value")); !errors.Is(err, ErrFailed) || !errors.Is(err, faultfs.ErrInjected) {
					t.Errorf("append: %v", err)
				}
				if err := s.SyncValues(); !errors.Is(err, ErrFailed) {
					t.Errorf("sync of values: %v", err)
				}
				if err := w.Sync(); err == nil {
					t.Error("sync of the writer succeeded")
				}
				if _, err := s.NewWriter(Nodes, 0).Append(KindLeaf, 0, None, 0, nil); !errors.Is(err, ErrFailed) {
					t.Errorf("new writer: %v", err)
				}
			}
			mustRead(t, s, p, []byte("value"))
		}
	}
}

// Every call of a small life fails once, in several ways; nothing is reported that is not so, nothing leaks, and when there is
// space again writing goes on.
func TestEveryCallFails(t *testing.T) {
	var nodes [][]byte
	for i := range 4 {
		nodes = append(nodes, noise(uint64(i), 400_000))
	}
	life := func(fsys vfs.FS, expect map[Pointer][]byte) (err error) {
		s, err := Open(testOptions(fsys), nil, 1)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		for i := range 3 {
			raw := text(uint64(i), 2000)
			p, err := s.AppendValue(1, S2, raw)
			if err != nil {
				return err
			}
			expect[p] = raw
		}
		if err := s.SyncValues(); err != nil {
			return err
		}
		w := s.NewWriter(Nodes, 0)
		for _, raw := range nodes {
			p, err := w.Append(KindLeaf, 1, None, 0, raw)
			if err != nil {
				return errors.Join(err, w.Abort())
			}
			expect[p] = raw
		}
		if err := w.Sync(); err != nil {
			return errors.Join(err, w.Abort())
		}
		w.Commit()
		return readBack(t, s, expect)
	}
	cases := 0
	for _, rule := range []faultfs.Rule{
		{Ops: faultfs.All, Err: vfs.ErrNoSpace},
		{Fault: faultfs.ShortWrite, Err: vfs.ErrNoSpace},
		{Fault: faultfs.ShortRead, Err: faultfs.ErrInjected},
		{Fault: faultfs.FlipBit, Bit: 777},
		{Fault: faultfs.LostWrite},
		{Fault: faultfs.MisdirectedWrite, Shift: 512},
	} {
		for k := 0; ; k++ {
			base := newFS(t)
			fsys := faultfs.New(base)
			rule.Skip = k
			fsys.Set(rule)
			err := life(fsys, map[Pointer][]byte{})
			if fsys.Triggered() == 0 {
				must(t, err)
				break
			}
			cases++
			if err != nil && !errors.Is(err, vfs.ErrNoSpace) && !errors.Is(err, faultfs.ErrInjected) && !errors.Is(err, corrupt.Err) {
				t.Fatalf("fault %d at call %d: unnamed error %v", rule.Fault, k, err)
			}
			if leaks := fsys.Leaks(); len(leaks) > 0 {
				t.Fatalf("fault %d at call %d: leaks %v", rule.Fault, k, leaks)
			}
			fsys.Set()
			if err := life(fsys, map[Pointer][]byte{}); err != nil {
				t.Fatalf("after fault %d at call %d: %v", rule.Fault, k, err)
			}
		}
	}
	if cases < 60 {
		t.Errorf("only %d cases", cases)
	}
}

// readBack reads blobs. An error is returned; other bytes than those written end the test.
func readBack(t *testing.T, s *Store, expect map[Pointer][]byte) error {
	t.Helper()
	var buf Buffer
	for p, want := range expect {
		raw, _, err := s.Read(p, &buf)
		if err != nil {
			return err
		}
		if !bytes.Equal(raw, want) {
			t.Fatalf("read %+v: other bytes than written", p)
		}
	}
	return nil
}

// A full disk fails what is written, and nothing else; when there is space, writing goes on in the same store.
func TestFullDisk(t *testing.T) {
	fsys := newFS(t)
	s := open(t, testOptions(fsys), nil, 1)
	first, err := s.AppendValue(1, None, noise(1, 10_000))
	must(t, err)
	fsys.SetCapacity(200 << 10)
	w := s.NewWriter(Nodes, 0)
	if _, err = w.Append(KindLeaf, 0, None, 0, noise(2, 700_000)); err == nil {
		err = w.Sync()
	}
	if !errors.Is(err, vfs.ErrNoSpace) {
		t.Fatalf("writer: %v", err)
	}
	must(t, w.Abort())
	if _, err := s.AppendValue(1, None, noise(2, 700_000)); !errors.Is(err, vfs.ErrNoSpace) {
		t.Fatalf("value: %v", err)
	}
	mustRead(t, s, first, noise(1, 10_000))
	fsys.SetCapacity(0)
	second, err := s.AppendValue(1, None, noise(3, 10_000))
	must(t, err)
	must(t, s.SyncValues())
	mustRead(t, s, second, noise(3, 10_000))
	var live int64
	for _, i := range s.Segments() {
		live += i.Live
	}
	if live != 0 {
		t.Errorf("%d bytes live, though no root refers to anything", live)
	}
	mustRead(t, s, first, noise(1, 10_000))
}

func ExampleStore_AppendValue() {
	fsys := memfs.New()
	s, err := Open(Options{FS: fsys, Dir: "."}, nil, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	p, err := s.AppendValue(1, None, []byte("many "), []byte("trunks"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var buf Buffer
	raw, _, err := s.Read(p, &buf)
	fmt.Println(string(raw), err)
	// Output: many trunks <nil>
}
