package layout

// SliceChanges gives a slice of changes out one by one. The zero value, and nil changes, are an empty run.
type SliceChanges struct {
	Changes []Change
	next    int
}

// Next implements Changes.
func (s *SliceChanges) Next() bool {
	s.next++
	return s.next <= len(s.Changes)
}

// Change implements Changes.
func (s *SliceChanges) Change() *Change { return &s.Changes[s.next-1] }

var _ Changes = (*SliceChanges)(nil)
