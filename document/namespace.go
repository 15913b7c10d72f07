package document

import (
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// namespace is the full name of a collection.
type namespace struct{ database, collection string }

// String joins both with a dot, as MongoDB writes it.
func (n namespace) String() string { return n.database + "." + n.collection }

// document is bsoncore.Document under a shorter name: raw BSON.
type document = bsoncore.Document

// check refuses names under which MongoDB makes no collection.
func (n namespace) check() error {
	if err := checkDatabaseName(n.database); err != nil {
		return err
	}
	if err := n.checkSpelling(); err != nil {
		return err
	}
	switch {
	case strings.HasSuffix(n.collection, "."):
		return mongoerror.New(mongoerror.InvalidNamespace, "Collection names cannot end with '.': %s", n.collection)
	case strings.HasPrefix(n.collection, "system.") && !n.ofSystem():
		return mongoerror.New(mongoerror.InvalidNamespace, "Invalid system namespace: %s", n)
	case len(n.String()) > MaxNamespaceBytes:
		return mongoerror.New(mongoerror.InvalidNamespace, "Fully qualified namespace is too long. Namespace: %s Max: %d", n, MaxNamespaceBytes)
	}
	return nil
}

// checkSpelling refuses names that no collection can have, so that nobody reads them either. A dollar sign is what sets the namespaces of
// commands and of a database's cursors, $cmd.aggregate and the like, apart from those of collections.
func (n namespace) checkSpelling() error {
	switch {
	case n.collection == "":
		return mongoerror.New(mongoerror.InvalidNamespace, "Invalid namespace specified '%s': the collection's name is empty", n)
	case strings.ContainsAny(n.collection, "\x00$"):
		return mongoerror.New(mongoerror.InvalidNamespace, "Invalid collection name: %q contains '$' or a zero byte", n.collection)
	case !utf8.ValidString(n.collection): // events, lists and messages would be no BSON
		return mongoerror.New(mongoerror.InvalidNamespace, "Invalid collection name: %q is not UTF-8", n.collection)
	case strings.HasPrefix(n.collection, "."):
		return mongoerror.New(mongoerror.InvalidNamespace, "Collection names cannot start with '.': %s", n.collection)
	}
	return nil
}

// CheckName fails if no collection can have this one's name. Reads of such a one find nothing, and writes fail.
func (c *Collection) CheckName() error { return c.ns.checkSpelling() }

// ofSystem reports whether a name that begins with system. is one that MongoDB has: others could come to mean something.
func (n namespace) ofSystem() bool {
	switch n.database {
	case "admin", "config", "local":
		return true
	}
	switch n.collection {
	case "system.js", "system.views", "system.profile":
		return true
	}
	return strings.HasPrefix(n.collection, bucketsPrefix)
}

// maxDatabaseName is the longest name of a database, in bytes.
const maxDatabaseName = 63

// checkDatabaseName refuses names under which MongoDB makes no database.
func checkDatabaseName(name string) error {
	if !IsDatabaseName(name) || strings.ContainsAny(name, "$*<>:|?") {
		return mongoerror.New(mongoerror.InvalidNamespace, "Invalid database name: '%s'", strings.ToValidUTF8(name, "\ufffd"))
	}
	return nil
}

// IsDatabaseName reports whether a database can have a name. There are some that can be asked for and not be made: $external is one.
func IsDatabaseName(name string) bool {
	return name != "" && len(name) <= maxDatabaseName && !strings.ContainsAny(name, "/\\. \"\x00") && utf8.ValidString(name)
}
