package codec

import (
	"bytes"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// TestRoom decodes into buffers with any room to spare: fields that are stored without a look at each byte, and those for which there is
// no room for that, are the same.
func TestRoom(t *testing.T) {
	docs := append(append(flights(40), packages(40)...), users(40)...)
	for i := range 40 {
		tags := bson.A{}
		for k := range i % 13 {
			tags = append(tags, []string{"", "a", "of twenty-nine bytes, no more", "of more bytes than are copied at once"}[(i+k)%4])
		}
		docs = append(docs, document(bson.D{
			{Key: "_id", Value: int64(i)}, {Key: "tags", Value: tags}, {Key: "none", Value: bson.A{}},
			{Key: "email", Value: fmt.Sprintf("a name as long as%d@example.com", i*i*i*i*i*i)}, {Key: "invoice", Value: fmt.Sprintf("INV-%07d", i)},
			{Key: "text", Value: fmt.Sprint(bytes.Repeat([]byte{'x'}, i%50))}, {Key: "last", Value: fmt.Sprintf("%d", i)},
		}))
	}
	c, err := New(Template, newMemory())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for _, doc := range docs {
			if _, err := c.Encode(nil, doc); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, doc := range docs {
		record, err := c.Encode(nil, doc)
		if err != nil {
			t.Fatal(err)
		}
		for room := range len(doc) + 2*quickRoom {
			sameIn(t, c, record, doc, room)
		}
	}
}

// sameIn decodes a record behind other bytes, into a buffer with room for so many more.
func sameIn(t *testing.T, c *Codec, record []byte, doc bsoncore.Document, room int) {
	t.Helper()
	got, err := c.Decode(append(make([]byte, 0, 5+room), "front"...), record)
	if err != nil || !bytes.Equal(got[5:], doc) {
		t.Fatalf("with room for %d bytes: %v, %v, want %v", room, bsoncore.Document(got[5:]), err, doc)
	}
}
