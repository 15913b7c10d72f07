package codec

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"
)

func open(tb testing.TB, f Format, t Templates) *Codec {
	tb.Helper()
	c, err := New(f, t)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// same fails unless a record of doc comes back with the same bytes from each codec.
func same(tb rapid.TB, record []byte, doc bsoncore.Document, codecs ...*Codec) {
	tb.Helper()
	for _, c := range codecs {
		back, err := c.Decode([]byte("before"), record)
		if err != nil {
			tb.Fatalf("decode %x of %x: %v", record, []byte(doc), err)
		}
		if !bytes.Equal(back, append([]byte("before"), doc...)) {
			tb.Fatalf("record %x\ngives %x\nnot   %x", record, back[6:], []byte(doc))
		}
		v := c.NewView()
		if err := v.Reset(record); err != nil {
			tb.Fatal(err)
		}
		if back, err = v.Document(back[:6]); err != nil || !bytes.Equal(back[6:], doc) {
			tb.Fatalf("the view of %x gives %x\nnot %x: %v", record, back[6:], []byte(doc), err)
		}
	}
}

// TestDocumentsComeBack: any documents, of shapes that come again, in any format, from the codec that encoded them and from
// one that was opened later.
func TestDocumentsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom([]Format{Template, Template, Template, BSON, JSON}).Draw(t, "format")
		store := newMemory()
		c, err := New(f, store)
		if err != nil {
			t.Fatal(err)
		}
		s := drawShape(t, 3)
		var docs []bsoncore.Document
		var records [][]byte
		for i := range 5 {
			doc := s.draw(t)
			if i > 2 && rapid.Bool().Draw(t, "again") {
				doc = docs[0]
			}
			record, err := c.Encode([]byte("front"), doc)
			if err != nil {
				t.Fatal(err)
			}
			docs, records = append(docs, doc), append(records, record[5:])
		}
		later, err := New(f, store.clone())
		if err != nil {
			t.Fatal(err)
		}
		for i, doc := range docs {
			same(t, records[i], doc, c, later)
		}
	})
}

// TestViewIsLookup: each field of a record is what it is in the document.
func TestViewIsLookup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := New(rapid.SampledFrom([]Format{Template, Template, BSON, JSON}).Draw(t, "format"), newMemory())
		if err != nil {
			t.Fatal(err)
		}
		s, v := drawShape(t, 2), c.NewView()
		for range 4 {
			doc := s.draw(t)
			record, err := c.Encode(nil, doc)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Reset(record); err != nil {
				t.Fatal(err)
			}
			names := append([]string{"no such field"}, s.names...)
			var values []bsoncore.Value
			for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 12).Draw(t, "names") {
				got, ok := v.Lookup(name)
				want, has := lookupRaw(doc[4:], name)
				if ok != has || !got.Equal(want) {
					t.Fatalf("field %q of %v: %v %v, want %v %v", name, doc, got, ok, want, has)
				}
				values = append(values, got, want)
			}
			for i := 0; i < len(values); i += 2 {
				if !values[i].Equal(values[i+1]) {
					t.Fatalf("a value has changed before Reset: %v, it was %v", values[i], values[i+1])
				}
			}
		}
	})
}

func TestPlainLookupIsThatOfTheDriver(t *testing.T) {
	for _, doc := range packages(50) {
		for _, name := range []string{"_id", "version", "bytes", "depends", "summary", "source", ""} {
			got, ok := lookupRaw(doc[4:], name)
			want, err := doc.LookupErr(name)
			if ok != (err == nil) || !got.Equal(want) {
				t.Fatalf("%q: %v, want %v", name, got, want)
			}
		}
	}
}

// TestManyShapes: a collection in which no two documents are alike, and one whose shapes all come again.
func TestManyShapes(t *testing.T) {
	const shapes = 100_000
	store := newMemory()
	c := open(t, Template, store)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var dst []byte
	for again := range 2 {
		for i := range shapes {
			doc := document(bson.D{{Key: fmt.Sprintf("field%d", i), Value: int32(i)}, {Key: "text", Value: fmt.Sprintf("text %d", i%5000)}})
			repeats := 1 + again // side by side in the second round, so that they are remembered
			for range repeats {
				var err error
				if dst, err = c.Encode(dst[:0], doc); err != nil {
					t.Fatal(err)
				}
			}
			if i%1000 == 0 {
				same(t, dst, doc, c)
			}
		}
		if templates, _ := store.templates(); again == 0 && templates > 100 {
			t.Errorf("%d templates of shapes that came once", templates)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	templates, parts := store.templates()
	if templates != MaxTemplates || parts > 200 {
		t.Errorf("%d templates, want the most, %d; %d parts of dictionaries", templates, MaxTemplates, parts)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("the codec holds %d bytes", grown)
	}
	runtime.KeepAlive(c)
}

// TestUniqueStringsStayOut: what never comes again fills no dictionary.
func TestUniqueStringsStayOut(t *testing.T) {
	store := newMemory()
	c := open(t, Template, store)
	for i := range 20_000 {
		if _, err := c.Encode(nil, document(bson.D{{Key: "mail", Value: fmt.Sprintf("user%d@host%d", i, i)}})); err != nil {
			t.Fatal(err)
		}
	}
	if _, parts := store.templates(); parts > 0 {
		t.Errorf("%d parts", parts)
	}
}

// TestPatterns: strings that differ in a number only are told by it, if they come back by that.
func TestPatterns(t *testing.T) {
	for _, format := range []string{"user%d@example.com", "INV-%06d", "%d", "%09d", "x%d", "order %d of ours"} {
		store := newMemory()
		c := open(t, Template, store)
		for _, n := range []int64{1, 2, 3, 0, 9, 10, 255, 256, 65535, 65536, 99999, 100000, 1234567, 123456789, 999999999999999999, 1000000000000000000} {
			doc := document(bson.D{{Key: "s", Value: fmt.Sprintf(format, n)}})
			record, err := c.Encode(nil, doc)
			if err != nil {
				t.Fatal(err)
			}
			same(t, record, doc, c, open(t, Template, store.clone()))
			if n == 123456789 && len(record) != 7 && !strings.Contains(format, "%0") {
				t.Errorf("%q: a record of %d bytes: %x", fmt.Sprintf(format, n), len(record), record)
			}
		}
	}
}

func TestDictionaryIsFull(t *testing.T) {
	store := newMemory()
	c := open(t, Template, store)
	var records [][]byte
	var docs []bsoncore.Document
	for i := range MaxEntries + 500 {
		docs = append(docs, document(bson.D{{Key: "s", Value: fmt.Sprintf("string %d", i)}}))
		for again := range 3 {
			record, err := c.Encode(nil, docs[i])
			if err != nil {
				t.Fatal(err)
			}
			if again == 2 {
				records = append(records, record)
			}
		}
	}
	if n := c.columns["s"].state.Load().count(); n > MaxEntries || n < MaxEntries*7/8 {
		t.Errorf("%d entries", n)
	}
	later := open(t, Template, store.clone())
	for i := range docs {
		same(t, records[i], docs[i], c, later)
	}
}

// TestDeepDocuments: nested deeper than a template flattens, and deeper than arrays are packed.
func TestDeepDocuments(t *testing.T) {
	for _, depth := range []int{maxFlattened - 1, maxFlattened, maxFlattened + 1, 100, MaxNesting, MaxNesting + 2, 300} {
		for _, step := range []func(any) any{
			func(v any) any { return bson.D{{Key: "d", Value: v}, {Key: "n", Value: int32(1)}} },
			func(v any) any { return bson.A{v} },
			func(v any) any { return bson.A{bson.D{{Key: "a", Value: v}}} },
		} {
			var v any = "deep"
			for range depth {
				v = step(v)
			}
			c, doc := open(t, Template, newMemory()), document(bson.D{{Key: "top", Value: v}})
			for range 3 {
				record, err := c.Encode(nil, doc)
				if err != nil {
					t.Fatal(err)
				}
				same(t, record, doc, c)
			}
		}
	}
}

func TestWideShapesHaveNoTemplate(t *testing.T) {
	d := bson.D{}
	for i := range 2000 {
		d = append(d, bson.E{Key: fmt.Sprintf("quite a long name %d", i), Value: int32(i)})
	}
	store := newMemory()
	c, doc := open(t, Template, store), document(d)
	for range 3 {
		record, err := c.Encode(nil, doc)
		if err != nil {
			t.Fatal(err)
		}
		same(t, record, doc, c)
	}
	if n, _ := store.templates(); n != 0 {
		t.Errorf("%d templates", n)
	}
}

// TestFullStore: what there is no room for documents do without, until there is some.
func TestFullStore(t *testing.T) {
	doc := document(bson.D{{Key: "a", Value: int32(1)}, {Key: "s", Value: "again"}})
	store := newMemory()
	c := open(t, Template, store)
	store.full = true
	var first, last []byte
	for i := range 10 {
		record, err := c.Encode(nil, doc)
		if err != nil {
			t.Fatal(err)
		}
		same(t, record, doc, c, open(t, Template, store.clone()))
		switch i {
		case 0:
			first = record
		case 4:
			store.full = false
		}
		last = record
	}
	if templates, parts := store.templates(); templates != 1 || parts == 0 || len(last) >= len(first) {
		t.Errorf("%d templates, %d parts of dictionaries, %d bytes after %d", templates, parts, len(last), len(first))
	}
}

// TestFailedStore: nothing refers to what the store did not take.
func TestFailedStore(t *testing.T) {
	doc := document(bson.D{{Key: "a", Value: int32(1)}, {Key: "s", Value: "again"}})
	store := newMemory()
	c := open(t, Template, store)
	if _, err := c.Encode(nil, doc); err != nil {
		t.Fatal(err)
	}
	for _, stage := range []string{"template", "part"} {
		store.left = 0
		var err error
		for range 3 {
			if _, err = c.Encode(nil, doc); err != nil {
				break
			}
		}
		if !errors.Is(err, errStore) || !strings.Contains(err.Error(), stage) {
			t.Fatalf("%s: %v", stage, err)
		}
		store.left = 1
		if _, err := c.Encode(nil, doc); err != nil {
			t.Fatal(err)
		}
	}
	store.left = -1
	for range 3 {
		record, err := c.Encode(nil, doc)
		if err != nil {
			t.Fatal(err)
		}
		same(t, record, doc, c, open(t, Template, store.clone()))
	}
}

// TestConcurrentUse: many encode and decode while templates and dictionaries come into being.
func TestConcurrentUse(t *testing.T) {
	store := newMemory()
	c := open(t, Template, store)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			docs := packages(300)
			var record []byte
			for i := range docs {
				doc, err := docs[(i*7+w*31)%len(docs)], error(nil)
				if record, err = c.Encode(record[:0], doc); err != nil {
					t.Error(err)
					return
				}
				back, err := c.Decode(nil, record)
				if err != nil || !bytes.Equal(back, doc) {
					t.Errorf("record %x: %v", record, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n, _ := store.templates(); n != 2 {
		t.Errorf("%d templates, want one for each shape", n)
	}
}

// TestNothingIsAllocated once templates and dictionaries have been learnt.
func TestNothingIsAllocated(t *testing.T) {
	docs := flights(3000)
	for i := range docs {
		if i%4 < 2 { // two shapes, each twice in turn: a shape is sure to be remembered until the next document only
			continue
		}
		docs[i] = document(append(bson.D{{Key: "_id", Value: int32(i)}}, bson.E{Key: "dest", Value: "IAH"}, bson.E{Key: "list", Value: bson.A{bson.D{{Key: "k", Value: int32(i)}}, "x", 2.5}}))
	}
	c, records := encoded(t, docs)
	var record, doc []byte
	v, i := c.NewView(), 0
	names := []string{"dest", "distance", "time_hour", "tailnum"}
	step := func() {
		record, _ = c.Encode(record[:0], docs[i])
		doc, _ = c.Decode(doc[:0], records[i])
		_ = v.Reset(records[i])
		for _, name := range names {
			v.Lookup(name)
		}
		i++
	}
	step()
	if n := testing.AllocsPerRun(len(docs)-100, step); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestUnknownFormat(t *testing.T) {
	if _, err := New(JSON+1, nil); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

// lookupRaw returns the first field of that name among elements.
func lookupRaw(elements []byte, name string) (bsoncore.Value, bool) {
	for pos := 0; ; {
		e, ok := readElement(elements, pos)
		if !ok {
			return bsoncore.Value{}, false
		}
		if string(elements[pos+1:e.value-1]) == name {
			return bsoncore.Value{Type: bsoncore.Type(e.kind), Data: elements[e.value:e.next]}, true
		}
		pos = e.next
	}
}
