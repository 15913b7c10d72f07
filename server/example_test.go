package server_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/server"
)

// A program that keeps documents, and lets MongoDB's tools look at them while it runs.
func ExampleStart() {
	dir, err := os.MkdirTemp("", "pando-example-")
	if err != nil {
		log.Fatal(err)
	}
	s, err := server.Start(server.Config{Dir: dir, Addr: "127.0.0.1:0"}, nil) // a free port: Addrs tells which
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := errors.Join(s.Close(), os.RemoveAll(dir)); err != nil {
			log.Fatal(err)
		}
	}()
	trees := s.Store().Database("park").Lookup("trees") // what drivers see as park.trees
	if _, err := trees.Insert(context.Background(), bson.D{{Key: "name", Value: "aspen"}}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(s.Addrs()), "address")
	// Output: 1 address
}
