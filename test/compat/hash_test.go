package compat

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// hashRecords are more than one index page has, so that the table has grown once.
const hashRecords = 700

func hashKey(i int) string { return fmt.Sprintf("key %03d", i) }

// firstHashFormat is what writeHash leaves.
func firstHashFormat() content {
	c := content{"default": {"tree": "beside"}, "table": {}, "second": {}, "cleared": {"since": "it was cleared"}, "behind": {"log": "only"}}
	table := c["table"]
	for i := range hashRecords {
		table[hashKey(i)] = fmt.Sprint("value ", i)
	}
	for i := 0; i < hashRecords; i += 70 {
		table[hashKey(i)] = "changed by a delta"
	}
	for _, i := range []int{5, 6, 300, 301} { // two that have settled, and two that have not
		delete(table, hashKey(i))
	}
	table[hashKey(5)] = "back again"
	table[hashKey(7)] = "changed in the log"
	table["expires"], table["expires, in the log"] = "in 2200", "in 2200"
	for i := range 4 {
		table[fmt.Sprint("apart ", i)] = apart(i)
	}
	table["apart 1"], table["apart 2"] = apart(11), apart(12)
	delete(table, "apart 3")
	c["second"][""] = "the empty key"
	c["second"]["empty"] = ""
	c["second"]["long"] = long()
	return c
}

// writeHash is write for keyspaces that are hash tables: records of every kind in index pages and in deltas, records that were freed,
// values apart and in chunks, some of which were replaced, keys that expire and one that has, a dropped keyspace, and a log with commands
// of every kind that such a keyspace knows.
func writeHash(t *testing.T) *memfs.FS {
	fsys := memfs.New()
	var db *pando.DB
	session := func(fn func(table *pando.Keyspace)) {
		var err error
		db, err = pando.Open(dir, options(fsys))
		must(t, err)
		fn(hashKeyspace(t, db, "table"))
	}
	session(func(table *pando.Keyspace) {
		second, cleared, gone := hashKeyspace(t, db, "second"), hashKeyspace(t, db, "cleared"), hashKeyspace(t, db, "gone")
		must(t, db.Put([]byte("tree"), []byte("beside")))
		b := db.NewBatch()
		for i := range hashRecords {
			must(t, b.In(table).Put([]byte(hashKey(i)), fmt.Append(nil, "value ", i)))
		}
		for key, value := range firstHashFormat()["second"] {
			must(t, b.In(second).Put([]byte(key), []byte(value)))
		}
		for i := range 4 {
			must(t, b.In(table).Put(fmt.Append(nil, "apart ", i), []byte(apart(i))))
			must(t, b.In(cleared).Put(fmt.Append(nil, i), []byte("of what is cleared")))
		}
		must(t, b.In(gone).Put([]byte("key"), []byte("of a keyspace that is dropped")))
		must(t, db.Write(b))
		must(t, table.PutExpiring([]byte("expires"), []byte("in 2200"), endOfTime))
		must(t, table.PutExpiring([]byte("has expired"), []byte("in 2020"), time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)))
		must(t, db.Close())
	})
	session(func(table *pando.Keyspace) {
		for i := 0; i < hashRecords; i += 70 {
			must(t, table.Put([]byte(hashKey(i)), []byte("changed by a delta")))
		}
		must(t, table.Delete([]byte(hashKey(5))))
		must(t, table.Delete([]byte(hashKey(6))))
		must(t, table.Put([]byte("apart 1"), []byte(apart(11))))
		must(t, table.Delete([]byte("apart 3")))
		must(t, db.DropKeyspace("gone"))
		must(t, db.Checkpoint(context.Background()))
		must(t, db.Close())
	})
	var image *memfs.FS
	session(func(table *pando.Keyspace) {
		must(t, table.Put([]byte(hashKey(5)), []byte("back again")))
		must(t, table.Put([]byte(hashKey(7)), []byte("changed in the log")))
		must(t, table.Delete([]byte(hashKey(300))))
		must(t, table.Delete([]byte(hashKey(301))))
		must(t, table.Put([]byte("apart 2"), []byte(apart(12))))
		must(t, table.PutExpiring([]byte("expires, in the log"), []byte("in 2200"), endOfTime))
		cleared := hashKeyspace(t, db, "cleared")
		must(t, cleared.DeleteRange(nil, nil))
		must(t, cleared.Put([]byte("since"), []byte("it was cleared")))
		must(t, hashKeyspace(t, db, "behind").Put([]byte("log"), []byte("only")))
		image = fsys.KillImage()
		must(t, db.Close())
	})
	return image
}

func hashKeyspace(t *testing.T, db *pando.DB, name string) *pando.Keyspace {
	t.Helper()
	k, err := db.Keyspace(name, &pando.KeyspaceOptions{Layout: pando.Hash})
	must(t, err)
	return k
}

// The stored database has to have what it was stored for: all kinds of blobs of hash tables, in several segments, and a log that goes on
// where they end.
func TestStoredHashTablesHaveEveryKindOfBlob(t *testing.T) {
	fsys := load(t, "v1-hash")
	kinds, segments := blobKinds(t, fsys)
	for _, kind := range []segment.Kind{segment.KindInner, segment.KindPieces, segment.KindIndex, segment.KindIndexDelta, segment.KindValue, segment.KindValueIndex} {
		if kinds[kind] == 0 {
			t.Errorf("no blob of kind %d: %v", kind, kinds)
		}
	}
	if segments < 3 {
		t.Errorf("%d segments", segments)
	}
	o := options(fsys)
	o.ReadOnly = true
	db, err := pando.Open(dir, o)
	must(t, err)
	if m := db.Metrics(); m.LastSeq <= m.Settled {
		t.Errorf("all of %d commits have settled", m.LastSeq)
	}
	must(t, db.Close())
}

// blobKinds counts the blobs of each kind in the segments of a database.
func blobKinds(t *testing.T, fsys vfs.FS) (kinds map[segment.Kind]int, segments int) {
	t.Helper()
	surveyed, err := segment.Survey(fsys, dir)
	must(t, err)
	var table []segment.Info
	for _, s := range surveyed {
		must(t, s.Damage)
		table = append(table, s.Info)
	}
	store, err := segment.Open(segment.Options{FS: fsys, Dir: dir, Database: surveyed[0].Database, ReadOnly: true}, table, 0)
	must(t, err)
	kinds = map[segment.Kind]int{}
	for _, s := range surveyed {
		must(t, store.Scan(context.Background(), s.ID, func(_ segment.Pointer, h segment.Header, _ []byte) error {
			kinds[h.Kind]++
			return nil
		}, nil))
	}
	must(t, store.Close())
	return kinds, len(surveyed)
}
