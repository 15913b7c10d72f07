package engines

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"github.com/pandodb/pando/bench/engine"
)

// sqliteDriver: SQLite, translated from C into Go.
//
// Options set: a table WITHOUT ROWID, which is one B-tree with the records in it, as its documentation advises for rows below a
// twentieth of a page; for values above half a kilobyte a table with row identifiers, and for those above a page pages of 32 KiB; journal_mode WAL with a checkpoint every
// 16 MiB instead of 4; a page cache from the budget and mmap_size above the data, so that reads do not copy pages; prepared
// statements throughout; one connection that writes, since SQLite has one writer, and a pool that reads.
func sqliteDriver() engine.Driver {
	return engine.Driver{
		Name: "sqlite", Module: "modernc.org/sqlite", Kind: "B-tree with a log, SQL; pure Go",
		Classes: sqliteClasses(), Settings: sqliteSettings,
		Open:          func(o engine.Options) (engine.Store, error) { return openSQLite("sqlite", o) },
		OpenDocuments: func(o engine.Options) (engine.Documents, error) { return openSQLDocuments("sqlite", o, false) },
	}
}

// sqliteJSONDriver: the same, with documents as JSON in one column, and indexes of expressions.
func sqliteJSONDriver() engine.Driver {
	d := sqliteDriver()
	d.Name, d.Kind, d.Open = "sqlite-json", "SQLite with documents as JSON; pure Go", nil
	d.OpenDocuments = func(o engine.Options) (engine.Documents, error) { return openSQLDocuments("sqlite", o, true) }
	return d
}

const sqliteSettings = "WITHOUT ROWID (but for values above 512 bytes; those above 4 KiB have pages of 32 KiB), WAL, checkpoint at 16 MiB, cache from the budget, mmap above the data, prepared statements, one writing connection"

func sqliteClasses() map[engine.Class]string {
	return map[engine.Class]string{
		engine.None:    "journal_mode=OFF, synchronous=OFF",
		engine.Relaxed: "WAL, synchronous=OFF: every commit is written with pwrite",
		engine.Durable: "WAL, synchronous=FULL",
	}
}

type sqliteStore struct {
	write, read *sql.DB
	mu          sync.Mutex // SQLite has one writer; waiting here is cheaper than its busy handler
	put, del    *sql.Stmt
	updating    func() (sqliteReader, error) // reads of updates, on the connection that writes
	sqliteReader
}

const (
	// sqliteClustered is the length up to which values lie in the tree of the keys. SQLite's own advice is a twentieth of a page; half of
	// a kilobyte is still faster so.
	sqliteClustered = 512
	// sqliteLong is the length from which on a page of the usual size does not hold a value.
	sqliteLong = 4096
)

// sqlitePragmas are set on every connection.
func sqlitePragmas(o engine.Options) []string {
	journal, sync := "WAL", "OFF"
	switch o.Class {
	case engine.None:
		journal = "OFF"
	case engine.Durable:
		sync = "FULL"
	}
	page := 4096
	if o.ValueBytes >= sqliteLong {
		page = 32 << 10
	}
	return []string{
		fmt.Sprintf("page_size(%d)", page), "journal_mode(" + journal + ")", "synchronous(" + sync + ")", fmt.Sprintf("wal_autocheckpoint(%d)", 16<<20/page),
		fmt.Sprintf("cache_size(-%d)", o.MemoryBytes/2>>10), fmt.Sprintf("mmap_size(%d)", max(o.DataBytes*3, 1<<30)),
		"temp_store(MEMORY)", "busy_timeout(60000)",
	}
}

func openSQLite(driver string, o engine.Options) (engine.Store, error) {
	file := filepath.Join(o.Dir, "sqlite.db")
	open := func(conns int, lock string) (*sql.DB, error) {
		db, err := sql.Open(driver, sqliteName(driver, file, lock, sqlitePragmas(o)))
		if err == nil {
			db.SetMaxOpenConns(conns)
			db.SetMaxIdleConns(conns)
		}
		return db, err
	}
	s := &sqliteStore{}
	var err error
	if s.write, err = open(1, "immediate"); err != nil {
		return nil, err
	}
	table := "CREATE TABLE IF NOT EXISTS kv (k BLOB PRIMARY KEY, v BLOB)"
	if o.ValueBytes <= sqliteClustered {
		table += " WITHOUT ROWID"
	}
	if _, err = s.write.Exec(table); err != nil {
		return nil, errors.Join(err, s.write.Close())
	}
	s.read = s.write
	if o.Class != engine.None { // without a journal, readers beside the writer would see half of a change
		if s.read, err = open(16, "deferred"); err != nil {
			return nil, err
		}
	}
	return s, s.prepare()
}

func (s *sqliteStore) prepare() (err error) {
	if s.put, err = s.write.Prepare("INSERT INTO kv VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v"); err != nil {
		return err
	}
	if s.del, err = s.write.Prepare("DELETE FROM kv WHERE k = ?"); err != nil {
		return err
	}
	if s.get, err = s.read.Prepare(sqliteGet); err != nil {
		return err
	}
	s.scans = sync.OnceValues(func() (sqliteWalks, error) { return prepareSQLiteWalks(s.read) })
	s.updating = sync.OnceValues(func() (sqliteReader, error) { return prepareSQLiteUpdates(s.write) })
	return nil
}

const sqliteGet = "SELECT v FROM kv WHERE k = ?"

// sqliteScans are walks in the order of the primary key: all forwards, all backwards, from a key on, from a key back. They have no end
// where the limit is negative.
var sqliteScans = [...]string{
	"SELECT k, v FROM kv ORDER BY k LIMIT ?",
	"SELECT k, v FROM kv ORDER BY k DESC LIMIT ?",
	"SELECT k, v FROM kv WHERE k >= ? ORDER BY k LIMIT ?",
	"SELECT k, v FROM kv WHERE k <= ? ORDER BY k DESC LIMIT ?",
}

// sqliteWalks are those queries, prepared when one of them is first asked for: opening is measured too.
type sqliteWalks [len(sqliteScans)]*sql.Stmt

func prepareSQLiteWalks(db *sql.DB) (walks sqliteWalks, err error) {
	for i, query := range sqliteScans {
		if walks[i], err = db.Prepare(query); err != nil {
			return walks, err
		}
	}
	return walks, nil
}

// Put is an upsert, committed by itself.
func (s *sqliteStore) Put(key, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.put.Exec(key, value)
	return err
}

// Delete is a prepared DELETE, committed by itself.
func (s *sqliteStore) Delete(key []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.del.Exec(key)
	return err
}

// Write is one transaction of prepared statements.
func (s *sqliteStore) Write(batch []engine.Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, err := s.write.Begin()
	if err != nil {
		return err
	}
	put, del := tx.Stmt(s.put), tx.Stmt(s.del)
	for _, op := range batch {
		if op.Delete {
			_, err = del.Exec(op.Key)
		} else {
			_, err = put.Exec(op.Key, op.Value)
		}
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// Snapshot is a deferred transaction: it takes its moment with its first read. Without a journal there is none.
func (s *sqliteStore) Snapshot() (engine.Snapshot, error) {
	r, err := s.begin()
	if err != nil {
		return nil, err
	}
	return sqliteSnapshot{r}, nil
}

// Settle copies the log into the database, as far as readers let it.
func (s *sqliteStore) Settle() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.write.Exec("PRAGMA wal_checkpoint(PASSIVE)")
	return err
}

// Compact rewrites the database with VACUUM and empties the log.
func (s *sqliteStore) Compact() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.write.Exec("VACUUM"); err != nil {
		return err
	}
	_, err := s.write.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// Close closes both pools; the last connection removes the log.
func (s *sqliteStore) Close() error {
	err := s.read.Close()
	if s.write != s.read {
		err = errors.Join(err, s.write.Close())
	}
	return err
}

type sqliteSnapshot struct{ sqliteReader }

// Close ends the transaction.
func (s sqliteSnapshot) Close() error { return s.tx.Rollback() }

type sqliteReader struct {
	get   *sql.Stmt
	scans func() (sqliteWalks, error)
	tx    *sql.Tx // nil: each read is one by itself
}

// in is a prepared statement in the transaction.
func (r sqliteReader) in(stmt *sql.Stmt) *sql.Stmt {
	if r.tx == nil {
		return stmt
	}
	return r.tx.Stmt(stmt)
}

// Get takes the row from the driver without the copy that a []byte would be.
func (r sqliteReader) Get(dst, key []byte) ([]byte, bool, error) {
	rows, err := r.get.Query(key)
	if err != nil {
		return dst, false, err
	}
	defer rows.Close()
	if !rows.Next() {
		return dst, false, rows.Err()
	}
	var raw sql.RawBytes
	if err := rows.Scan(&raw); err != nil {
		return dst, false, err
	}
	return append(dst, raw...), true, nil
}

// Has is a Get: another statement would read the same pages.
func (r sqliteReader) Has(key []byte) (bool, error) {
	_, found, err := r.Get(nil, key)
	return found, err
}

// Scan is one SELECT in the order of the primary key.
func (r sqliteReader) Scan(s engine.Scan, visit engine.Visit) error {
	which, args := 0, []any{int64(-1)}
	if s.Limit > 0 {
		args[0] = int64(s.Limit)
	}
	if s.From != nil {
		which, args = 2, []any{s.From, args[0]}
	}
	if s.Reverse {
		which++
	}
	walks, err := r.scans()
	if err != nil {
		return err
	}
	rows, err := r.in(walks[which]).Query(args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var k, v sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&k, &v); err != nil {
			return err
		}
		if !visit(k, v) {
			break
		}
	}
	return rows.Err()
}

// sqliteName builds the data source's name. The driver in C sets the pragmas itself.
func sqliteName(driver, file, lock string, pragmas []string) string {
	name := "file:" + file + "?_txlock=" + lock
	if driver == "sqlite" {
		for _, p := range pragmas {
			name += "&_pragma=" + p
		}
	}
	return name
}
