//go:build cgo_rivals

package engines

import (
	"database/sql"
	"strings"

	"github.com/mattn/go-sqlite3"

	"github.com/pandodb/pando/bench/engine"
)

// sqliteCDriver: SQLite as it is, in C. Options as for "sqlite".
func sqliteCDrivers() []engine.Driver {
	return []engine.Driver{{
		Name: "sqlite-c", Module: "github.com/mattn/go-sqlite3", Kind: "B-tree with a log, SQL; in C",
		Classes: sqliteClasses(), Settings: sqliteSettings,
		Open: func(o engine.Options) (engine.Store, error) {
			registerSQLiteC(o)
			return openSQLite(sqliteCName, o)
		},
	}}
}

const sqliteCName = "sqlite3-with-pragmas"

// registerSQLiteC registers the driver with the pragmas that its data source names cannot express. One process opens one
// kind of database, so the first options hold.
func registerSQLiteC(o engine.Options) {
	for _, name := range sql.Drivers() {
		if name == sqliteCName {
			return
		}
	}
	sql.Register(sqliteCName, &sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
		for _, p := range sqlitePragmas(o) {
			name, value, _ := strings.Cut(strings.TrimSuffix(p, ")"), "(")
			if _, err := c.Exec("PRAGMA "+name+"="+value, nil); err != nil {
				return err
			}
		}
		return nil
	}})
}
