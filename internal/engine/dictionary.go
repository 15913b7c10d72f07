package engine

import (
	"context"
	"math"
	"slices"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
)

// Leaves are small, and a compressor that starts afresh with each has to learn again what all of them have in common. So
// Compact with zstd trains a dictionary on samples of a keyspace's leaves, and the keyspace's later checkpoints go on using
// it. Dictionaries are blobs of the catalogue.

const (
	dictionaryBytes   = 64 << 10  // at most; for little data a sixteenth of it
	dictionarySamples = 256       // leaves that a dictionary is made of, at most; an even number
	dictionarySample  = 8 << 10   // bytes of each: what training costs grows with all of them, and more teach it little
	dictionaryLeast   = 256 << 10 // bytes of leaves below which a dictionary would not earn its own space
	columnSamples     = 16        // leaves that are tried by columns
)

// codecFor says how the settlement compresses the leaves of a keyspace, and makes a dictionary where that pays. What is rewritten
// with zstd goes by columns where that takes less.
func (s *settlement) codecFor(ks *Keyspace, r layout.Root) (segment.Codec, uint16, error) {
	codec, dictionary := s.e.codecFor(ks)
	if ks.Layout == Hash { // without leaves to train on, too
		return codec, dictionary, nil
	}
	if s.work.codec != nil {
		codec, dictionary = *s.work.codec, 0
	}
	if !s.work.rewrite || (codec != segment.Zstd && codec != segment.ZstdDictionary) {
		return codec, dictionary, nil
	}
	d, err := s.train(ks, r)
	return segment.Columns, d, err
}

// train makes a dictionary for a keyspace that is about to be rewritten, and returns its number, 0 for none.
func (s *settlement) train(ks *Keyspace, r layout.Root) (uint16, error) {
	e := s.e
	samples, total, err := e.sampleLeaves(s.ctx, r)
	if err != nil || samples == nil {
		return 0, err
	}
	if better, err := e.betterByColumns(samples); better || err != nil {
		return 0, err
	}
	for i, raw := range samples {
		samples[i] = raw[:min(len(raw), dictionarySample)]
	}
	raw, err := segment.TrainDictionary(samples, int(min(total/16, dictionaryBytes)))
	if err != nil {
		return 0, nil // the leaves have too little in common
	}
	last := e.lastDictionary
	for _, d := range s.dictionaries {
		last = max(last, d.ID)
	}
	if last == math.MaxUint16 {
		return 0, nil // all numbers are taken
	}
	id := last + 1
	e.lastDictionary = id // even if this round fails: which root the next open finds may not be known then
	if err := e.store.AddDictionary(id, raw); err != nil {
		return 0, err
	}
	s.trained = append(s.trained, trained{ks, id})
	p, err := s.writer.Append(segment.KindDictionary, ks.ID, segment.Zstd, 0, raw)
	if err != nil {
		return 0, err
	}
	s.dictionaries = append(s.dictionaries, root.Dictionary{ID: id, Pointer: p})
	return id, nil
}

// trained is a keyspace with its new dictionary.
type trained struct {
	ks *Keyspace
	id uint16
}

// sampleLeaves reads leaves from all over a root, and says how many bytes there are in all; nil when there are too few.
func (e *Engine) sampleLeaves(ctx context.Context, r layout.Root) (samples [][]byte, total int64, err error) {
	picked, total, err := e.pickLeaves(ctx, r)
	if err != nil || total < dictionaryLeast {
		return nil, total, err
	}
	var buf segment.Buffer
	for _, p := range picked {
		raw, _, err := e.store.Read(p, &buf)
		if err != nil {
			return nil, total, err
		}
		samples = append(samples, slices.Clone(raw))
	}
	return samples, total, nil
}

// betterByColumns reports whether columns are so much shorter than zstd that a dictionary would hardly be used.
func (e *Engine) betterByColumns(leaves [][]byte) (bool, error) {
	var columns, zstd int
	for i := 0; i < len(leaves); i += max(1, len(leaves)/columnSamples) {
		c, z, err := e.store.SizeByColumns(leaves[i])
		if err != nil {
			return false, err
		}
		if c == 0 {
			c = z
		}
		columns, zstd = columns+c, zstd+z
	}
	return columns < zstd-zstd/4, nil
}

// pickLeaves picks leaves of a tree at equal distances, and adds up the bytes of all.
func (e *Engine) pickLeaves(ctx context.Context, r layout.Root) (picked []segment.Pointer, total int64, err error) {
	n, every := 0, 1
	err = e.layouts[Tree].Walk(ctx, r, func(p segment.Pointer, kind segment.Kind) error {
		if kind != segment.KindLeaf {
			return nil
		}
		total += int64(p.Length)
		if n%every == 0 {
			picked = append(picked, p)
		}
		n++
		if len(picked) == dictionarySamples {
			for i := range picked[:len(picked)/2] {
				picked[i] = picked[2*i]
			}
			picked = picked[:len(picked)/2]
			every *= 2
		}
		return nil
	})
	return picked, total, err
}

// pruneDictionaries frees the dictionaries that no keyspace uses any more.
func (s *settlement) pruneDictionaries(list []*Keyspace) {
	used := map[uint16]bool{}
	for _, ks := range list {
		used[s.dictionaryOf(ks)] = true
	}
	s.dictionaries = slices.DeleteFunc(s.dictionaries, func(d root.Dictionary) bool {
		if !used[d.ID] {
			s.writer.Free(d.Pointer)
		}
		return !used[d.ID]
	})
}

// replaceDictionaries puts the dictionaries of the settlement in force, and returns the numbers of those that are not among them any more:
// nothing is going to be compressed with them, and they are read by views only that are older. The caller holds mu.
func (s *settlement) replaceDictionaries() (outdated []uint16) {
	e := s.e
	for _, old := range e.dictionaries {
		if !slices.ContainsFunc(s.dictionaries, func(d root.Dictionary) bool { return d.ID == old.ID }) {
			e.outdated = append(e.outdated, doomedDictionary{old.ID, e.generated})
			outdated = append(outdated, old.ID)
		}
	}
	e.dictionaries = s.dictionaries
	return outdated
}

// forgetTrained forgets the dictionaries of a settlement that has failed: nobody reads what it has written.
func (s *settlement) forgetTrained() {
	for _, t := range s.trained {
		s.e.store.DropDictionary(t.id)
	}
}

// DictionaryID returns the number of the dictionary with which the keyspace's leaves are compressed; 0: none.
func (ks *Keyspace) DictionaryID() uint32 { return ks.dictionary.Load() }

// dictionaryOf returns the number of the dictionary that a keyspace will have when the settlement is done.
func (s *settlement) dictionaryOf(ks *Keyspace) uint16 {
	for _, t := range s.trained {
		if t.ks == ks {
			return t.id
		}
	}
	return uint16(ks.dictionary.Load())
}
