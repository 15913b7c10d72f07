package view

import (
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/record"
)

// Get finds the newest record of key with a sequence number of at most seq. The caller is inside an epoch section; the
// record's value is valid until it leaves it. NotResident means that the answer is on the disk: take a reference, leave the
// section and call GetRead, or GetSettled with the place. The record may be expired or a value apart; it is never a tombstone.
func (v *View) Get(keyspace uint32, hash uint64, key []byte, seq uint64) (record.Record, layout.Place, layout.Status) {
	if !v.settled(seq) {
		if r, found := v.unsettled(keyspace, hash, key, seq); found {
			if r.Kind == record.Tombstone {
				return record.Record{}, layout.Place{}, layout.Absent
			}
			return r, layout.Place{}, layout.Found
		}
	}
	root := v.Root(keyspace)
	if root == nil {
		return record.Record{}, layout.Place{}, layout.Absent
	}
	return root.Get(hash, key)
}

// GetRead is Get for a caller who holds a reference and is outside of every epoch section. It may read from the disk. The
// record's value is valid until scratch is used again, and only while the reference is held.
func (v *View) GetRead(scratch *layout.Scratch, keyspace uint32, hash uint64, key []byte, seq uint64) (record.Record, bool, error) {
	r, found := v.unsettled(keyspace, hash, key, seq)
	if found {
		return r, r.Kind != record.Tombstone, nil
	}
	root := v.Root(keyspace)
	if root == nil {
		return record.Record{}, false, nil
	}
	return root.GetRead(scratch, hash, key)
}

// GetSettled is GetRead for a caller whom Get has told that the answer is on the disk, and at which place: it does not ask the memtables
// again. The record is left in scratch.
func (v *View) GetSettled(scratch *layout.Scratch, at layout.Place, keyspace uint32, hash uint64, key []byte) (bool, error) {
	return v.Root(keyspace).GetFrom(scratch, at, hash, key)
}

// settled reports whether the memtables hold nothing for a reader at seq: to ask them costs little, but more than to know that.
func (v *View) settled(seq uint64) bool {
	for _, t := range v.Tables {
		if !t.blank(seq) {
			return false
		}
	}
	return true
}

// unsettled asks the memtables. A tombstone is an answer: it says that the key is absent.
func (v *View) unsettled(keyspace uint32, hash uint64, key []byte, seq uint64) (record.Record, bool) {
	for _, t := range v.Tables {
		if t.blank(seq) {
			continue
		}
		r, at, ok := t.Get(keyspace, hash, key, seq)
		if t.HasRanges() {
			if covered := t.Covered(keyspace, key, seq); covered > at {
				return record.Record{Kind: record.Tombstone}, true
			}
		}
		if ok {
			return r, true
		}
	}
	return record.Record{}, false
}
