package mongo

import (
	"strings"

	"github.com/pandodb/pando/document"
)

// outsideTransactions refuses the databases and collections that the server keeps for itself, which a transaction must not touch. MongoDB
// does so, and what is written there is not part of any snapshot.
func (r *request) outsideTransactions() error {
	switch r.db {
	case "local":
		return document.NewError(codeNotInTransaction, "Cannot run command against the 'local' database in a transaction.")
	case "config":
		return document.NewError(codeNotInTransaction, "Cannot run command against the config database in a transaction.")
	}
	if name, _ := r.target.StringValueOK(); name == "system.profile" {
		return document.NewError(codeNotInTransaction, "Cannot run command against the '%s.%s' collection in a transaction.", r.db, name)
	}
	return nil
}

// refusedInside refuses what ends the transaction that tries it: other collections that are not for clients, and cursors that wait.
func (r *request) refusedInside() error {
	name, ok := r.target.StringValueOK()
	if !ok {
		return nil
	}
	switch r.command.name {
	case "find", "aggregate", "distinct":
		if name == "system.views" {
			return document.NewError(document.Code(51071), "Cannot query system.views within a transaction")
		}
	case "insert", "update", "delete", "findAndModify":
		if strings.HasPrefix(name, "system.") {
			return document.NewError(document.Code(50791), "Cannot write to system collection %s.%s within a transaction.", r.db, name)
		}
	}
	if waits, _ := r.body.Lookup("tailable").BooleanOK(); waits && r.command.name == "find" {
		return document.NewError(codeInvalidOptions, "It is illegal to open a tailable cursor in a transaction")
	}
	return nil
}
