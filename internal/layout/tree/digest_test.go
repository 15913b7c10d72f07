package tree

import (
	"bytes"
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
	"github.com/pandodb/pando/internal/record"
)

func TestDigestKnowsItsKeys(t *testing.T) {
	const keys, probes = 4, 20_000
	var d digest
	if !d.has(7) {
		t.Error("the digest of a delta of old denies a key")
	}
	hash := func(i int) uint64 { return record.Hash(1, row(i)) }
	for i := range keys {
		d.add(hash(i))
	}
	let := 0
	for i := range keys + probes {
		has := d.has(hash(i))
		if i < keys && !has {
			t.Errorf("key %d is denied", i)
		}
		if i >= keys && has {
			let++
		}
	}
	if rate := float64(let) / probes; rate > 0.03 {
		t.Errorf("%.1f %% of other keys are let through", 100*rate)
	}
}

// TestSlotsOfOldHaveNoDigests: a node that was written before there were digests is read, and its deltas may have any key.
func TestSlotsOfOldHaveNoDigests(t *testing.T) {
	b := sampleLeaves()
	raw := appendNode(nil, b)
	for _, d := range b.deltas {
		known := appendDelta(nil, d)
		raw = bytes.Replace(raw, known, known[:len(known)-8], 1)
	}
	raw[bytes.IndexByte(raw, slotOpen|slotDeltas|slotDigest|slotFilter)] &^= slotDigest
	got, err := decodeNode(raw, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range got.deltas {
		if d.Pointer != b.deltas[i].Pointer || !d.digest.has(12345) {
			t.Errorf("delta %d is %+v", i, d)
		}
	}
}

// TestDigestsSpareReads: a key that a delta cannot have is found although the delta is damaged.
func TestDigestsSpareReads(t *testing.T) {
	w := layouttest.NewWorld(t, config(), 1, 0, 0)
	o := layout.ApplyOptions{LeafBytes: 4000}
	w.Apply(nil, rows(0, 50, 1), o)
	w.Root = w.Reload()
	w.Apply(nil, rows(3, 4, 1), o)
	r := w.Reload().(*root)
	b, err := r.load(&layout.Scratch{}, r.node)
	if err != nil || len(b.deltas) != 1 {
		t.Fatal(len(b.deltas), err)
	}
	b.deltas[0].Sum++
	read := 0
	for i := range 50 {
		hash := record.Hash(layouttest.Keyspace, row(i))
		var s layout.Scratch
		ok, err := r.findIn(&s, b, 0, hash, row(i))
		if err != nil {
			read++
		} else if !ok || len(s.Record.Value) == 0 {
			t.Errorf("row %d: %v %v", i, s.Record, ok)
		}
	}
	if read == 0 || read > 5 {
		t.Errorf("%d of 50 gets read the delta", read)
	}
}
