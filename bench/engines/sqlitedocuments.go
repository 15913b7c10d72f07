package engines

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pandodb/pando/bench/engine"
)

// sqlDocuments is SQLite with a table for each collection. Native columns: INTEGER PRIMARY KEY, which is the rowid, and tags as
// one text. JSON: the same primary key, the document as JSON text, and indexes of json_extract. Options as in sqliteDriver;
// statements are prepared once, rows of a commit go through one of them.
type sqlDocuments struct {
	json        bool
	write, read *sql.DB
	mu          sync.Mutex
	statements  sync.Map // text: *sql.Stmt
}

func openSQLDocuments(driver string, o engine.Options, asJSON bool) (engine.Documents, error) {
	file := filepath.Join(o.Dir, "documents.db")
	open := func(conns int, lock string) (*sql.DB, error) {
		db, err := sql.Open(driver, sqliteName(driver, file, lock, sqlitePragmas(o)))
		if err == nil {
			db.SetMaxOpenConns(conns)
			db.SetMaxIdleConns(conns)
			err = db.Ping()
		}
		return db, err
	}
	d := &sqlDocuments{json: asJSON}
	var err error
	if d.write, err = open(1, "immediate"); err != nil {
		return nil, err
	}
	d.read, err = open(16, "deferred")
	return d, err
}

// query returns a prepared statement for reading.
func (d *sqlDocuments) query(text string) (*sql.Stmt, error) {
	if s, ok := d.statements.Load(text); ok {
		return s.(*sql.Stmt), nil
	}
	s, err := d.read.Prepare(text)
	if err == nil {
		d.statements.Store(text, s)
	}
	return s, err
}

// Create makes a table and its two indexes.
func (d *sqlDocuments) Create(n int) error {
	columns := "id INTEGER PRIMARY KEY, name TEXT, email TEXT, age INTEGER, city TEXT, created INTEGER, score REAL, active INTEGER, tags TEXT"
	email, city := "email", "city"
	if d.json {
		columns, email, city = "id INTEGER PRIMARY KEY, body TEXT", "json_extract(body, '$.email')", "json_extract(body, '$.city')"
	}
	_, err := d.write.Exec(fmt.Sprintf(
		"CREATE TABLE users%[1]d (%[2]s); CREATE UNIQUE INDEX email%[1]d ON users%[1]d (%[3]s); CREATE INDEX city%[1]d ON users%[1]d (%[4]s)",
		n, columns, email, city))
	return err
}

// Insert is one transaction of a prepared INSERT.
func (d *sqlDocuments) Insert(n int, users []engine.User) error {
	text := fmt.Sprintf("INSERT INTO users%d VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", n)
	if d.json {
		text = fmt.Sprintf("INSERT INTO users%d VALUES (?, ?)", n)
	}
	return d.insert(text, len(users), func(s *sql.Stmt, i int) error {
		u := &users[i]
		if d.json {
			_, err := s.Exec(u.ID, userJSON(u))
			return err
		}
		_, err := s.Exec(u.ID, u.Name, u.Email, u.Age, u.City, u.Created, u.Score, u.Active, strings.Join(u.Tags, ","))
		return err
	})
}

// userJSON is quicker than encoding/json: nothing needs escapes.
func userJSON(u *engine.User) string {
	return fmt.Sprintf(`{"name":"%s","email":"%s","age":%d,"city":"%s","created":%d,"score":%g,"active":%t,"tags":["%s"]}`,
		u.Name, u.Email, u.Age, u.City, u.Created, u.Score, u.Active, strings.Join(u.Tags, `","`))
}

// insert runs one statement for each row, in one transaction.
func (d *sqlDocuments) insert(text string, rows int, exec func(s *sql.Stmt, i int) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	tx, err := d.write.Begin()
	if err != nil {
		return err
	}
	s, err := tx.Prepare(text)
	for i := 0; i < rows && err == nil; i++ {
		err = exec(s, i)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// userRow is a row of users, as it is read.
type userRow struct {
	id, age, created  int64
	score             float64
	active            bool
	name, email, city sql.RawBytes
	tags, body        sql.RawBytes
}

// each reads whole rows. The column of the JSON is handed out as it is.
func (d *sqlDocuments) each(n int, native, json string, arg any, fn func(u *userRow) error) error {
	condition := native
	if d.json {
		condition = json
	}
	s, err := d.query(fmt.Sprintf("SELECT * FROM users%d WHERE %s", n, condition))
	if err != nil {
		return err
	}
	rows, err := s.Query(arg)
	if err != nil {
		return err
	}
	defer rows.Close()
	var u userRow
	for rows.Next() {
		if d.json {
			err = rows.Scan(&u.id, &u.body)
		} else {
			err = rows.Scan(&u.id, &u.name, &u.email, &u.age, &u.city, &u.created, &u.score, &u.active, &u.tags)
		}
		if err == nil {
			err = fn(&u)
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

// ByID reads the row by its primary key, which is where it lies.
func (d *sqlDocuments) ByID(n int, id int64) (email string, err error) {
	err = d.each(n, "id = ?", "id = ?", id, func(u *userRow) error {
		if email = string(u.email); d.json {
			_, rest, _ := strings.Cut(string(u.body), `"email":"`)
			email, _, _ = strings.Cut(rest, `"`)
		}
		return nil
	})
	return email, err
}

// ByEmail reads the unique index, and then the row.
func (d *sqlDocuments) ByEmail(n int, email string) (id int64, err error) {
	id = -1
	err = d.each(n, "email = ?", "json_extract(body, '$.email') = ?", email, func(u *userRow) error { id = u.id; return nil })
	return id, err
}

// ByCity reads the index, and then each row.
func (d *sqlDocuments) ByCity(n int, city string, limit int) (found int, err error) {
	native, json := fmt.Sprintf("city = ? LIMIT %d", limit), fmt.Sprintf("json_extract(body, '$.city') = ? LIMIT %d", limit)
	inJSON := []byte(`"city":"` + city + `"`)
	err = d.each(n, native, json, city, func(u *userRow) error {
		found++
		if d.json && !bytes.Contains(u.body, inJSON) || !d.json && string(u.city) != city {
			return fmt.Errorf("looked for %s and found %s%s", city, u.city, u.body)
		}
		return nil
	})
	return found, err
}

// LoadFlights makes a table with the columns as they are, or of JSON, and fills it in transactions of many rows.
func (d *sqlDocuments) LoadFlights(t *engine.Table) error {
	columns, index, marks := strings.Join(t.Columns, ", "), "tailnum", strings.Repeat(", ?", len(t.Columns))
	if d.json {
		columns, index, marks = "body TEXT", "json_extract(body, '$.tailnum')", ", ?"
	}
	if _, err := d.write.Exec("CREATE TABLE flights (id INTEGER PRIMARY KEY, " + columns + "); CREATE INDEX tailnum ON flights (" + index + ")"); err != nil {
		return err
	}
	return inBatches(len(t.Rows), func(from, to int) error {
		return d.insert("INSERT INTO flights VALUES (?"+marks+")", to-from, func(s *sql.Stmt, i int) error {
			args, err := d.flight(t, from+i)
			if err != nil {
				return err
			}
			_, err = s.Exec(args...)
			return err
		})
	})
}

// flight returns the columns of a row. Moments are seconds, the shortest that SQLite has for them.
func (d *sqlDocuments) flight(t *engine.Table, i int) ([]any, error) {
	args, fields := []any{i}, map[string]any{}
	for f, v := range t.Rows[i] {
		if at, ok := v.(time.Time); ok {
			v = at.Unix()
		}
		args = append(args, v)
		if v != nil {
			fields[t.Columns[f]] = v
		}
	}
	if !d.json {
		return args, nil
	}
	body, err := json.Marshal(fields)
	return []any{i, string(body)}, err
}

// LateFlights is one SELECT count(*), so that rows are counted without leaving the driver.
func (d *sqlDocuments) LateFlights(origin string, delay int) (n int, err error) {
	text := "SELECT count(*) FROM flights WHERE origin = ? AND arr_delay > ?"
	if d.json {
		text = "SELECT count(*) FROM flights WHERE json_extract(body, '$.origin') = ? AND json_extract(body, '$.arr_delay') > ?"
	}
	err = d.read.QueryRow(text, origin, delay).Scan(&n)
	return n, err
}

// Settle copies the log into the database.
func (d *sqlDocuments) Settle() error {
	_, err := d.write.Exec("PRAGMA wal_checkpoint(PASSIVE)")
	return err
}

// Compact rewrites the database with VACUUM and empties the log.
func (d *sqlDocuments) Compact() error {
	if _, err := d.write.Exec("VACUUM"); err != nil {
		return err
	}
	_, err := d.write.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// Close closes both pools.
func (d *sqlDocuments) Close() error { return errors.Join(d.read.Close(), d.write.Close()) }
