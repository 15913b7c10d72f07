package engine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/internal/train"
)

// Leaves are small, and a compressor that starts afresh with each has to learn again what all of them have in common. So
// Compact with zstd trains a dictionary on samples of a keyspace's leaves, and the keyspace's later checkpoints go on using
// it. Dictionaries are blobs of the catalogue.

const (
	dictionaryBytes   = 64 << 10  // at most; for little data a sixteenth of it
	dictionarySamples = 256       // leaves that a dictionary is made of, at most; an even number
	dictionaryLeast   = 256 << 10 // bytes of leaves below which a dictionary would not earn its own space
	columnSamples     = 16        // leaves that are tried by columns
)

// A dictionary is needed as long as a leaf may lie there that was compressed with it. A keyspace has one that is in use, and, from the first
// round of a compaction on that gives it another one until the last, those that it had before. So has it when a compaction is not finished; the
// next one goes on using the newest then, or each of those that are broken off would leave one behind.

// dictionary is one that the catalogue lists, of a keyspace.
type dictionary struct {
	root.Dictionary
	keyspace uint32 // 0: it is damaged, and nobody knows whose it was
}

// codecFor says how the settlement compresses the leaves of a keyspace, of which a stretch may be written anew: nil is none.
func (s *settlement) codecFor(ks *Keyspace, stretch *layout.Stretch) (segment.Codec, uint16, error) {
	if stretch == nil {
		codec, dictionary := s.e.codecFor(ks)
		return codec, dictionary, nil
	}
	codec := s.work.compaction.codecFor(ks)
	if codec != segment.Columns {
		return codec, 0, nil
	}
	d, err := s.dictionaryFor(ks)
	return codec, d, err
}

// codecFor says how what is written anew of a keyspace is compressed. With zstd that goes by columns where that takes less.
func (c *compaction) codecFor(ks *Keyspace) segment.Codec {
	codec, _ := c.e.codecFor(ks)
	if c.codec != nil && ks.Layout != Hash { // whose data is not compressed
		codec = *c.codec
	}
	if codec == segment.Zstd || codec == segment.ZstdDictionary {
		return segment.Columns
	}
	return codec
}

// learn makes dictionaries for the keyspaces that the next round may begin with, where that pays.
func (c *compaction) learn(ctx context.Context) error {
	if c.at.keyspace < c.ready {
		return nil
	}
	p := c.e.pictureSettled()
	defer p.view.Unref()
	clear(c.learnt)
	size := int64(0)
	for _, ks := range p.keyspaces {
		if ks.ID < c.at.keyspace || ks.ID >= c.end {
			continue
		}
		if size >= c.e.sizes.round {
			c.ready = ks.ID
			return nil
		}
		r := p.view.Root(ks.ID)
		if r == nil || c.codecFor(ks) != segment.Columns || unfinished(p.dictionaries, ks) {
			continue
		}
		raw, total, err := c.e.train(ctx, r)
		if err != nil {
			return fmt.Errorf("train a dictionary for keyspace %q: %w", ks.Name, err)
		}
		if size += total; raw != nil {
			c.learnt[ks.ID] = raw
		}
	}
	c.ready = c.end
	return nil
}

// unfinished reports whether the last compaction that wrote leaves of a keyspace anew did not come to its end.
func unfinished(list []dictionary, ks *Keyspace) bool {
	n := 0
	for _, d := range list {
		if d.keyspace == ks.ID {
			n++
		}
	}
	return n > 1
}

// dictionaryFor returns the number of the dictionary for the leaves of a keyspace that are written anew, 0 for none. In the first round that
// comes to the keyspace it writes a new one.
func (s *settlement) dictionaryFor(ks *Keyspace) (uint16, error) {
	if at := s.renewal.at; at.keyspace == ks.ID && at.from != nil {
		return at.dictionary, nil
	}
	raw := s.work.compaction.learnt[ks.ID]
	if raw == nil && unfinished(s.dictionaries, ks) {
		return s.dictionaryOf(ks), nil
	}
	last := s.e.lastDictionary
	for _, d := range s.dictionaries {
		last = max(last, d.ID)
	}
	if raw == nil || last == math.MaxUint16 { // all numbers are taken
		return 0, nil
	}
	id := last + 1
	s.e.lastDictionary = id // even if this round fails: which root the next open finds may not be known then
	if err := s.e.store.AddDictionary(id, raw); err != nil {
		return 0, err
	}
	s.trained = append(s.trained, trained{ks, id})
	p, err := s.writer.Append(segment.KindDictionary, ks.ID, segment.Zstd, 0, raw)
	if err != nil {
		return 0, err
	}
	s.dictionaries = append(s.dictionaries, dictionary{root.Dictionary{ID: id, Pointer: p}, ks.ID})
	return id, nil
}

// moveDictionary writes the dictionary anew that a keyspace goes on using, or it would keep a segment that all else has left.
func (s *settlement) moveDictionary(ks *Keyspace) error {
	id := s.dictionaryOf(ks)
	at := slices.IndexFunc(s.dictionaries, func(d dictionary) bool { return d.ID == id && d.Pointer.Segment < s.work.compaction.first })
	if at < 0 {
		return nil
	}
	return s.writeAgain(&s.dictionaries[at])
}

// moveDictionaries does the same with those that lie in segments which are being emptied. One that cannot be read keeps its segment.
func (s *settlement) moveDictionaries() error {
	for i := range s.dictionaries {
		if !s.tried().Has(s.dictionaries[i].Pointer.Segment) {
			continue
		}
		err := s.writeAgain(&s.dictionaries[i])
		if segment.IsUnreadable(err) && s.maySkip() {
			s.e.o.Logger.Error("damage found while cleaning", "error", err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeAgain writes a dictionary anew.
func (s *settlement) writeAgain(d *dictionary) error {
	var buf segment.Buffer
	raw, _, err := s.e.store.Read(d.Pointer, &buf)
	if err != nil {
		return err
	}
	s.writer.Free(d.Pointer)
	d.Pointer, err = s.writer.Append(segment.KindDictionary, d.keyspace, segment.Zstd, 0, raw)
	return err
}

// train makes a dictionary for the leaves of a root; nil where that does not pay. It says how many bytes of leaves there are.
func (e *Engine) train(ctx context.Context, r layout.Root) (raw []byte, total int64, err error) {
	samples, leaves, total, err := e.sampleLeaves(ctx, r)
	if err != nil || samples == nil {
		return nil, total, err
	}
	if better, err := e.betterByColumns(samples); better || err != nil {
		return nil, total, err
	}
	return train.Dictionary(samples, int(min(total/16, dictionaryBytes)), leaves), total, nil
}

// trained is a keyspace with its new dictionary.
type trained struct {
	ks *Keyspace
	id uint16
}

// sampleLeaves reads leaves from all over a root, and says how many there are in all, and how many bytes; no samples when there are too few.
func (e *Engine) sampleLeaves(ctx context.Context, r layout.Root) (samples [][]byte, leaves int, total int64, err error) {
	picked, leaves, total, err := e.pickLeaves(ctx, r)
	if err != nil || total < dictionaryLeast {
		return nil, leaves, total, err
	}
	var buf segment.Buffer
	for _, p := range picked {
		raw, _, err := e.store.Read(p, &buf)
		if err != nil {
			return nil, leaves, total, err
		}
		samples = append(samples, slices.Clone(raw))
	}
	return samples, leaves, total, nil
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

// pickLeaves picks leaves of a tree at equal distances, and adds up all leaves and their bytes.
func (e *Engine) pickLeaves(ctx context.Context, r layout.Root) (picked []segment.Pointer, leaves int, total int64, err error) {
	every := 1
	err = e.layouts[Tree].Walk(ctx, r, func(p segment.Pointer, kind segment.Kind) error {
		if kind != segment.KindLeaf {
			return nil
		}
		total += int64(p.Length)
		if leaves%every == 0 {
			picked = append(picked, p)
		}
		leaves++
		if len(picked) == dictionarySamples {
			for i := range picked[:len(picked)/2] {
				picked[i] = picked[2*i]
			}
			picked = picked[:len(picked)/2]
			every *= 2
		}
		return nil
	})
	return picked, leaves, total, err
}

// pruneDictionaries frees the dictionaries that no leaf needs any more, and returns the others for the catalogue.
func (s *settlement) pruneDictionaries() (list []root.Dictionary) {
	keyspaces := map[uint32]*Keyspace{}
	for _, ks := range s.keyspaces {
		keyspaces[ks.ID] = ks
	}
	s.dictionaries = slices.DeleteFunc(s.dictionaries, func(d dictionary) bool {
		ks := keyspaces[d.keyspace]
		needed := d.keyspace == 0 || ks != nil && (d.ID == s.dictionaryOf(ks) || !slices.Contains(s.renewal.finished, ks.ID))
		if !needed {
			s.writer.Free(d.Pointer)
		} else {
			list = append(list, d.Dictionary)
		}
		return !needed
	})
	return list
}

// replaceDictionaries puts the dictionaries of the settlement in force, and returns the numbers of those that are not among them any more:
// nothing is going to be compressed with them, and they are read by views only that are older. The caller holds mu.
func (s *settlement) replaceDictionaries() (outdated []uint16) {
	e := s.e
	for _, old := range e.dictionaries {
		if !slices.ContainsFunc(s.dictionaries, func(d dictionary) bool { return d.ID == old.ID }) {
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
