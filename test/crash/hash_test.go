package crash

import (
	"errors"
	"fmt"

	"github.com/pandodb/pando"
)

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

// read returns everything.
func read(db *pando.DB) (state, error) {
	s := state{}
	infos, err := db.Keyspaces()
	for _, info := range infos {
		if info.Name != hashName && info.Name != db.Default().Name() {
			continue
		}
		ks, e := db.Keyspace(info.Name, nil)
		if e != nil {
			return nil, e
		}
		before := len(s)
		for k, v := range ks.Range(nil, nil) {
			s[string(k)] = string(v)
		}
		if err := ks.Err(); err != nil {
			return nil, err
		}
		n, e := ks.Count(nil, nil)
		if e == nil && n != int64(len(s)-before) {
			e = fmt.Errorf("count of %s says %d, there are %d", info.Name, n, len(s)-before)
		}
		err = errors.Join(err, e)
	}
	return s, err
}
