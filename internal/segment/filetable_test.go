package segment

import "testing"

// Files are found by their numbers, also where several numbers have the same place, and none by another.
func TestFileTable(t *testing.T) {
	for _, ids := range [][]uint32{nil, {1}, {1, 2, 3}, {8, 16, 24, 32, 40}, {7, 15, 8, 1<<32 - 1}, {1, 9, 2, 10, 17}} {
		files := map[uint32]*file{}
		for _, id := range ids {
			files[id] = &file{id: id}
		}
		table := newFileTable(files)
		for id := range uint32(50) {
			if got := table.find(id); got != files[id] {
				t.Errorf("%v: %d is %v", ids, id, got)
			}
		}
		if got := table.find(1<<32 - 1); got != files[1<<32-1] {
			t.Errorf("%v: the last number is %v", ids, got)
		}
	}
}
