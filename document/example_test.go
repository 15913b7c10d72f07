package document_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
)

// openExample opens a store in a directory that done removes again.
func openExample() (s *document.Store, done func()) {
	dir, err := os.MkdirTemp("", "pando-example-")
	if err != nil {
		log.Fatal(err)
	}
	if s, err = document.Open(dir, nil); err != nil {
		log.Fatal(err)
	}
	return s, func() {
		if err := errors.Join(s.Close(), os.RemoveAll(dir)); err != nil {
			log.Fatal(err)
		}
	}
}

// trees returns a collection with three documents.
func trees(s *document.Store) *document.Collection {
	c, err := s.Collection(context.Background(), "trees", nil)
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.InsertMany(context.Background(), []any{
		bson.D{{Key: "_id", Value: 1}, {Key: "name", Value: "aspen"}, {Key: "height", Value: 25}, {Key: "soil", Value: bson.A{"sand", "loam"}}},
		document.JSON(`{"_id": 2, "name": "birch", "height": 20, "soil": ["sand"]}`),
		bson.M{"_id": 3, "name": "cedar", "height": 40, "soil": bson.A{"clay"}},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	return c
}

// The program of docs/documents.md, apart from the name of the directory.
func Example() {
	parent, err := os.MkdirTemp("", "pando-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "flights.pando")

	s, err := document.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	ctx := context.Background()
	c, err := s.Collection(ctx, "flights", nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.Insert(ctx, bson.D{{Key: "carrier", Value: "UA"}, {Key: "delay", Value: 12}}); err != nil {
		log.Fatal(err)
	}
	for doc, err := range c.Find(ctx, document.JSON(`{"delay": {"$gt": 10}}`), nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(doc.Lookup("carrier").StringValue(), doc.Lookup("delay").AsInt64())
	}
	// Output: UA 12
}

func ExampleCollection_Find() {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	options := &document.FindOptions{Sort: document.JSON(`{"height": -1}`), Limit: 2, Projection: document.JSON(`{"name": 1, "_id": 0}`)}
	for doc, err := range trees(s).Find(ctx, nil, options) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(doc)
	}
	// Output:
	// {"name": "cedar"}
	// {"name": "aspen"}
}

func ExampleCollection_Get() {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	c := trees(s)
	doc, err := c.Get(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(doc.Lookup("name").StringValue())
	_, err = c.Get(ctx, 9)
	fmt.Println(errors.Is(err, document.ErrNotFound))
	// Output:
	// birch
	// true
}

func ExampleCollection_Update() {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	c := trees(s)
	result, err := c.Update(ctx, document.JSON(`{"soil": "sand"}`), document.JSON(`{"$inc": {"height": 1}, "$push": {"soil": "peat"}}`),
		&document.UpdateOptions{Many: true})
	if err != nil {
		log.Fatal(err)
	}
	doc, err := c.Get(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Matched, result.Modified, doc.Lookup("height").AsInt64(), doc.Lookup("soil"))
	// Output: 2 2 21 ["sand","peat"]
}

func ExampleCollection_Aggregate() {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	pipeline := document.JSON(`[{"$unwind": "$soil"}, {"$group": {"_id": "$soil", "highest": {"$max": "$height"}}}, {"$sort": {"_id": 1}}]`)
	for doc, err := range trees(s).Aggregate(ctx, pipeline, nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(doc.Lookup("_id").StringValue(), doc.Lookup("highest").AsInt64())
	}
	// Output:
	// clay 40
	// loam 25
	// sand 25
}

func ExampleCollection_CreateIndex() {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	c := trees(s)
	name, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "name", Value: 1}}, Unique: true})
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Insert(ctx, bson.D{{Key: "name", Value: "aspen"}})
	fmt.Println(name, errors.Is(err, document.DuplicateKey))
	// Output: name_1 true
}

func ExampleCollection_Explain() {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	c := trees(s)
	if _, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"soil": 1}`)}); err != nil {
		log.Fatal(err)
	}
	plan, err := c.Explain(ctx, document.JSON(`{"soil": "clay"}`), &document.FindOptions{Verbosity: "executionStats"})
	if err != nil {
		log.Fatal(err)
	}
	winning := plan.Lookup("queryPlanner", "winningPlan").Document()
	fmt.Println(winning.Lookup("stage").StringValue(), winning.Lookup("inputStage", "indexName").StringValue(),
		plan.Lookup("executionStats", "totalDocsExamined").AsInt64())
	// Output: FETCH soil_1 1
}

func ExampleStore_Transaction() {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	from, to := trees(s), s.Database("test").Lookup("felled")
	err := s.Transaction(ctx, func(tx *document.Tx) error {
		doc, err := tx.In(from).Get(ctx, 3)
		if err != nil {
			return err
		}
		if _, err := tx.In(to).Insert(ctx, doc); err != nil {
			return err
		}
		_, err = tx.In(from).Delete(ctx, document.JSON(`{"_id": 3}`), nil)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	standing, err := from.Count(ctx, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	felled, err := to.Count(ctx, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(standing, felled)
	// Output: 2 1
}

func ExampleCollection_OpenWatch() {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	c := trees(s)
	stream, err := c.OpenWatch(ctx, document.JSON(`[{"$match": {"operationType": "delete"}}]`), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()
	if _, err := c.Update(ctx, document.JSON(`{"_id": 1}`), document.JSON(`{"$set": {"height": 26}}`), nil); err != nil {
		log.Fatal(err)
	}
	if _, err := c.Delete(ctx, document.JSON(`{"_id": 1}`), nil); err != nil {
		log.Fatal(err)
	}
	if stream.Next(ctx) {
		fmt.Println(stream.Current().Lookup("operationType").StringValue(), stream.Current().Lookup("documentKey"))
	}
	if err := stream.Err(); err != nil {
		log.Fatal(err)
	}
	// Output: delete {"_id": {"$numberInt":"1"}}
}

// Tree is a document as a Go struct.
type Tree struct {
	ID     int      `bson:"_id"`
	Name   string   `bson:"name"`
	Height int      `bson:"height"`
	Soil   []string `bson:"soil,omitempty"`
}

func ExampleTyped() {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	c := document.Typed[Tree](trees(s))
	if _, err := c.Insert(ctx, &Tree{ID: 4, Name: "douglas", Height: 60}); err != nil {
		log.Fatal(err)
	}
	for tree, err := range c.Find(ctx, document.JSON(`{"height": {"$gte": 40}}`), &document.FindOptions{Sort: document.JSON(`{"_id": 1}`)}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tree.Name, tree.Height, tree.Soil)
	}
	// Output:
	// cedar 40 [clay]
	// douglas 60 []
}

func ExampleCollectionOptions() {
	ctx := context.Background()
	s, done := openExample()
	defer done()
	c, err := s.Collection(ctx, "people", &document.CollectionOptions{
		Format:    document.BSON,
		Validator: document.JSON(`{"$jsonSchema": {"required": ["name"], "properties": {"age": {"bsonType": "int", "minimum": 0}}}}`),
	})
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Insert(ctx, document.JSON(`{"name": "Ada", "age": -1}`))
	fmt.Println(document.CodeOf(err) == document.DocumentValidationFailure)
	// Output: true
}
