//go:build rocksdb

package engines

/*
#cgo LDFLAGS: -lrocksdb
#include <rocksdb/c.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Each function does one whole operation, so that Go crosses into C once for it.

// pr_get looks into the batch first, if there is one.
static char *pr_get(rocksdb_t *db, rocksdb_readoptions_t *ro, rocksdb_writebatch_wi_t *batch, const char *k, size_t kn, char *dst, size_t room, size_t *vn, int *found) {
	char *err = NULL;
	if (batch) {
		char *copy = rocksdb_writebatch_wi_get_from_batch_and_db(batch, db, ro, k, kn, vn, &err);
		*found = copy != NULL;
		if (copy && *vn <= room) memcpy(dst, copy, *vn);
		rocksdb_free(copy);
		return err;
	}
	rocksdb_pinnableslice_t *p = rocksdb_get_pinned(db, ro, k, kn, &err);
	*found = 0;
	if (err || !p) return err;
	size_t n = 0;
	const char *v = rocksdb_pinnableslice_value(p, &n);
	if (v) {
		*found = 1;
		*vn = n;
		if (n <= room) memcpy(dst, v, n);
	}
	rocksdb_pinnableslice_destroy(p);
	return NULL;
}

// pr_write commits operations packed as {u32 key length, u32 value length or ~0 for a delete, key, value}.
static char *pr_write(rocksdb_t *db, rocksdb_writeoptions_t *wo, const char *p, size_t n) {
	char *err = NULL;
	rocksdb_writebatch_t *b = rocksdb_writebatch_create();
	for (const char *end = p + n; p < end;) {
		uint32_t kn, vn;
		memcpy(&kn, p, 4);
		memcpy(&vn, p + 4, 4);
		p += 8;
		if (vn == ~0u) {
			rocksdb_writebatch_delete(b, p, kn);
			vn = 0;
		} else {
			rocksdb_writebatch_put(b, p, kn, p + kn, vn);
		}
		p += kn + vn;
	}
	rocksdb_write(db, wo, b, &err);
	rocksdb_writebatch_destroy(b);
	return err;
}

static char *pr_put(rocksdb_t *db, rocksdb_writeoptions_t *wo, const char *k, size_t kn, const char *v, size_t vn) {
	char *err = NULL;
	rocksdb_put(db, wo, k, kn, v, vn, &err);
	return err;
}

// pr_step copies records from the iterator's place on into dst, packed as above, and moves on. It asks for the value of one in one_in
// records, of the whole walk, of which done lie behind, and leaves those of the others empty. It stops when the next record
// has no room; need then tells how much it takes if not even one fitted.
static int pr_step(rocksdb_iterator_t *it, int reverse, int done, int one_in, int max, char *dst, size_t room, size_t *used, size_t *need) {
	int n = 0;
	*used = 0;
	*need = 0;
	while (n < max && rocksdb_iter_valid(it)) {
		size_t kn, vn = 0;
		const char *k = rocksdb_iter_key(it, &kn), *v = dst;
		if ((done + n) % one_in == 0) v = rocksdb_iter_value(it, &vn);
		if (*used + 8 + kn + vn > room) {
			if (n == 0) *need = 8 + kn + vn;
			break;
		}
		uint32_t a = kn, b = vn;
		memcpy(dst, &a, 4);
		memcpy(dst + 4, &b, 4);
		memcpy(dst + 8, k, kn);
		memcpy(dst + 8 + kn, v, vn);
		dst += 8 + kn + vn;
		*used += 8 + kn + vn;
		n++;
		if (reverse) rocksdb_iter_prev(it); else rocksdb_iter_next(it);
	}
	return n;
}
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/pandodb/pando/bench/engine"
	"github.com/pandodb/pando/bench/measure"
)

// rocksdbDrivers: RocksDB, a log-structured merge tree, in C++.
//
// Options set, after its tuning guide: Bloom filters of 10 bits; blocks of 16 KiB with LZ4, table format 5; a block cache from the
// budget, index and filter blocks in it with those of level 0 pinned; memtables of 64 MiB, 4 of them; two background jobs for two
// cores; level_compaction_dynamic_level_bytes; bytes_per_sync of 1 MiB. Where the data is more than the budget, blocks of 8 KiB, and
// indexes and filters in partitions with their top levels pinned: otherwise a get that misses reads the filter of a whole file, which
// takes four times as long; where all of them are in memory, partitions cost half as much again. Blob files are off: with values of
// 100 KB writes are no cheaper, and gets, which do not find them in the block cache, take twice as long.
func rocksdbDrivers() []engine.Driver {
	return []engine.Driver{{
		Name: "rocksdb", Version: "7.8.3 (Debian)", Kind: "log-structured merge tree; in C++",
		Classes: map[engine.Class]string{
			engine.None:    "disableWAL",
			engine.Relaxed: "sync off: every write is a write call",
			engine.Durable: "sync: shared by the writers that wait",
		},
		Settings: "Bloom 10 bits, 64 MiB memtables, 16 KiB blocks, LZ4 (8 KiB and partitioned filters and indexes where memory is scarce), block cache from the budget, 2 background jobs, dynamic level bytes; update transactions are indexed batches under a lock of the program",
		Open:     openRocksDB,
	}}
}

type rocksdbStore struct {
	db      *C.rocksdb_t
	opts    *C.rocksdb_options_t
	write   *C.rocksdb_writeoptions_t
	buffers sync.Pool
	views   chan *C.rocksdb_readoptions_t // that have no snapshot
	turns   sync.Mutex                    // of updates
	update  *C.rocksdb_writebatch_wi_t    // of the one whose turn it is
	rocksdbReader
}

type rocksdbReader struct {
	of *C.rocksdb_t
	ro *C.rocksdb_readoptions_t
	// batch is what an update has written so far, in front of the rest; nil: it is no update.
	batch *C.rocksdb_writebatch_wi_t
	// chunks keeps buffers of scans: a seek costs less than to make one.
	chunks *sync.Pool
}

func rocksdbError(what string, err *C.char) error {
	if err == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(err))
	return fmt.Errorf("rocksdb: %s: %s", what, C.GoString(err))
}

// rocksdbTable is how files are laid out and cached.
func rocksdbTable(o engine.Options, memtable int64) *C.rocksdb_block_based_table_options_t {
	table := C.rocksdb_block_based_options_create()
	C.rocksdb_block_based_options_set_block_cache(table, C.rocksdb_cache_create_lru(C.size_t(max(o.MemoryBytes-2*memtable, 8<<20))))
	C.rocksdb_block_based_options_set_filter_policy(table, C.rocksdb_filterpolicy_create_bloom_full(10))
	C.rocksdb_block_based_options_set_block_size(table, 16<<10)
	C.rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1)
	C.rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1)
	C.rocksdb_block_based_options_set_format_version(table, 5)
	if o.DataBytes > o.MemoryBytes {
		C.rocksdb_block_based_options_set_block_size(table, 8<<10)
		C.rocksdb_block_based_options_set_index_type(table, C.rocksdb_block_based_table_index_type_two_level_index_search)
		C.rocksdb_block_based_options_set_partition_filters(table, 1)
		C.rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1)
	}
	return table
}

func openRocksDB(o engine.Options) (engine.Store, error) {
	memtable := int64(64 << 20)
	for memtable*4 > o.MemoryBytes && memtable > 1<<20 {
		memtable /= 2
	}
	table := rocksdbTable(o, memtable)
	opts := C.rocksdb_options_create()
	C.rocksdb_options_set_create_if_missing(opts, 1)
	C.rocksdb_options_set_block_based_table_factory(opts, table)
	C.rocksdb_options_set_write_buffer_size(opts, C.size_t(memtable))
	C.rocksdb_options_set_max_write_buffer_number(opts, 4)
	C.rocksdb_options_set_max_background_jobs(opts, 2)
	C.rocksdb_options_set_level_compaction_dynamic_level_bytes(opts, 1)
	C.rocksdb_options_set_bytes_per_sync(opts, 1<<20)
	C.rocksdb_options_set_compression(opts, C.rocksdb_lz4_compression)
	name := C.CString(o.Dir)
	defer C.free(unsafe.Pointer(name))
	var cerr *C.char
	db := C.rocksdb_open(opts, name, &cerr)
	if err := rocksdbError("open", cerr); err != nil {
		return nil, err
	}
	s := &rocksdbStore{db: db, opts: opts, write: C.rocksdb_writeoptions_create(),
		update: C.rocksdb_writebatch_wi_create(0, 1), views: make(chan *C.rocksdb_readoptions_t, rocksdbViews)}
	s.rocksdbReader = rocksdbReader{of: db, ro: C.rocksdb_readoptions_create(), chunks: &sync.Pool{New: func() any {
		b := make([]byte, rocksdbBuffer)
		return &b
	}}}
	s.buffers.New = func() any { return new([]byte) }
	switch o.Class {
	case engine.Durable:
		C.rocksdb_writeoptions_set_sync(s.write, 1)
	case engine.None:
		C.rocksdb_writeoptions_disable_WAL(s.write, 1)
	}
	return s, nil
}

func chars(b []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(b))) }

// Put is a batch of one, made by RocksDB.
func (s *rocksdbStore) Put(key, value []byte) error {
	return rocksdbError("put", C.pr_put(s.db, s.write, chars(key), C.size_t(len(key)), chars(value), C.size_t(len(value))))
}

// Delete writes a tombstone.
func (s *rocksdbStore) Delete(key []byte) error {
	return s.Write([]engine.Op{{Key: key, Delete: true}})
}

// Write is one batch, and one call of C.
func (s *rocksdbStore) Write(batch []engine.Op) error {
	b := s.buffers.Get().(*[]byte)
	*b = packOps((*b)[:0], batch)
	err := C.pr_write(s.db, s.write, chars(*b), C.size_t(len(*b)))
	s.buffers.Put(b)
	return rocksdbError("write", err)
}

// rocksdbRoom is the room that a first try of a get finds in the buffer.
const rocksdbRoom = 1024

// Get copies the value out of the pinned block, in one call of C.
func (r rocksdbReader) Get(dst, key []byte) ([]byte, bool, error) {
	room := rocksdbRoom
	for {
		if cap(dst)-len(dst) < room {
			dst = append(make([]byte, 0, len(dst)+room), dst...)
		}
		free := dst[len(dst):cap(dst)]
		var n C.size_t
		var found C.int
		cerr := C.pr_get(r.of, r.ro, r.batch, chars(key), C.size_t(len(key)), chars(free), C.size_t(len(free)), &n, &found)
		if cerr != nil || found == 0 {
			return dst, false, rocksdbError("get", cerr)
		}
		if int(n) <= len(free) {
			return dst[:len(dst)+int(n)], true, nil
		}
		room = int(n)
	}
}

// Has is a Get: KeyMayExist may be wrong.
func (r rocksdbReader) Has(key []byte) (bool, error) {
	_, found, err := r.Get(nil, key)
	return found, err
}

// One crossing of a scan fetches up to rocksdbChunk records into a buffer that begins with rocksdbBuffer bytes.
const (
	rocksdbChunk  = 256
	rocksdbBuffer = 64 << 10
)

// Scan opens an iterator of its own.
func (r rocksdbReader) Scan(s engine.Scan, visit engine.Visit) error {
	it := C.rocksdb_create_iterator(r.of, r.ro)
	if r.batch != nil {
		it = C.rocksdb_writebatch_wi_create_iterator_with_base(r.batch, it) // which destroys the one that it is given with itself
	}
	return r.walk(it, s, visit)
}

// walk copies chunks of records into a buffer, in one call of C each. It destroys the iterator.
func (r rocksdbReader) walk(it *C.rocksdb_iterator_t, s engine.Scan, visit engine.Visit) error {
	defer C.rocksdb_iter_destroy(it)
	reverse := C.int(0)
	if s.Reverse {
		reverse = 1
	}
	switch {
	case s.From != nil && s.Reverse:
		C.rocksdb_iter_seek_for_prev(it, chars(s.From), C.size_t(len(s.From)))
	case s.From != nil:
		C.rocksdb_iter_seek(it, chars(s.From), C.size_t(len(s.From)))
	case s.Reverse:
		C.rocksdb_iter_seek_to_last(it)
	default:
		C.rocksdb_iter_seek_to_first(it)
	}
	kept := r.chunks.Get().(*[]byte)
	defer r.chunks.Put(kept)
	buf := *kept
	for done := 0; ; {
		want := rocksdbChunk
		if s.Limit > 0 {
			want = min(want, s.Limit-done)
		}
		var used, need C.size_t
		n := int(C.pr_step(it, reverse, C.int(done), C.int(max(s.ValueOneIn, 1)), C.int(want), chars(buf), C.size_t(len(buf)), &used, &need))
		if n == 0 && need > 0 {
			buf = make([]byte, 2*need)
			*kept = buf
			continue
		}
		for p := buf[:used]; len(p) > 0; {
			kn, vn := binary.NativeEndian.Uint32(p), binary.NativeEndian.Uint32(p[4:])
			p = p[8:]
			if !visit(p[:kn], p[kn:kn+vn]) {
				return nil
			}
			p = p[kn+vn:]
		}
		if done += n; n == 0 || done == s.Limit {
			break
		}
	}
	var cerr *C.char
	C.rocksdb_iter_get_error(it, &cerr)
	return rocksdbError("scan", cerr)
}

// Snapshot keeps versions from being dropped.
func (s *rocksdbStore) Snapshot() (engine.Snapshot, error) {
	snap := C.rocksdb_create_snapshot(s.db)
	ro := C.rocksdb_readoptions_create()
	C.rocksdb_readoptions_set_snapshot(ro, snap)
	return rocksdbSnapshot{rocksdbReader{of: s.db, ro: ro, chunks: s.chunks}, snap}, nil
}

// Settle flushes and waits until the process has been idle for a while.
func (s *rocksdbStore) Settle() error {
	fo := C.rocksdb_flushoptions_create()
	defer C.rocksdb_flushoptions_destroy(fo)
	C.rocksdb_flushoptions_set_wait(fo, 1)
	var cerr *C.char
	C.rocksdb_flush(s.db, fo, &cerr)
	if err := rocksdbError("flush", cerr); err != nil {
		return err
	}
	measure.WaitIdle(50*time.Millisecond, time.Minute)
	return nil
}

// Compact flushes, and rewrites all keys into the lowest level.
func (s *rocksdbStore) Compact() error {
	if err := s.Settle(); err != nil {
		return err
	}
	C.rocksdb_compact_range(s.db, nil, 0, nil, 0)
	return nil
}

// Close flushes what has no log.
func (s *rocksdbStore) Close() error {
	if s.db == nil {
		return errors.New("rocksdb: closed twice")
	}
	C.rocksdb_readoptions_destroy(s.ro)
	s.closeTransactions()
	C.rocksdb_writeoptions_destroy(s.write)
	C.rocksdb_close(s.db)
	C.rocksdb_options_destroy(s.opts)
	s.db = nil
	return nil
}

type rocksdbSnapshot struct {
	rocksdbReader
	snap *C.rocksdb_snapshot_t
}

// Close lets compactions drop what only this snapshot saw.
func (s rocksdbSnapshot) Close() error {
	C.rocksdb_release_snapshot(s.of, s.snap)
	C.rocksdb_readoptions_destroy(s.ro)
	return nil
}
