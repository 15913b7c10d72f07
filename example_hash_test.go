package pando_test

import (
	"errors"
	"fmt"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// A keyspace whose pairs are asked for by key only is a hash table.
func ExampleDB_Keyspace_hash() {
	db := openIn(memfs.New())
	defer db.Close()

	sessions, err := db.Keyspace("sessions", &pando.KeyspaceOptions{Layout: pando.Hash})
	must(err)
	for _, user := range []string{"ann", "bob", "eve"} {
		must(sessions.Put([]byte("session of "+user), []byte(user)))
	}
	value, err := sessions.Get([]byte("session of bob"))
	must(err)
	fmt.Printf("%s\n", value)

	n, err := sessions.Count(nil, nil) // all of it can be counted, walked over and deleted
	must(err)
	fmt.Println(n)

	_, err = sessions.Count([]byte("session of b"), nil) // a part of it cannot
	fmt.Println(errors.Is(err, pando.ErrNoOrder))
	fmt.Println(err)
	// Output:
	// bob
	// 3
	// true
	// count in a range of keyspace "sessions", whose layout is hash: layout keeps no order of keys
}
