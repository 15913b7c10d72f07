package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// TestEntriesStayPackedWhileFewAreAskedFor: a codec that reads a document or two leaves its dictionaries as they are stored, one that reads
// many or writes unpacks them, and nobody sees a difference.
func TestEntriesStayPackedWhileFewAreAskedFor(t *testing.T) {
	docs := append(packages(2000), flights(2000)...)
	store := newMemory()
	writer := open(t, Template, store)
	records := make([][]byte, len(docs))
	for range 2 {
		for i, doc := range docs {
			var err error
			if records[i], err = writer.Encode(nil, doc); err != nil {
				t.Fatal(err)
			}
		}
	}

	reader := open(t, Template, store)
	if packed, unpacked := dictionariesOf(reader); packed < 10 || unpacked != 0 {
		t.Errorf("at first %d dictionaries are packed and %d unpacked", packed, unpacked)
	}
	if reader.dictionary != writer.dictionary {
		t.Errorf("dictionaries of %d bytes, want %d", reader.dictionary, writer.dictionary)
	}
	same(t, records[1999], docs[1999], reader)
	if packed, _ := dictionariesOf(reader); packed < 10 {
		t.Errorf("after a document %d dictionaries are packed", packed)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range docs {
				if got, err := reader.Decode(nil, records[i]); err != nil || !bytes.Equal(got, docs[i]) {
					t.Errorf("document %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if again, err := open(t, Template, store).Encode(nil, docs[1999]); err != nil || !bytes.Equal(again, records[1999]) {
		t.Errorf("encoded with what was read: %x, %v, want %x", again, err, records[1999])
	}
	if _, unpacked := dictionariesOf(reader); unpacked < 10 || reader.dictionary != writer.dictionary {
		t.Errorf("after all documents %d dictionaries are unpacked, of %d bytes, want %d", unpacked, reader.dictionary, writer.dictionary)
	}
}

// TestPackedEntriesGrow: a codec that has the entries of those before it packed adds to them, and reads what all have written.
func TestPackedEntriesGrow(t *testing.T) {
	docs, store := packages(3000), newMemory()
	var records [][]byte
	for from := 0; from < len(docs); from += 100 {
		writer := open(t, Template, store)
		for _, doc := range docs[from : from+100] {
			record, err := writer.Encode(nil, doc)
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, record)
		}
		reader := open(t, Template, store)
		if reader.dictionary != writer.dictionary {
			t.Errorf("dictionaries of %d bytes, want %d", reader.dictionary, writer.dictionary)
		}
		for i := 0; i < len(records); i += 41 {
			same(t, records[i], docs[i], reader, writer)
		}
	}
}

// storing is a store that lets somebody look on while it stores.
type storing struct {
	*memory
	meanwhile func(number uint32)
}

func (s *storing) Store(number uint32, definition []byte) error {
	s.meanwhile(number)
	return s.memory.Store(number, definition)
}

// TestReadersDoNotWaitForTheStore: who reads comes by while a definition is being stored, which takes as long as a commit may have to wait,
// also when what was stored before is unpacked for it.
func TestReadersDoNotWaitForTheStore(t *testing.T) {
	docs, store := packages(3000), newMemory()
	writer := open(t, Template, store)
	var records [][]byte
	for _, doc := range docs[:2000] {
		record, err := writer.Encode(nil, doc)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	looker := &storing{memory: store}
	c := open(t, Template, looker)
	templates, parts := 0, 0
	looker.meanwhile = func(number uint32) {
		if number < dictionaryNumber {
			templates++
		} else {
			parts++
		}
		if !c.mu.TryLock() {
			t.Errorf("readers wait for definition %d to be stored", number)
			return
		}
		c.mu.Unlock()
		for i := parts; i < len(records); i += 100 {
			same(t, records[i], docs[i], c)
		}
	}
	for i, doc := range docs[2000:] {
		more := bsoncore.AppendInt32Element(doc[:len(doc)-1:len(doc)-1], fmt.Sprint("more", i/500), 1)
		more = append(more, 0)
		binary.LittleEndian.PutUint32(more, uint32(len(more)))
		if _, err := c.Encode(nil, more); err != nil {
			t.Fatal(err)
		}
	}
	if templates == 0 || parts == 0 {
		t.Errorf("%d templates and %d parts of dictionaries were stored", templates, parts)
	}
}

// dictionariesOf counts the dictionaries that are as they are stored, and those that are not.
func dictionariesOf(c *Codec) (packed, unpacked int) {
	for _, col := range c.columns {
		for _, d := range []*dictionary{col.state.Load(), col.patterns.state.Load()} {
			if d != nil && d.stored != nil {
				packed++
			} else if d != nil {
				unpacked++
			}
		}
	}
	return packed, unpacked
}

// TestShortPartsGrow: entries are stored with those before them as long as their part is short, also by a codec that was opened later, and
// nothing that was stored is taken back. A store that has a part for each of them, as earlier versions made, reads the same.
func TestShortPartsGrow(t *testing.T) {
	store, apart, n := newMemory(), newMemory(), 60
	docs := make([]bsoncore.Document, n)
	for i := range docs {
		docs[i] = document(bson.D{{Key: "_id", Value: int32(i)}, {Key: "town", Value: fmt.Sprintf("the town %c%c", 'a'+i%26, 'a'+i/26)}})
	}
	var records [][]byte
	var writer *Codec
	for i, doc := range docs {
		if i%20 == 0 {
			writer = open(t, Template, store)
		}
		var record []byte
		for range 12 {
			var err error
			if record, err = writer.Encode(nil, doc); err != nil {
				t.Fatal(err)
			}
		}
		records = append(records, record)
	}
	templates, parts := store.templates()
	reader := open(t, Template, store)
	entries := reader.columns["town"].unpacked()
	if templates != 1 || entries.count() < n/2 || parts > 1+2*len(entries.arena)/shortPart {
		t.Fatalf("%d templates, and %d entries of %d bytes in %d parts", templates, entries.count(), len(entries.arena), parts)
	}
	for number, definition := range store.kept {
		if number < dictionaryNumber {
			apart.kept[number] = definition
		} else if len(definition) > shortPart {
			t.Errorf("part %d has %d bytes", number-dictionaryNumber, len(definition))
		}
	}
	for i := range entries.count() {
		apart.kept[dictionaryNumber+uint32(i)] = appendPart(nil, reader.columns["town"], i, entries.since(i)[:1])
	}
	for i, doc := range docs {
		same(t, records[i], doc, reader, open(t, Template, store), open(t, Template, apart))
	}
	writer = open(t, Template, apart)
	more := document(bson.D{{Key: "_id", Value: int32(n)}, {Key: "town", Value: "another town"}})
	for range 12 {
		record, err := writer.Encode(nil, more)
		if err != nil {
			t.Fatal(err)
		}
		same(t, record, more, writer, open(t, Template, apart))
	}
}
