package document_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
)

// With Unordered all documents are stored that can be, and the errors name the others.
func ExampleCollection_InsertMany() {
	s, done := openExample()
	defer done()
	n, err := trees(s).InsertMany(context.Background(), []any{
		bson.D{{Key: "_id", Value: 3}, {Key: "name", Value: "cypress"}},
		bson.D{{Key: "_id", Value: 4}, {Key: "name", Value: "elm"}},
	}, &document.InsertOptions{Unordered: true})
	fmt.Println(n, errors.Is(err, document.DuplicateKey))
	var failed document.WriteErrors
	if errors.As(err, &failed) {
		fmt.Println("document", failed[0].Index)
	}
	// Output:
	// 1 true
	// document 0
}

// A counter that several programs draw numbers from.
func ExampleCollection_FindAndModify() {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	counters := s.Database("app").Lookup("counters") // the first write makes it
	for range 2 {
		doc, _, err := counters.FindAndModify(ctx, document.JSON(`{"_id": "orders"}`), document.JSON(`{"$inc": {"next": 1}}`),
			&document.ModifyOptions{Upsert: true, New: true})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(doc.Lookup("next").AsInt64())
	}
	// Output:
	// 1
	// 2
}

func ExampleCollection_Delete() {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	c := trees(s)
	n, err := c.Delete(ctx, document.JSON(`{"soil": "sand"}`), &document.DeleteOptions{Many: true})
	if err != nil {
		log.Fatal(err)
	}
	left, err := c.Count(ctx, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, "deleted,", left, "left")
	// Output: 2 deleted, 1 left
}

// Sessions that nobody has used for half an hour are deleted: by the store once a minute, or now.
func ExampleStore_DeleteExpired() {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	sessions := s.Database("app").Lookup("sessions")
	after := int32(1800)
	if _, err := sessions.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"seen": 1}`), ExpireAfterSeconds: &after}); err != nil {
		log.Fatal(err)
	}
	if _, err := sessions.Insert(ctx, document.JSON(`{"_id": "a", "seen": {"$date": "2013-07-04T00:00:00Z"}}`)); err != nil {
		log.Fatal(err)
	}
	n, err := s.DeleteExpired(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n)
	// Output: 1
}

// Reads that belong together, of any number of collections, while others write.
func ExampleStore_Snapshot() {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	c := trees(s)
	before, err := s.Snapshot(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer before.Close()
	if _, err := c.Delete(ctx, nil, &document.DeleteOptions{Many: true}); err != nil {
		log.Fatal(err)
	}
	for _, seen := range []*document.Collection{before.In(c), c} {
		n, err := seen.Count(ctx, nil, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(n)
	}
	// Output:
	// 3
	// 0
}
