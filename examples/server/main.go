// Command server is a first program with MongoDB's Go driver against `pando serve`: it writes documents, asks for some of them, and
// changes two collections in one transaction. Without an argument it talks to the server that the README starts, on localhost:27017.
// It leaves nothing behind.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func main() {
	uri := "mongodb://localhost:27017/"
	if len(os.Args) > 1 {
		uri = os.Args[1]
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := tour(ctx, os.Stdout, uri); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tour(ctx context.Context, out io.Writer, uri string) (err error) {
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return err
	}
	defer func() {
		if e := client.Disconnect(ctx); err == nil {
			err = e
		}
	}()
	db := client.Database("first_program")
	if err := db.Drop(ctx); err != nil {
		return fmt.Errorf("drop what an earlier run has left: %w", err)
	}
	trees, felled := db.Collection("trees"), db.Collection("felled")
	if _, err := trees.InsertMany(ctx, []any{
		bson.D{{Key: "_id", Value: "aspen"}, {Key: "genus", Value: "Populus"}, {Key: "metres", Value: 25}},
		bson.D{{Key: "_id", Value: "poplar"}, {Key: "genus", Value: "Populus"}, {Key: "metres", Value: 30}},
		bson.D{{Key: "_id", Value: "oak"}, {Key: "genus", Value: "Quercus"}, {Key: "metres", Value: 40}},
	}); err != nil {
		return err
	}
	if _, err := trees.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "genus", Value: 1}}}); err != nil {
		return err
	}
	if err := list(ctx, out, trees, bson.D{{Key: "genus", Value: "Populus"}}); err != nil {
		return err
	}
	if err := move(ctx, client, trees, felled, "oak"); err != nil {
		return err
	}
	left, err := trees.CountDocuments(ctx, bson.D{})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d trees are left\n", left)
	return db.Drop(ctx)
}

// list prints the trees that a filter finds, the tallest first.
func list(ctx context.Context, out io.Writer, trees *mongo.Collection, filter bson.D) error {
	cursor, err := trees.Find(ctx, filter, options.Find().SetSort(bson.D{{Key: "metres", Value: -1}}))
	if err != nil {
		return err
	}
	var found []struct {
		Name   string `bson:"_id"`
		Metres int
	}
	if err := cursor.All(ctx, &found); err != nil {
		return err
	}
	for _, t := range found {
		fmt.Fprintf(out, "%s: %d m\n", t.Name, t.Metres)
	}
	return nil
}

// move takes a document from one collection to another: both changes happen, or neither.
func move(ctx context.Context, client *mongo.Client, from, to *mongo.Collection, id string) error {
	session, err := client.StartSession()
	if err != nil {
		return err
	}
	defer session.EndSession(ctx)
	_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		var doc bson.Raw
		if err := from.FindOneAndDelete(ctx, bson.D{{Key: "_id", Value: id}}).Decode(&doc); err != nil {
			return nil, err
		}
		return to.InsertOne(ctx, doc)
	})
	return err
}
