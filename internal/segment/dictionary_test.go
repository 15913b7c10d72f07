package segment

import (
	"errors"
	"testing"
)

// coders counts what the dictionaries of a store hold beside themselves.
func coders(s *Store) (encoders, decoders int) {
	for _, d := range *s.codecs.dictionaries.Load() {
		for i := range d.encoders {
			if d.encoders[i].Load() != nil {
				encoders++
			}
		}
		if d.decoder.Load() != nil {
			decoders++
		}
	}
	return encoders, decoders
}

// Of a dictionary that is not compressed with any more nothing is kept but itself, with which what was compressed is read, until it is
// dropped.
func TestDictionaryThatRestsTakesNoMemoryBesideItself(t *testing.T) {
	s := emptyStore(t)
	w := s.NewWriter(Nodes, 0)
	const last = 8
	var pointers []Pointer
	for id := uint16(1); id <= last; id++ {
		must(t, s.AddDictionary(id, text(100+uint64(id), 8<<10)))
		p, err := w.Append(KindLeaf, 7, ZstdDictionary, id, text(uint64(id), 5000))
		must(t, err)
		pointers = append(pointers, p)
		if id > 1 {
			s.RestDictionary(id - 1)
		}
		if encoders, decoders := coders(s); encoders != 1 || decoders != 1 {
			t.Errorf("%d dictionaries: %d encoders, %d decoders", id, encoders, decoders)
		}
	}
	must(t, w.Flush())
	w.Commit()
	for i, p := range pointers {
		mustRead(t, s, p, text(uint64(i+1), 5000))
	}
	for id := uint16(1); id < last; id++ {
		s.DropDictionary(id)
	}
	if encoders, decoders := coders(s); encoders != 1 || decoders != 1 || len(*s.codecs.dictionaries.Load()) != 1 {
		t.Errorf("%d dictionaries are left, %d encoders, %d decoders", len(*s.codecs.dictionaries.Load()), encoders, decoders)
	}
	if _, _, err := s.Read(pointers[0], new(Buffer)); !errors.Is(err, ErrNoDictionary) {
		t.Errorf("a blob whose dictionary was dropped: %v", err)
	}
	mustRead(t, s, pointers[last-1], text(last, 5000))
}
