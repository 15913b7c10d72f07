package crash

import "github.com/pandodb/pando"

// hashName is a keyspace that is a hash table: a part of the keys of a workload lies there, and the others in the default keyspace.
const hashName = "hash"

func hashed(key string) bool { return key[len(key)-1]%3 == 0 }

// on calls fn with the keyspace that a key lies in.
func on(db *pando.DB, key string, fn func(*pando.Keyspace) error) error {
	if !hashed(key) {
		return fn(db.Default())
	}
	ks, err := db.Keyspace(hashName, &pando.KeyspaceOptions{Layout: pando.Hash})
	if err != nil {
		return err
	}
	return fn(ks)
}

// deleteHashed empties the hash table.
func deleteHashed(db *pando.DB) error {
	return on(db, "0", func(ks *pando.Keyspace) error { return ks.DeleteRange(nil, nil) })
}
