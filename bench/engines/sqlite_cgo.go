//go:build cgo_rivals

package engines

import (
	"database/sql"
	"slices"
	"strings"

	"github.com/mattn/go-sqlite3"

	"github.com/pandodb/pando/bench/engine"
)

// sqliteCDrivers: SQLite as it is, in C. Options as for "sqlite".
func sqliteCDrivers() []engine.Driver {
	return []engine.Driver{{
		Name: "sqlite-c", Module: "github.com/mattn/go-sqlite3", Kind: "B-tree with a log, SQL; in C",
		Classes: sqliteClasses(), Settings: sqliteSettings,
		Open: func(o engine.Options) (engine.Store, error) {
			return openSQLite(sqliteCName(o), o)
		},
		OpenDocuments: func(o engine.Options) (engine.Documents, error) { return openSQLDocuments(sqliteCName(o), o, false) },
	}, {
		Name: "sqlite-c-json", Module: "github.com/mattn/go-sqlite3", Kind: "SQLite with documents as JSON; in C",
		Classes: sqliteClasses(), Settings: sqliteSettings,
		OpenDocuments: func(o engine.Options) (engine.Documents, error) { return openSQLDocuments(sqliteCName(o), o, true) },
	}}
}

// sqliteCName returns the name of a driver that sets the pragmas on every connection, and registers it if need be: the names
// of this driver's data sources cannot express all of them. It is called by one goroutine.
func sqliteCName(o engine.Options) string {
	pragmas := sqlitePragmas(o)
	driver := "sqlite3 " + strings.Join(pragmas, " ")
	if slices.Contains(sql.Drivers(), driver) {
		return driver
	}
	sql.Register(driver, &sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
		for _, p := range pragmas {
			name, value, _ := strings.Cut(strings.TrimSuffix(p, ")"), "(")
			if _, err := c.Exec("PRAGMA "+name+"="+value, nil); err != nil {
				return err
			}
		}
		return nil
	}})
	return driver
}
