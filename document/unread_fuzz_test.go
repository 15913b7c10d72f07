package document

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// FuzzReadStored: any bytes are read or refused, and what the codec of BSON writes is read as the codec reads it.
func FuzzReadStored(f *testing.F) {
	indexes := []indexEntry{{Number: 1, Ready: true, Spec: bson.Raw(emptyDocument())}}
	for _, e := range []entry{
		{Number: 7, UUID: bson.Binary{Subtype: 4, Data: make([]byte, 16)}, Options: bson.Raw(emptyDocument()), Indexes: indexes},
		{Number: 8, Options: bson.Raw(emptyDocument()), Format: 2, Collated: true, Loose: true},
		{Number: 9, Options: bson.Raw(emptyDocument()), Format: 1, Former: make([]formerName, 2)},
	} {
		whole, err := bson.Marshal(&e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(whole)
		f.Add(whole[:20])
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		_, err := readStored(value)
		var e entry
		if err != nil || bson.Unmarshal(value, &e) != nil {
			return
		}
		if value, err = bson.Marshal(&e); err != nil {
			return
		}
		s, err := readStored(value)
		if err != nil || s.number != e.Number || s.view != e.View || len(s.indexes) != len(e.Indexes) {
			t.Fatalf("%x: read as %+v, and by the codec as %+v, %v", value, s, e, err)
		}
		h, err := s.heading()
		if err != nil || h.Format != e.Format || h.Collated != e.Collated || h.Loose != e.Loose || len(h.Former) != len(e.Former) {
			t.Errorf("%x: the heading is read as %+v, and by the codec as %+v, %v", value, h, e, err)
		}
	})
}
