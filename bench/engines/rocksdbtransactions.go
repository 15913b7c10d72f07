//go:build rocksdb

package engines

/*
#include <rocksdb/c.h>

static const rocksdb_snapshot_t *pr_begin(rocksdb_t *db, rocksdb_readoptions_t *ro) {
	const rocksdb_snapshot_t *snap = rocksdb_create_snapshot(db);
	rocksdb_readoptions_set_snapshot(ro, snap);
	return snap;
}

static char *pr_commit(rocksdb_t *db, rocksdb_writeoptions_t *wo, rocksdb_writebatch_wi_t *batch) {
	char *err = NULL;
	rocksdb_write_writebatch_wi(db, wo, batch, &err);
	return err;
}
*/
import "C"

import "github.com/pandodb/pando/bench/engine"

// RocksDB has transactions for databases that are opened as one of two other kinds, which lock or note each key. An update that has the
// writing to itself needs neither: it is what those transactions are made of, a batch with an index, under a lock of the program.

// rocksdbViews is how many read options are kept for further views.
const rocksdbViews = 64

// View is a snapshot that is released at the end, with read options that are kept.
func (s *rocksdbStore) View(fn func(engine.Reader) error) error {
	var ro *C.rocksdb_readoptions_t
	select {
	case ro = <-s.views:
	default:
		ro = C.rocksdb_readoptions_create()
	}
	snap := C.pr_begin(s.db, ro)
	defer func() {
		C.rocksdb_release_snapshot(s.db, snap)
		select {
		case s.views <- ro:
		default:
			C.rocksdb_readoptions_destroy(ro)
		}
	}()
	return fn(rocksdbReader{of: s.db, ro: ro, chunks: s.chunks})
}

// Update is a batch with an index, which is used again: updates take turns. What is written outside of them takes no lock, as no program
// of the benchmark does both at once.
func (s *rocksdbStore) Update(fn func(engine.Transaction) error) error {
	s.turns.Lock()
	defer s.turns.Unlock()
	defer C.rocksdb_writebatch_wi_clear(s.update)
	t := rocksdbTransaction{rocksdbReader{of: s.db, ro: s.ro, batch: s.update, chunks: s.chunks}}
	if err := fn(t); err != nil {
		return err
	}
	return rocksdbError("commit", C.pr_commit(s.db, s.write, s.update))
}

// closeTransactions frees what is kept for them.
func (s *rocksdbStore) closeTransactions() {
	close(s.views)
	for ro := range s.views {
		C.rocksdb_readoptions_destroy(ro)
	}
	C.rocksdb_writebatch_wi_destroy(s.update)
}

type rocksdbTransaction struct{ rocksdbReader }

// Put copies both into the batch.
func (t rocksdbTransaction) Put(key, value []byte) error {
	C.rocksdb_writebatch_wi_put(t.batch, chars(key), C.size_t(len(key)), chars(value), C.size_t(len(value)))
	return nil
}

// Delete puts a tombstone into the batch.
func (t rocksdbTransaction) Delete(key []byte) error {
	C.rocksdb_writebatch_wi_delete(t.batch, chars(key), C.size_t(len(key)))
	return nil
}
