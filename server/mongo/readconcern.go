package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// Fields of a read concern that are times of the cluster.
const (
	afterTime = "afterClusterTime" // what was written until then is to be seen, as it always is: there is no other member
	atTime    = "atClusterTime"    // what was written until then, and nothing else, is to be seen
)

// checkReadConcern refuses a read concern that a mongod refuses. What cannot be promised must not look as if it were.
func (r *request) checkReadConcern() error {
	level := ""
	var after, at *bson.Timestamp
	for _, e := range elementsOf(r.readConcern) {
		v := e.Value()
		switch name := e.Key(); name {
		case "level":
			var isText bool
			if level, isText = v.StringValueOK(); !isText {
				return mistyped(name, v, "string")
			}
			switch level {
			case "local", "available", "majority", "linearizable", "snapshot":
			default:
				return document.NewError(document.FailedToParse, "Enumeration value '%s' for field 'readConcern.level' is not a valid value.", level)
			}
		case afterTime, atTime:
			seconds, counter, isTime := v.TimestampOK()
			if !isTime {
				return mistyped(name, v, "timestamp")
			}
			if name == afterTime {
				after = &bson.Timestamp{T: seconds, I: counter}
			} else {
				at = &bson.Timestamp{T: seconds, I: counter}
			}
		case "afterOpTime":
			if _, isDocument := v.DocumentOK(); !isDocument {
				return mistyped(name, v, "object")
			}
		case "provenance", "allowTransactionTableSnapshot", "$waitLastStableRecoveryTimestamp":
		default:
			return document.NewError(codeInvalidOptions, "Unrecognized option in readConcern: %s", name)
		}
	}
	if err := r.mayReadAt(level); err != nil {
		return err
	}
	switch {
	case after != nil && at != nil:
		return document.NewError(codeInvalidOptions, "Specifying a timestamp for readConcern snapshot in a causally consistent session is not allowed.")
	case after != nil && (level == "available" || level == "linearizable"):
		return document.NewError(codeInvalidOptions, "afterClusterTime field can be set only if level is equal to majority, local, or snapshot")
	case at != nil && level != "snapshot":
		return document.NewError(codeInvalidOptions, "atClusterTime field can be set only if level is equal to snapshot")
	case at != nil && r.has("autocommit"): // it would read the present, which is another moment
		return document.NewError(codeNotSupported, "atClusterTime is not supported in transactions")
	case after != nil:
		return r.checkTime(afterTime, *after)
	case at != nil:
		return r.checkTime(atTime, *at)
	}
	return nil
}

// mayReadAt refuses a read concern of a command that does not read documents, or not by it: what is not kept must not be promised.
func (r *request) mayReadAt(level string) error {
	if level == "" || level == "local" || r.has("autocommit") { // in a transaction it is the transaction's
		return nil
	}
	switch r.command.name {
	case "find", "aggregate", "distinct", "getMore":
		return nil
	case "count":
		if level != "snapshot" {
			return nil
		}
	}
	return document.NewError(codeInvalidOptions, "Command %s does not support { readConcern: { level: \"%s\", provenance: \"clientSupplied\" } } :: caused by :: read concern not supported", r.name, level)
}

// checkTime refuses a time that cannot have been heard of: from an answer of this server's, or, as drivers pass on the newest that they have
// heard of from any, from the command itself. After a power cut that may be one of a write that is lost.
func (r *request) checkTime(field string, t bson.Timestamp) error {
	if t.IsZero() {
		return document.NewError(codeInvalidOptions, "%s cannot be a null timestamp", field)
	}
	if r.server.o.Standalone {
		return nil
	}
	now := r.server.store.LastTime()
	if !t.After(now) {
		return nil
	}
	gossip, _ := r.args["$clusterTime"].DocumentOK()
	if seconds, counter, told := bsoncore.Document(gossip).Lookup("clusterTime").TimestampOK(); told && !t.After(bson.Timestamp{T: seconds, I: counter}) {
		return nil
	}
	return document.NewError(codeInvalidOptions, "readConcern %s value must not be greater than the current clusterTime. Requested clusterTime: %v; current clusterTime: %v", field, t, now)
}

// mistyped is the error of a field of a read concern that is of a wrong type.
func mistyped(field string, v bsoncore.Value, want string) error {
	return document.NewError(document.TypeMismatch, "\"%s\" had the wrong type. Expected %s, found %s", field, want, document.TypeName(bson.Type(v.Type)))
}
