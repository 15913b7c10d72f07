package codec

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// TestPassingCodecs: codecs that are not kept read each record as one that is, though they have the same memory one after the other.
func TestPassingCodecs(t *testing.T) {
	sets := [][]bsoncore.Document{packages(500), flights(500)}
	stores, records := make([]*memory, len(sets)), make([][][]byte, len(sets))
	for n, docs := range sets {
		stores[n] = newMemory()
		writer := open(t, Template, stores[n])
		for _, doc := range docs {
			record, err := writer.Encode(nil, doc)
			if err != nil {
				t.Fatal(err)
			}
			records[n] = append(records[n], record)
		}
	}
	for i := 0; i < 500; i += 9 {
		for n, docs := range sets {
			c, done, err := NewPassing(Template, stores[n])
			if err != nil {
				t.Fatal(err)
			}
			same(t, records[n][i], docs[i], c)
			done()
		}
	}
	for number := range stores[0].kept {
		if number >= dictionaryNumber {
			stores[0].kept[number] = []byte{definitionDictionary}
		}
	}
	if _, _, err := NewPassing(Template, stores[0]); !errors.Is(err, ErrCorrupt) {
		t.Errorf("with damaged dictionaries: %v", err)
	}
}

// TestPassingCodecsHaveTheirColumns: what a passing codec keeps of one collection takes no place that the next one needs.
func TestPassingCodecsHaveTheirColumns(t *testing.T) {
	wide := bson.D{{Key: "_id", Value: "wide"}}
	for i := len(wide); i <= MaxColumns; i++ {
		wide = append(wide, bson.E{Key: fmt.Sprintf("field%d", i), Value: fmt.Sprintf("a text of field %c", 'a'+i%26)})
	}
	docs := []bsoncore.Document{packages(1)[0], document(wide)}
	stores, records := make([]*memory, len(docs)), make([][]byte, len(docs))
	for n, doc := range docs {
		stores[n] = newMemory()
		writer := open(t, Template, stores[n])
		for range 20 {
			record, err := writer.Encode(nil, doc)
			if err != nil {
				t.Fatal(err)
			}
			records[n] = record
		}
	}
	if len(records[1]) > 4*MaxColumns || open(t, Template, stores[1]).columns[fmt.Sprintf("field%d", MaxColumns-1)] == nil {
		t.Fatalf("a record of %d bytes does not refer to a dictionary for each field", len(records[1]))
	}
	l := new(loading)
	for _, n := range []int{0, 1, 0, 1, 1} {
		c, err := l.pass(Template, stores[n])
		if err != nil {
			t.Fatal(err)
		}
		same(t, records[n], docs[n], c)
		l.forgetPassed()
		if l.passing != nil && len(l.passing.columns) > keptColumns {
			t.Errorf("%d columns are kept", len(l.passing.columns))
		}
	}
}

// TestPassingCodecsKeepShapes: a template that the collection before had too is not made again, nor is the table of them.
func TestPassingCodecsKeepShapes(t *testing.T) {
	l, docs := new(loading), packages(40)
	var before *table
	for range 3 {
		store := newMemory()
		writer := open(t, Template, store)
		var record []byte
		for _, doc := range docs {
			var err error
			if record, err = writer.Encode(nil, doc); err != nil {
				t.Fatal(err)
			}
		}
		c, err := l.pass(Template, store)
		if err != nil {
			t.Fatal(err)
		}
		same(t, record, docs[len(docs)-1], c)
		now := c.table.Load()
		if before != nil && now != before {
			t.Error("the templates were made again")
		}
		before = now
		l.forgetPassed()
	}
}

// manyTexts returns a store whose dictionaries have many parts, and documents with their records, which need ever more of them.
func manyTexts(t *testing.T) (m *memory, docs []bsoncore.Document, records [][]byte) {
	t.Helper()
	m = newMemory()
	writer := open(t, Template, m)
	for i := range 1000 {
		docs = append(docs, document(bson.D{
			{Key: "_id", Value: "one"}, {Key: "a", Value: fmt.Sprintf("text %c of many", 'A'+i/2)}, {Key: "b", Value: fmt.Sprintf("%c of others", 'z'+i/2)},
		}))
		if _, err := writer.Encode(nil, docs[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, doc := range docs {
		record, err := writer.Encode(nil, doc)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	if len(m.kept) < 12 {
		t.Fatalf("%d definitions", len(m.kept))
	}
	return m, docs, records
}

// decodePassing decodes a record with a passing codec, and returns how many definitions that took.
func decodePassing(t *testing.T, m *memory, record []byte) (doc []byte, read int, err error) {
	t.Helper()
	m.read = 0
	c, done, err := NewPassing(Template, m)
	if err != nil {
		t.Fatal(err)
	}
	doc, err = c.Decode(nil, record)
	done()
	if m.reading != 0 {
		t.Fatalf("%d readings of the store were not ended", m.reading)
	}
	return doc, m.read, err
}

// TestPassingCodecsReadLittle: a passing codec reads the parts of dictionaries up to what its record needs, which is all of them only for
// the newest entries.
func TestPassingCodecsReadLittle(t *testing.T) {
	m, docs, records := manyTexts(t)
	most := 0
	for i := range docs {
		doc, read, err := decodePassing(t, m, records[i])
		if err != nil || !bytes.Equal(doc, docs[i]) {
			t.Fatalf("record %d: %x, %v", i, doc, err)
		}
		if i < 10 && read > 4 {
			t.Errorf("record %d: %d definitions of %d were read", i, read, len(m.kept))
		}
		most = max(most, read)
	}
	if most != len(m.kept) {
		t.Errorf("%d definitions of %d were read at most", most, len(m.kept))
	}
}

// TestPassingCodecsTellOfDamage: what is wrong with a part comes to light with the records that need it, or parts behind it, and with no
// others.
func TestPassingCodecsTellOfDamage(t *testing.T) {
	m, docs, records := manyTexts(t)
	const before, part = 8, dictionaryNumber + 7 // a template comes first
	whole := m.kept[part]
	for what, spoiled := range map[string]struct {
		do   func()
		want error
	}{
		"damaged":    {func() { m.kept[part] = []byte{definitionDictionary} }, ErrCorrupt},
		"misplaced":  {func() { m.kept[part] = m.kept[part+2] }, ErrCorrupt},
		"unreadable": {func() { m.unreadable = part }, errStore},
	} {
		failed := 0
		for i := range docs {
			_, needed, err := decodePassing(t, m, records[i])
			if err != nil {
				t.Fatal(err)
			}
			spoiled.do()
			doc, _, err := decodePassing(t, m, records[i])
			m.kept[part], m.unreadable = whole, 0
			if needed <= before {
				if err != nil || !bytes.Equal(doc, docs[i]) {
					t.Errorf("%s: record %d, which needs %d definitions: %x, %v", what, i, needed, doc, err)
				}
				continue
			}
			if failed++; !errors.Is(err, spoiled.want) || len(doc) > 0 {
				t.Errorf("%s: record %d, which needs %d definitions: %x, %v", what, i, needed, doc, err)
			}
		}
		if failed == 0 || failed == len(docs) {
			t.Errorf("%s: %d records of %d need the part", what, failed, len(docs))
		}
	}
}
