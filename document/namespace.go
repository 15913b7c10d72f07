package document

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// namespace is the full name of a collection.
type namespace struct{ database, collection string }

func (n namespace) String() string { return n.database + "." + n.collection }

// document is bsoncore.Document under a shorter name: raw BSON.
type document = bsoncore.Document

// maxNamespace is the longest full name, in bytes.
const maxNamespace = 255

// check refuses names that MongoDB refuses.
func (n namespace) check() error {
	if err := checkDatabaseName(n.database); err != nil {
		return err
	}
	switch {
	case n.collection == "":
		return mongoerror.New(mongoerror.InvalidNamespace, "Invalid namespace specified '%s': the collection's name is empty", n)
	case strings.ContainsAny(n.collection, "\x00$") && !strings.HasPrefix(n.collection, "$cmd"):
		return mongoerror.New(mongoerror.InvalidNamespace, "Invalid collection name: %q contains '$' or a zero byte", n.collection)
	case strings.HasPrefix(n.collection, "."), strings.HasSuffix(n.collection, "."):
		return mongoerror.New(mongoerror.InvalidNamespace, "Collection names cannot start or end with '.': %s", n.collection)
	case strings.HasPrefix(n.collection, "system.") && !n.ofSystem():
		return mongoerror.New(mongoerror.InvalidNamespace, "Invalid system namespace: %s", n)
	case len(n.String()) > maxNamespace:
		return mongoerror.New(mongoerror.InvalidNamespace, "Fully qualified namespace is too long. Namespace: %s Max: %d", n, maxNamespace)
	}
	return nil
}

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

func checkDatabaseName(name string) error {
	if name == "" || len(name) > maxDatabaseName || strings.ContainsAny(name, "/\\. \"$*<>:|?\x00") {
		return mongoerror.New(mongoerror.InvalidNamespace, "Invalid database name: '%s'", name)
	}
	return nil
}
