package segment

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/pandodb/pando/internal/corrupt"
)

// requests asks for all of the given blobs.
func requests(pointers []Pointer) []Request {
	list := make([]Request, len(pointers))
	for i, p := range pointers {
		list[i].P = p
	}
	return list
}

func TestReadTogether(t *testing.T) {
	s, pointers, contents := mappedStore(t)
	list := requests(pointers)
	for round := range 3 {
		if m := mappingAt(t, s, pointers[0]); round == 1 {
			m.warm[0].Store(0b101) // some pages have to be read with a call
		}
		list[4].P.Sum++ // damaged
		list[5].P.Segment = 999
		s.ReadTogether(list)
		list[4].P.Sum--
		for i := range list {
			if i == 4 || i == 5 {
				if !errors.Is(list[i].Err, corrupt.Err) {
					t.Errorf("blob %d: %v", i, list[i].Err)
				}
				continue
			}
			if r := &list[i]; r.Err != nil || !bytes.Equal(r.Raw, contents[i]) || r.Header.Kind != KindLeaf {
				t.Errorf("round %d, blob %d: %d bytes, %+v, %v", round, i, len(r.Raw), r.Header, r.Err)
			}
		}
	}
	s.ReadTogether(nil)
}

// A file that was cut from outside is an error for the blobs that are gone, and none for the others.
func TestReadTogetherFault(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("cutting a mapped file is not possible everywhere")
	}
	s, pointers, contents := mappedStore(t)
	mappingAt(t, s, pointers[0])
	const left = 5
	size := int64(pointers[left].Offset)
	if err := os.Truncate(s.files.Load().find(pointers[0].Segment).path, size); err != nil {
		t.Fatal(err)
	}
	list := requests(pointers)
	s.ReadTogether(list)
	for i := range list {
		if i < left && !bytes.Equal(list[i].Raw, contents[i]) {
			t.Errorf("blob %d: %v", i, list[i].Err)
		}
		if i >= left && !errors.Is(list[i].Err, corrupt.Err) {
			t.Errorf("blob %d, which is gone: %v", i, list[i].Err)
		}
	}
}
