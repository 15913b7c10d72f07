package mongo

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
)

// The oplog's namespace.
const (
	oplogDatabase   = "local"
	oplogCollection = "oplog.rs"
)

func isOplog(db, collection string) bool { return db == oplogDatabase && collection == oplogCollection }

// hasOplog reports whether the store has an oplog.
func (s *Server) hasOplog(ctx context.Context) bool {
	list, err := s.store.Database(oplogDatabase).Collections(ctx)
	return err == nil && slices.ContainsFunc(list, func(c document.CollectionInfo) bool { return c.Name == oplogCollection })
}

// noteStart puts an entry into the oplog, so that it has one: those who follow it begin with looking for the last.
func (s *Server) noteStart(ctx context.Context) error {
	if s.o.Standalone {
		return nil
	}
	message, err := bson.Marshal(bson.D{{Key: "msg", Value: "new primary"}})
	if err != nil {
		return err
	}
	if err := s.store.Noop(ctx, message); !errors.Is(err, pando.ErrReadOnly) {
		return err
	}
	return nil
}

// writesOplog refuses what would write to the oplog, or remove it, as MongoDB does.
func (r *request) writesOplog() error {
	name, _ := r.target.StringValueOK()
	switch {
	case r.command.name == "renameCollection":
		to, _ := r.args["to"].StringValueOK()
		if oplog := oplogDatabase + "." + oplogCollection; name == oplog || to == oplog {
			return document.NewError(codeIllegalOperation, "can't rename live oplog while replicating")
		}
		for _, ns := range []string{name, to} {
			if _, c, _ := strings.Cut(ns, "."); c == profileName || c == viewsCollection {
				return document.NewError(codeIllegalOperation, "cannot rename to or from %s", ns)
			}
		}
		return nil
	case r.db == oplogDatabase && r.command.name == "dropDatabase" && !r.server.o.Standalone:
		return document.NewError(codeIllegalOperation, "Cannot drop '%s' database while replication is active", r.db)
	case !isOplog(r.db, name):
		return r.writesSystem(name)
	}
	switch r.command.name {
	case "drop":
		return document.NewError(document.Code(5255000), "can't drop live oplog while replicating")
	case "create":
		return document.NewError(document.NamespaceExists, "Collection %s.%s already exists.", r.db, name)
	case "insert", "update", "delete", "findAndModify", "createIndexes", "dropIndexes", "collMod":
		return document.NewError(document.Code(73), "cannot write to %s.%s", r.db, name)
	}
	return nil
}

// sortedNames returns the keys of a map in their order.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// writesSystem refuses what nobody but the server itself writes to: the profile of a database, and its list of views.
func (r *request) writesSystem(name string) error {
	if name != profileName && name != viewsCollection {
		return nil
	}
	switch r.command.name {
	case "insert", "update", "delete", "findAndModify", "createIndexes":
		return document.NewError(codeInvalidNamespace, "cannot write to %s.%s", r.db, name)
	case "drop":
		if name == profileName && r.server.profile.of(r.db).level > 0 {
			return document.NewError(codeIllegalOperation, "turn off profiling before dropping system.profile collection")
		}
	}
	return nil
}
