package offheap

import (
	"bytes"
	"os"
	"testing"
	"unsafe"
)

func TestAllocIsZeroedAlignedAndWritable(t *testing.T) {
	page := os.Getpagesize()
	for _, n := range []int{1, page - 1, page, page + 1, HugePage - 1, HugePage, 3*HugePage + 5} {
		b, err := Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) != n || cap(b) != n {
			t.Fatalf("Alloc(%d): length %d, capacity %d", n, len(b), cap(b))
		}
		if uintptr(unsafe.Pointer(&b[0]))%uintptr(page) != 0 {
			t.Fatalf("Alloc(%d): not aligned to a page", n)
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("Alloc(%d): byte %d is %#x", n, i, b[i])
			}
			b[i] = byte(i)
		}
		if err := Free(b); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAllocOfImpossibleSizes(t *testing.T) {
	if b, err := Alloc(0); b != nil || err != nil {
		t.Fatalf("Alloc(0) = %v, %v", b, err)
	}
	if err := Free(nil); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{-1, int(^uint(0) >> 1)} {
		if _, err := Alloc(n); err == nil {
			t.Fatalf("Alloc(%d) succeeded", n)
		}
	}
}

// A released byte reads as it was or as zero, bytes of shared pages keep their value, and all can be written again.
func TestRelease(t *testing.T) {
	page := os.Getpagesize()
	b, err := Alloc(8 * page)
	if err != nil {
		t.Fatal(err)
	}
	defer Free(b)
	for _, cut := range [][2]int{{0, 8 * page}, {1, 8*page - 1}, {page, 2 * page}, {5, 9}, {page - 1, page + 1}, {3, 3}, {page + 1, 2*page + 1}} {
		for i := range b {
			b[i] = 0x5A
		}
		Release(b[cut[0]:cut[1]])
		for i := range b {
			wholly := i/page*page >= cut[0] && (i/page+1)*page <= cut[1]
			if b[i] != 0x5A && (b[i] != 0 || !wholly) {
				t.Fatalf("after Release [%d:%d]: byte %d is %#x", cut[0], cut[1], i, b[i])
			}
		}
	}
}

func TestPopulateAndSplitChangeNothing(t *testing.T) {
	b, err := Alloc(3 * HugePage)
	if err != nil {
		t.Fatal(err)
	}
	b[HugePage+1] = 7
	Split(b[100:]) // which begins at the second huge page
	Populate(b[100 : 2*HugePage])
	for _, part := range [][]byte{nil, b[len(b)-1:], b[HugePage : HugePage+1]} {
		Split(part)
		Populate(part)
	}
	for i, x := range b {
		if want := i == HugePage+1; want != (x == 7) || !want && x != 0 {
			t.Fatalf("byte %d is %d", i, x)
		}
	}
	if err := Free(b); err != nil {
		t.Error(err)
	}
}

// Where memory can be moved it arrives with what is in it, and the place that it came from can be written to again. Else nothing happens.
func TestMove(t *testing.T) {
	alloc := func() []byte {
		b, err := Alloc(4 * HugePage)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	from, to := alloc(), alloc()
	fill := func(b []byte, x byte) {
		for i := range b {
			b[i] = x
		}
	}
	fill(from, 1)
	fill(to, 2)
	all := func(b []byte, x byte) bool { return bytes.Count(b, []byte{x}) == len(b) }
	for _, odd := range [][2][]byte{{nil, nil}, {to[:HugePage], from[:2*HugePage]}, {to[1:HugePage], from[1:HugePage]}, {to[4096:][:HugePage], from[:HugePage]}} {
		if Move(odd[0], odd[1]) {
			t.Fatalf("%d bytes moved to %d", len(odd[1]), len(odd[0]))
		}
	}
	moved := Move(to[HugePage:2*HugePage], from[2*HugePage:3*HugePage])
	want := byte(2)
	if moved {
		want = 1
		if !all(from[2*HugePage:3*HugePage], 0) {
			t.Error("what was moved is still there")
		}
		fill(from[2*HugePage:3*HugePage], 1)
	}
	if !all(to[HugePage:2*HugePage], want) || !all(from, 1) {
		t.Errorf("moved %v: other bytes than wanted", moved)
	}
	if !all(to[:HugePage], 2) || !all(to[2*HugePage:], 2) {
		t.Error("what lies beside has changed")
	}
	fill(to, 3)
	if !all(to, 3) || !all(from, 1) {
		t.Error("the pieces are not apart")
	}
	for _, b := range [][]byte{from, to} {
		if err := Free(b); err != nil {
			t.Error(err)
		}
	}
}
