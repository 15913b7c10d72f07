package godriver

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestDriver is what applications do most, each part in a collection of its own.
func TestDriver(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "db"), "127.0.0.1:0")
	client := s.connect()
	for name, run := range map[string]func(*testing.T, *mongo.Collection){
		"crud": testCRUD, "indexes": testIndexes, "transactions": testTransactions, "changes": testChanges, "gridfs": testGridFS,
	} {
		t.Run(name, func(t *testing.T) { run(t, client.Database("godriver").Collection(name)) })
	}
}

func testCRUD(t *testing.T, c *mongo.Collection) {
	ctx := t.Context()
	var docs []any
	for i := range 100 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i % 10}})
	}
	_, err := c.InsertMany(ctx, docs)
	check(t, err)
	n, err := c.CountDocuments(ctx, bson.M{"_id": bson.M{"$gte": 50}})
	check(t, err)
	want(t, "documents from 50", n, 50)
	updated, err := c.UpdateMany(ctx, bson.M{"n": 3}, bson.M{"$inc": bson.M{"n": 100}})
	check(t, err)
	want(t, "changed documents", updated.ModifiedCount, 10)
	deleted, err := c.DeleteMany(ctx, bson.M{"n": 103})
	check(t, err)
	want(t, "deleted documents", deleted.DeletedCount, 10)
	cursor, err := c.Find(ctx, bson.M{}, options.Find().SetBatchSize(7).SetSort(bson.M{"_id": -1}))
	check(t, err)
	var found []struct {
		ID int `bson:"_id"`
	}
	check(t, cursor.All(ctx, &found))
	want(t, "documents in batches of 7", len(found), 90)
	want(t, "the last of them", found[0].ID, 99)
	upsert, err := c.UpdateOne(ctx, bson.M{"_id": "new"}, bson.M{"$set": bson.M{"a": 1}}, options.UpdateOne().SetUpsert(true))
	check(t, err)
	want(t, "the upserted id", upsert.UpsertedID, any("new"))
}

func testIndexes(t *testing.T, c *mongo.Collection) {
	ctx := t.Context()
	name, err := c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "key", Value: 1}}, Options: options.Index().SetUnique(true)})
	check(t, err)
	want(t, "the index", name, "key_1")
	_, err = c.InsertOne(ctx, bson.M{"_id": "a", "key": 1})
	check(t, err)
	if _, err = c.InsertOne(ctx, bson.M{"_id": "b", "key": 1}); !mongo.IsDuplicateKeyError(err) {
		t.Fatalf("a second document with the key: %v", err)
	}
	specs, err := c.Indexes().ListSpecifications(ctx)
	check(t, err)
	want(t, "indexes", len(specs), 2)
	check(t, c.Indexes().DropOne(ctx, "key_1"))
}

func testTransactions(t *testing.T, c *mongo.Collection) {
	ctx := t.Context()
	session, err := c.Database().Client().StartSession()
	check(t, err)
	defer session.EndSession(ctx)
	given := errors.New("given up")
	_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		if _, err := c.InsertOne(ctx, bson.M{"_id": "aborted"}); err != nil {
			return nil, err
		}
		return nil, given
	})
	want(t, "the error of a transaction that is given up", err, given)
	_, err = session.WithTransaction(ctx, func(tx context.Context) (any, error) {
		if _, err := c.InsertOne(tx, bson.M{"_id": "kept"}); err != nil {
			return nil, err
		}
		n, err := c.CountDocuments(ctx, bson.M{"_id": "kept"})
		want(t, "documents that others see before the commit", n, 0)
		return nil, err
	})
	check(t, err)
	for id, there := range map[string]int64{"aborted": 0, "kept": 1} {
		n, err := c.CountDocuments(ctx, bson.M{"_id": id})
		check(t, err)
		want(t, "documents "+id, n, there)
	}
}

// change is the part of an event of a change stream that the tests look at.
type change struct {
	Operation string `bson:"operationType"`
	Key       struct {
		ID int `bson:"_id"`
	} `bson:"documentKey"`
}

func testChanges(t *testing.T, c *mongo.Collection) {
	ctx := t.Context()
	stream, err := c.Watch(ctx, mongo.Pipeline{})
	check(t, err)
	for i := range 5 {
		_, err := c.InsertOne(ctx, bson.M{"_id": i})
		check(t, err)
	}
	next := func(id int) {
		t.Helper()
		var got change
		if !stream.Next(ctx) {
			t.Fatalf("no event for %d: %v", id, stream.Err())
		}
		check(t, stream.Decode(&got))
		want(t, "the change", got, change{Operation: "insert", Key: struct {
			ID int `bson:"_id"`
		}{id}})
	}
	next(0)
	next(1)
	token := stream.ResumeToken()
	check(t, stream.Close(ctx))
	stream, err = c.Watch(ctx, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(token))
	check(t, err)
	for i := 2; i < 5; i++ {
		next(i)
	}
	check(t, stream.Close(ctx))
}

func testGridFS(t *testing.T, c *mongo.Collection) {
	ctx := t.Context()
	bucket := c.Database().GridFSBucket(options.GridFSBucket().SetChunkSizeBytes(1000))
	sent := bytes.Repeat([]byte("pando"), 25_000)
	_, err := bucket.UploadFromStream(ctx, "file", bytes.NewReader(sent))
	check(t, err)
	var got bytes.Buffer
	_, err = bucket.DownloadToStreamByName(ctx, "file", &got)
	check(t, err)
	if !bytes.Equal(got.Bytes(), sent) {
		t.Fatalf("%d bytes came back that are not the %d that went in", got.Len(), len(sent))
	}
}
