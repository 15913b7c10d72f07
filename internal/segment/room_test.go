package segment

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// fillingStore is one that lays zeros ahead of values.
func fillingStore(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	o := testOptions(fs)
	o.Ahead, o.SegmentBytes = true, 4<<20
	return open(t, o, nil, 1)
}

// Values are followed by zeros up to the end of a stretch, of which nothing stays when their segment is left.
func TestZerosAheadOfValues(t *testing.T) {
	fs := newFS(t)
	s := fillingStore(t, fs)
	var pointers []Pointer
	ahead := 0
	for i := range 100 {
		p, err := s.AppendValue(1, None, noise(uint64(i), i*1000))
		must(t, err)
		pointers = append(pointers, p)
		content, err := vfs.ReadFile(fs, s.path(FileName(p.Segment)), 8<<20)
		must(t, err)
		end := int(p.Offset + p.Length)
		behind := content[end:]
		if len(behind) >= stretchBytes || len(bytes.Trim(behind, "\x00")) > 0 {
			t.Fatalf("value %d ends at %d in a file of %d bytes, and what lies behind is not all zero", i, end, len(content))
		}
		if len(behind) > 0 {
			if len(content)%stretchBytes != 0 {
				t.Errorf("value %d ends at %d in a file of %d bytes", i, end, len(content))
			}
			ahead++
		}
	}
	if ahead < len(pointers)*3/4 {
		t.Errorf("zeros followed only %d of %d values", ahead, len(pointers))
	}
	s.SealValues()
	found := 0
	for id := pointers[0].Segment; id <= pointers[len(pointers)-1].Segment; id++ {
		in := scan(t, s, id)
		if found += len(in.blobs); len(in.gaps) > 0 {
			t.Errorf("segment %d has gaps: %v", id, in.gaps)
		}
		last := in.blobs[len(in.blobs)-1]
		if info, err := fs.Stat(s.path(FileName(id))); err != nil || info.Size != int64(last.Offset)+int64(last.Length) {
			t.Errorf("segment %d was left with %d bytes, the last value being %+v: %v", id, info.Size, last, err)
		}
	}
	if found != len(pointers) {
		t.Errorf("%d values found of %d", found, len(pointers))
	}
	for i, p := range pointers {
		mustRead(t, s, p, noise(uint64(i), i*1000))
	}
}

// Zeros never come after the value that has its place among them, whoever writes first.
func TestZerosAheadOfManyWriters(t *testing.T) {
	s := fillingStore(t, newFS(t))
	var wg sync.WaitGroup
	for g := range uint64(8) {
		wg.Go(func() {
			for i := range uint64(60) {
				content := noise(g<<32|i, int(i%7)*9000+10)
				p, err := s.AppendValue(1, None, content)
				if err != nil {
					t.Error(err)
					return
				}
				var buf Buffer
				if raw, _, err := s.Read(p, &buf); err != nil || !bytes.Equal(raw, content) {
					t.Errorf("value %d of writer %d: %d bytes, %v", i, g, len(raw), err)
					return
				}
				if i%20 == 19 {
					s.SealValues()
				}
			}
		})
	}
	wg.Wait()
}

// Who gets a place among zeros that are still to be written waits for them.
func TestValuesWaitForTheZerosInTheirPlace(t *testing.T) {
	faults := faultfs.New(newFS(t))
	s := fillingStore(t, faults)
	_, err := s.AppendValue(1, None, noise(1, 1000))
	must(t, err)
	second := noise(2, 1000)
	place := make(chan Pointer, 1)
	writes := 0
	faults.OnCall(func(op faultfs.Op, _ string) error {
		if op != faultfs.OpWriteAt {
			return nil
		}
		if writes++; writes > 1 {
			return nil
		}
		go func() {
			p, err := s.AppendValue(1, None, second)
			if err != nil {
				t.Error(err)
			}
			place <- p
		}()
		select { // when it does not wait, its value comes first
		case p := <-place:
			place <- p
		case <-time.After(20 * time.Millisecond):
		}
		return nil
	})
	first := noise(3, 2*stretchBytes)
	p, err := s.AppendValue(1, None, first)
	must(t, err)
	mustRead(t, s, p, first)
	mustRead(t, s, <-place, second)
}

// What was synced survives a power cut, whatever becomes of the zeros, and is found behind and before them.
func TestZerosAheadAndCrash(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			fs := newFS(t)
			s := fillingStore(t, fs)
			var pointers []Pointer
			synced := 0
			for i := range 24 {
				p, err := s.AppendValue(1, None, noise(uint64(i), 40_000))
				must(t, err)
				pointers = append(pointers, p)
				if i == int(seed)%24 {
					must(t, s.SyncValues())
					synced = i + 1
				}
			}
			o := testOptions(fs.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: seed, Reordered: seed%2 == 0, Stale: seed%3 == 0}))
			o.Ahead = true
			after := open(t, o, nil, 1)
			blobs := scan(t, after, pointers[0].Segment).blobs
			if len(blobs) < synced {
				t.Fatalf("%d values found, of %d that were synced", len(blobs), synced)
			}
			for i, p := range pointers[:synced] {
				mustRead(t, after, p, noise(uint64(i), 40_000))
			}
		})
	}
}

// A value for which there is space is stored, even where there is none for zeros.
func TestNoSpaceForZeros(t *testing.T) {
	fs := newFS(t)
	s := fillingStore(t, fs)
	for i := range uint64(4) {
		_, err := s.AppendValue(1, None, noise(i, 50_000))
		must(t, err)
	}
	fs.SetCapacity(8 * stretchBytes / 4)
	var pointers []Pointer
	for i := range uint64(20) {
		p, err := s.AppendValue(1, None, noise(i, 20_000))
		if err != nil {
			break
		}
		pointers = append(pointers, p)
	}
	if len(pointers) == 0 || len(pointers) == 20 {
		t.Fatalf("%d values were stored", len(pointers))
	}
	for i, p := range pointers {
		mustRead(t, s, p, noise(uint64(i), 20_000))
	}
	fs.SetCapacity(0)
	content := noise(100, 20_000)
	p, err := s.AppendValue(1, None, content)
	must(t, err)
	mustRead(t, s, p, content)
}
