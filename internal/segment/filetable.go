package segment

// fileTable is the files of a store by their numbers. Every read of a blob asks it, so the files stand in an array too, which takes a
// fraction of the time of a map: numbers are given one after the other, so that nearly every file stands at the place of its number.
type fileTable struct {
	all    map[uint32]*file
	places []*file // a power of two of them, at least twice as many as files; where the place is taken a file stands behind it
}

// newFileTable returns the table of files, which belong to it from then on. They may be nil.
func newFileTable(files map[uint32]*file) *fileTable {
	n := 1
	for n < 2*len(files) {
		n *= 2
	}
	t := &fileTable{all: files, places: make([]*file, n)}
	for id, f := range files {
		at := int(id) & (n - 1)
		for t.places[at] != nil {
			at = (at + 1) & (n - 1)
		}
		t.places[at] = f
	}
	return t
}

// find returns the file with this number, nil if there is none.
func (t *fileTable) find(id uint32) *file {
	last := uint32(len(t.places) - 1)
	for at := id & last; ; at = (at + 1) & last {
		if f := t.places[at]; f == nil || f.id == id {
			return f
		}
	}
}
