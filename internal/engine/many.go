package engine

import (
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/view"
)

// GetGroup appends the values of up to view.Group keys to dst, and notes in ends where each of them ends. It stops at the first key
// that is not there or cannot be read, with that error; n is how many values there are. It allocates nothing when dst is large
// enough and the records are in memory.
func (s Snapshot) GetGroup(dst []byte, ends *[view.Group]int, ks *Keyspace, keys [][]byte) (out []byte, n int, err error) {
	for n < len(keys) {
		var t view.Taken
		if ks.Layout == Hash {
			t.Alone = len(keys) // it has no pages to be asked for several keys at once
		} else {
			// What is in memory is copied inside of one epoch section; what is not is read outside of it, and then we go on.
			g := s.e.epoch.Enter()
			dst = s.View.AppendGroup(dst, ends[n:], &t, ks.ID, keys[n:], s.Seq)
			g.Exit()
		}
		n += t.Copied
		for _, ref := range t.Refs[:t.Apart] {
			if dst, err = s.e.readApart(dst, ks, ref, nil); err != nil {
				return dst, n, err
			}
			ends[n] = len(dst)
			n++
		}
		for _, key := range keys[n : n+t.Alone] {
			if dst, err = s.Get(dst, nil, ks, key); err != nil {
				return dst, n, err
			}
			ends[n] = len(dst)
			n++
		}
	}
	return dst, n, nil
}

// AbsentGroup notes which of up to view.Group keys are not there.
func (s Snapshot) AbsentGroup(absent []bool, ks *Keyspace, keys [][]byte) error {
	var answers [view.Group]view.Answer
	s.findGroup(answers[:len(keys)], ks, keys)
	for i, key := range keys {
		a := &answers[i]
		absent[i] = a.Status == layout.Absent
		if a.Status != layout.NotResident && a.Record.Expiry == 0 {
			continue
		}
		there, err := s.Has(nil, ks, key)
		if err != nil {
			return err
		}
		absent[i] = !there
	}
	return nil
}

// findGroup asks what is in memory. The values of the answers must not be looked at.
func (s Snapshot) findGroup(answers []view.Answer, ks *Keyspace, keys [][]byte) {
	g := s.e.epoch.Enter()
	defer g.Exit()
	s.View.FindGroup(answers, ks.ID, keys, s.Seq)
}
