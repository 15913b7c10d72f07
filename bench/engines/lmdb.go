//go:build lmdb

package engines

/*
#cgo LDFLAGS: -llmdb
#include <lmdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Each function does one whole operation, so that Go crosses into C once for it. Those of a transaction begin and end it for themselves.

static int pl_get(MDB_txn *txn, MDB_dbi dbi, int renew, const void *k, size_t kn, void *dst, size_t room, size_t *vn) {
	MDB_val key = {kn, (void *)k}, val;
	int rc = 0;
	if (renew && (rc = mdb_txn_renew(txn))) return rc;
	rc = mdb_get(txn, dbi, &key, &val);
	if (rc == 0) {
		*vn = val.mv_size;
		if (val.mv_size <= room) memcpy(dst, val.mv_data, val.mv_size);
	}
	if (renew) mdb_txn_reset(txn);
	return rc;
}

// pl_write commits operations packed as {u32 key length, u32 value length or ~0 for a delete, key, value}.
static int pl_write(MDB_env *env, MDB_dbi dbi, unsigned flags, const char *p, size_t n) {
	MDB_txn *txn;
	int rc = mdb_txn_begin(env, NULL, 0, &txn);
	if (rc) return rc;
	for (const char *end = p + n; p < end;) {
		uint32_t kn, vn;
		memcpy(&kn, p, 4);
		memcpy(&vn, p + 4, 4);
		p += 8;
		MDB_val key = {kn, (void *)p};
		p += kn;
		if (vn == ~0u) {
			rc = mdb_del(txn, dbi, &key, NULL);
			if (rc == MDB_NOTFOUND) rc = 0;
		} else {
			MDB_val val = {vn, (void *)p};
			rc = mdb_put(txn, dbi, &key, &val, flags);
			p += vn;
		}
		if (rc) { mdb_txn_abort(txn); return rc; }
	}
	return mdb_txn_commit(txn);
}

static int pl_txn_put(MDB_txn *txn, MDB_dbi dbi, const void *k, size_t kn, const void *v, size_t vn) {
	MDB_val key = {kn, (void *)k}, val = {vn, (void *)v};
	return mdb_put(txn, dbi, &key, &val, 0);
}

static int pl_txn_del(MDB_txn *txn, MDB_dbi dbi, const void *k, size_t kn) {
	MDB_val key = {kn, (void *)k};
	int rc = mdb_del(txn, dbi, &key, NULL);
	return rc == MDB_NOTFOUND ? 0 : rc;
}

static int pl_put(MDB_env *env, MDB_dbi dbi, const void *k, size_t kn, const void *v, size_t vn) {
	MDB_txn *txn;
	int rc = mdb_txn_begin(env, NULL, 0, &txn);
	if (rc) return rc;
	if ((rc = pl_txn_put(txn, dbi, k, kn, v, vn))) { mdb_txn_abort(txn); return rc; }
	return mdb_txn_commit(txn);
}

// pl_step fills up to max records from the cursor on. first is the operation that finds the first one.
static int pl_step(MDB_cursor *c, int first, int next, const void *k, size_t kn, int max, MDB_val *keys, MDB_val *vals, int *n) {
	MDB_val key = {kn, (void *)k}, val;
	int rc, reverse = next == MDB_PREV, op = first;
	*n = 0;
	while (*n < max) {
		rc = mdb_cursor_get(c, &key, &val, op);
		if (op == MDB_SET_RANGE && reverse) {
			if (rc == MDB_NOTFOUND) rc = mdb_cursor_get(c, &key, &val, MDB_LAST);
			else if (rc == 0 && (key.mv_size != kn || memcmp(key.mv_data, k, kn))) rc = mdb_cursor_get(c, &key, &val, MDB_PREV);
		}
		if (rc) return rc;
		keys[*n] = key;
		vals[*n] = val;
		(*n)++;
		op = next;
	}
	return 0;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"

	"github.com/pandodb/pando/bench/engine"
)

// lmdbDrivers: LMDB, a copy-on-write B+tree in one mapped file, in C.
//
// Options set: MDB_WRITEMAP, so that pages are changed in the map instead of copied and written; MDB_NOSYNC unless durable;
// MDB_NORDAHEAD, since keys are read in random order; MDB_NOTLS with read transactions that are kept and renewed, which is
// what makes its gets cheap; MDB_NOMEMINIT; MDB_APPEND where batches of keys come in order, which fills pages; a map of sixteen times the data. The budget means nothing to it: the page cache
// is its cache. Durable keeps the default way of writing (no WRITEMAP), which its author calls the safe one.
func lmdbDrivers() []engine.Driver {
	return []engine.Driver{{
		Name: "lmdb", Version: C.GoString(C.mdb_version(nil, nil, nil)), Kind: "copy-on-write B+tree, mapped; in C",
		Classes: map[engine.Class]string{
			engine.None:    "MDB_NOSYNC (it has nothing weaker)",
			engine.Relaxed: "MDB_NOSYNC and MDB_WRITEMAP: changes are in the shared mapping",
			engine.Durable: "default: fdatasync and a synced meta page per commit",
		},
		Settings: "WRITEMAP (not when durable), NOMEMINIT, NORDAHEAD, NOTLS with renewed readers, APPEND for batches in order, map of 16 times the data",
		Open:     openLMDB,
	}}
}

// lmdbReaders is how many goroutines may read at once.
const lmdbReaders = 256

type lmdbStore struct {
	env     *C.MDB_env
	dbi     C.MDB_dbi
	puts    C.uint          // flags of every put of a batch
	readers chan *C.MDB_txn // reset
	all     []*C.MDB_txn
	mu      sync.Mutex // over all
	buffers sync.Pool
}

func lmdbError(what string, rc C.int) error {
	if rc == 0 {
		return nil
	}
	return fmt.Errorf("lmdb: %s: %s", what, C.GoString(C.mdb_strerror(rc)))
}

func openLMDB(o engine.Options) (engine.Store, error) {
	s := &lmdbStore{readers: make(chan *C.MDB_txn, lmdbReaders)}
	if err := lmdbError("create", C.mdb_env_create(&s.env)); err != nil {
		return nil, err
	}
	if o.InOrder {
		s.puts = C.MDB_APPEND
	}
	C.mdb_env_set_mapsize(s.env, C.size_t(max(o.DataBytes*16, 1<<30)))
	C.mdb_env_set_maxreaders(s.env, 2*lmdbReaders)
	flags := C.uint(C.MDB_NOTLS | C.MDB_NORDAHEAD | C.MDB_NOMEMINIT | C.MDB_NOSUBDIR)
	if o.Class != engine.Durable {
		flags |= C.MDB_NOSYNC | C.MDB_WRITEMAP
	}
	name := C.CString(filepath.Join(o.Dir, "data.mdb"))
	defer C.free(unsafe.Pointer(name))
	err := lmdbError("open", C.mdb_env_open(s.env, name, flags, 0o644))
	if err != nil {
		return nil, err
	}
	var txn *C.MDB_txn
	if err := lmdbError("begin", C.mdb_txn_begin(s.env, nil, 0, &txn)); err != nil {
		return nil, err
	}
	if err := lmdbError("open database", C.mdb_dbi_open(txn, nil, 0, &s.dbi)); err != nil {
		return nil, err
	}
	s.buffers.New = func() any { return new([]byte) }
	return s, lmdbError("commit", C.mdb_txn_commit(txn))
}

func address(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// Put is a transaction of its own.
func (s *lmdbStore) Put(key, value []byte) error {
	runtime.LockOSThread() // the writer's lock belongs to a thread
	defer runtime.UnlockOSThread()
	return lmdbError("put", C.pl_put(s.env, s.dbi, address(key), C.size_t(len(key)), address(value), C.size_t(len(value))))
}

// Delete is a batch of one.
func (s *lmdbStore) Delete(key []byte) error {
	return s.Write([]engine.Op{{Key: key, Delete: true}})
}

// Write is one transaction, and one call of C.
func (s *lmdbStore) Write(batch []engine.Op) error {
	b := s.buffers.Get().(*[]byte)
	*b = packOps((*b)[:0], batch)
	runtime.LockOSThread()
	rc := C.pl_write(s.env, s.dbi, s.puts, (*C.char)(address(*b)), C.size_t(len(*b)))
	runtime.UnlockOSThread()
	s.buffers.Put(b)
	return lmdbError("write", rc)
}

// reader takes a read transaction that is reset.
func (s *lmdbStore) reader() (*C.MDB_txn, error) {
	select {
	case t := <-s.readers:
		return t, nil
	default:
	}
	var t *C.MDB_txn
	if err := lmdbError("begin", C.mdb_txn_begin(s.env, nil, C.MDB_RDONLY, &t)); err != nil {
		return nil, err
	}
	C.mdb_txn_reset(t)
	s.mu.Lock()
	s.all = append(s.all, t)
	s.mu.Unlock()
	return t, nil
}

// Get renews a reader that is kept, which costs a few loads and no lock.
func (s *lmdbStore) Get(dst, key []byte) ([]byte, bool, error) {
	t, err := s.reader()
	if err != nil {
		return dst, false, err
	}
	defer func() { s.readers <- t }()
	return lmdbGet(t, s.dbi, 1, dst, key)
}

// lmdbRoom is the room that a first try of a get finds in the buffer.
const lmdbRoom = 1024

func lmdbGet(t *C.MDB_txn, dbi C.MDB_dbi, renew C.int, dst, key []byte) ([]byte, bool, error) {
	room := lmdbRoom
	for {
		if cap(dst)-len(dst) < room {
			dst = append(make([]byte, 0, len(dst)+room), dst...)
		}
		free := dst[len(dst):cap(dst)]
		var n C.size_t
		rc := C.pl_get(t, dbi, renew, address(key), C.size_t(len(key)), address(free), C.size_t(len(free)), &n)
		if rc == C.MDB_NOTFOUND {
			return dst, false, nil
		}
		if rc != 0 {
			return dst, false, lmdbError("get", rc)
		}
		if int(n) <= len(free) {
			return dst[:len(dst)+int(n)], true, nil
		}
		room = int(n)
	}
}

// Has is a Get: LMDB finds no key without its value.
func (s *lmdbStore) Has(key []byte) (bool, error) {
	_, found, err := s.Get(nil, key)
	return found, err
}

// Scan walks inside of one read transaction, by chunks of records that are not copied.
func (s *lmdbStore) Scan(r engine.Scan, visit engine.Visit) error {
	return s.View(func(t engine.Reader) error { return t.Scan(r, visit) })
}

// View renews a reader that is kept, and resets it at the end.
func (s *lmdbStore) View(fn func(engine.Reader) error) error {
	t, err := s.reader()
	if err != nil {
		return err
	}
	defer func() { s.readers <- t }()
	if err := lmdbError("renew", C.mdb_txn_renew(t)); err != nil {
		return err
	}
	defer C.mdb_txn_reset(t)
	return fn(lmdbSnapshot{t, s.dbi})
}

// Update is a write transaction, of which there is one at a time: updates take turns.
func (s *lmdbStore) Update(fn func(engine.Transaction) error) error {
	runtime.LockOSThread() // the writer's lock belongs to a thread
	defer runtime.UnlockOSThread()
	var t *C.MDB_txn
	if err := lmdbError("begin", C.mdb_txn_begin(s.env, nil, 0, &t)); err != nil {
		return err
	}
	ended := false
	defer func() {
		if !ended {
			C.mdb_txn_abort(t)
		}
	}()
	if err := fn(lmdbTransaction{lmdbSnapshot{t, s.dbi}}); err != nil {
		return err
	}
	ended = true
	return lmdbError("commit", C.mdb_txn_commit(t))
}

// lmdbChunk is how many records one crossing fetches.
const lmdbChunk = 128

func lmdbScan(t *C.MDB_txn, dbi C.MDB_dbi, r engine.Scan, visit engine.Visit) error {
	var c *C.MDB_cursor
	if err := lmdbError("cursor", C.mdb_cursor_open(t, dbi, &c)); err != nil {
		return err
	}
	defer C.mdb_cursor_close(c)
	first, next := C.int(C.MDB_FIRST), C.int(C.MDB_NEXT)
	if r.Reverse {
		first, next = C.MDB_LAST, C.MDB_PREV
	}
	if r.From != nil {
		first = C.MDB_SET_RANGE
	}
	var keys, vals [lmdbChunk]C.MDB_val
	left := r.Limit
	for {
		want := lmdbChunk
		if r.Limit > 0 {
			want = min(want, left)
		}
		var n C.int
		rc := C.pl_step(c, first, next, address(r.From), C.size_t(len(r.From)), C.int(want), &keys[0], &vals[0], &n)
		for i := range int(n) {
			k := unsafe.Slice((*byte)(keys[i].mv_data), int(keys[i].mv_size))
			v := unsafe.Slice((*byte)(vals[i].mv_data), int(vals[i].mv_size))
			if !visit(k, v) {
				return nil
			}
		}
		if rc == C.MDB_NOTFOUND {
			return nil
		}
		if rc != 0 {
			return lmdbError("scan", rc)
		}
		if left -= int(n); r.Limit > 0 && left == 0 {
			return nil
		}
		first = next
	}
}

// Snapshot is a read transaction that stays open, and keeps the pages of its moment from being used again.
func (s *lmdbStore) Snapshot() (engine.Snapshot, error) {
	var t *C.MDB_txn
	err := lmdbError("begin", C.mdb_txn_begin(s.env, nil, C.MDB_RDONLY, &t))
	return lmdbSnapshot{t, s.dbi}, err
}

// Settle has nothing to wait for: there is no work in the background.
func (s *lmdbStore) Settle() error { return nil }

// Compact copies into a new file and goes on with the old one: LMDB cannot shrink one that is open. The copy takes the place
// of the old file for whoever measures the space.
func (s *lmdbStore) Compact() error {
	var path *C.char
	if err := lmdbError("path", C.mdb_env_get_path(s.env, &path)); err != nil {
		return err
	}
	file := C.GoString(path)
	target := C.CString(file + ".compact")
	defer C.free(unsafe.Pointer(target))
	if err := lmdbError("copy", C.mdb_env_copy2(s.env, target, C.MDB_CP_COMPACT)); err != nil {
		return err
	}
	return renameOver(file+".compact", file)
}

// Close aborts the readers that are kept and unmaps the file.
func (s *lmdbStore) Close() error {
	if s.env == nil {
		return errors.New("lmdb: closed twice")
	}
	for _, t := range s.all {
		C.mdb_txn_abort(t)
	}
	C.mdb_env_close(s.env)
	s.env = nil
	return nil
}

type lmdbSnapshot struct {
	t   *C.MDB_txn
	dbi C.MDB_dbi
}

// Close ends the transaction.
func (s lmdbSnapshot) Close() error { C.mdb_txn_abort(s.t); return nil }

// Get reads inside of the transaction, without renewing it.
func (s lmdbSnapshot) Get(dst, key []byte) ([]byte, bool, error) {
	return lmdbGet(s.t, s.dbi, 0, dst, key)
}

// Has is a Get.
func (s lmdbSnapshot) Has(key []byte) (bool, error) {
	_, found, err := s.Get(nil, key)
	return found, err
}

// Scan walks inside of the transaction.
func (s lmdbSnapshot) Scan(r engine.Scan, visit engine.Visit) error {
	return lmdbScan(s.t, s.dbi, r, visit)
}

type lmdbTransaction struct{ lmdbSnapshot }

// Put copies both into a page.
func (t lmdbTransaction) Put(key, value []byte) error {
	return lmdbError("put", C.pl_txn_put(t.t, t.dbi, address(key), C.size_t(len(key)), address(value), C.size_t(len(value))))
}

// Delete removes the record from its page.
func (t lmdbTransaction) Delete(key []byte) error {
	return lmdbError("delete", C.pl_txn_del(t.t, t.dbi, address(key), C.size_t(len(key))))
}
