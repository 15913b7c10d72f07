package mongo

import (
	"crypto/sha256"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

func (r *request) killSessions() (bsoncore.Document, error) {
	return ok(), r.eachSession(func(id string, _ bsoncore.Document) error {
		r.server.killSession(id)
		return nil
	})
}

// killSession ends what a session has open: the commands that it runs, its transaction and its cursors. What it has written stays known, as on
// a mongod: its client may send it again.
func (s *Server) killSession(id string) {
	s.ops.killSession(id)
	s.sessions.kill(id)
}

// killMatching ends the sessions for whose ids one of the conditions holds, all when there are none, but for the command's own.
func (r *request) killMatching(conditions []func(id string) bool) {
	t := &r.server.sessions
	t.mu.Lock()
	var ids []string
	for id := range t.byID {
		own := r.session != nil && id == r.session.id
		if !own && (len(conditions) == 0 || slices.ContainsFunc(conditions, func(is func(string) bool) bool { return is(id) })) {
			ids = append(ids, id)
		}
	}
	t.mu.Unlock()
	for _, id := range ids {
		r.server.killSession(id)
	}
}

// ofUser is the condition that a session is that of a user.
func ofUser(digest string) func(id string) bool {
	return func(id string) bool { return id[uuidBytes:] == digest }
}

func (r *request) killAllSessions() (bsoncore.Document, error) {
	docs, err := r.documents(r.name)
	if err != nil {
		return nil, err
	}
	var users []func(id string) bool
	for _, doc := range docs {
		name, err := r.ownerOfSessions(doc)
		if err != nil {
			return nil, err
		}
		users = append(users, ofUser(digestOf(name.Role, name.DB)))
	}
	r.killMatching(users)
	return ok(), nil
}

// ownerOfSessions reads the name of a user whose sessions are to end.
func (r *request) ownerOfSessions(doc bsoncore.Document) (roleName, error) {
	args := argsOf(doc)
	var name roleName
	for _, field := range []struct {
		name string
		into *string
	}{{"user", &name.Role}, {"db", &name.DB}} {
		path := r.command.name + "." + field.name
		v, given := args[field.name]
		if !given {
			return name, missingField(path)
		}
		var isText bool
		if *field.into, isText = v.StringValueOK(); !isText {
			return name, wrongType(path, v, "string")
		}
		delete(args, field.name)
	}
	for field := range args {
		return name, document.NewError(codeUnknownField, "BSON field '%s.%s' is an unknown field.", r.command.name, field)
	}
	if u, err := r.server.users.find(r.ctx, name); u == nil {
		if err == nil {
			err = document.NewError(document.Code(11), "Could not find user \"%s\" for db \"%s\"", name.Role, name.DB)
		}
		return name, err
	}
	return name, nil
}

func (r *request) killAllSessionsByPattern() (bsoncore.Document, error) {
	docs, err := r.documents(r.name)
	if err != nil {
		return nil, err
	}
	var patterns []func(id string) bool
	for _, doc := range docs {
		matches, err := r.sessionPattern(doc)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, matches)
	}
	r.killMatching(patterns)
	return ok(), nil
}

// sessionPattern reads a pattern of sessions: one session, or those of a user by the hash of the name, or neither, which is all sessions.
func (r *request) sessionPattern(doc bsoncore.Document) (func(id string) bool, error) {
	args, path := argsOf(doc), r.command.name+"."
	for field := range args {
		switch field {
		case "lsid", "uid":
		case "users", "roles": // for whom to act, which is for the servers of a cluster, and no choice of sessions
			return nil, document.NewError(codeNotSupported, "%s: '%s' in a pattern is not supported", r.command.name, field)
		default:
			return nil, document.NewError(codeUnknownField, "BSON field '%s%s' is an unknown field.", path, field)
		}
	}
	matches := func(string) bool { return true }
	if v, given := args["uid"]; given {
		digest, err := readUserDigest(path+"uid", v)
		if err != nil {
			return nil, err
		}
		matches = ofUser(digest)
	}
	if v, given := args["lsid"]; given {
		lsid, isDoc := v.DocumentOK()
		if !isDoc {
			return nil, wrongType(path+"lsid", v, "object")
		}
		uuid, err := readUUID(path+"lsid", lsid)
		if err != nil {
			return nil, err
		}
		digest, err := readUserDigest(path+"lsid.uid", argsOf(lsid)["uid"])
		if err != nil {
			return nil, err
		}
		matches = func(id string) bool { return id == uuid+digest }
	}
	return matches, nil
}

// readUserDigest reads what tells users apart: a hash, also of nobody's name.
func readUserDigest(field string, v bsoncore.Value) (string, error) {
	_, hash, isBinary := v.BinaryOK()
	switch {
	case v.Type == 0:
		return "", missingField(field)
	case !isBinary:
		return "", wrongType(field, v, "binData")
	case len(hash) != sha256.Size:
		return "", document.NewError(document.Code(12), "Unsupported SHA256Block hash length: %d", len(hash))
	case sha256.Sum256(nil) == [sha256.Size]byte(hash):
		return "", nil
	}
	return string(hash), nil
}

// uuidBytes is how many bytes of a session's id are those of its UUID; the others are its user's.
const uuidBytes = 16

// readUUID reads the UUID of a session's id.
func readUUID(field string, doc bsoncore.Document) (string, error) {
	var id bsoncore.Value
	for rest := doc[4 : len(doc)-1]; len(rest) > 0; {
		name, v, after, ok := cutElement(rest)
		if rest = after; !ok {
			return "", document.NewError(document.FailedToParse, "%s cannot be read", field)
		}
		switch string(name) {
		case "id":
			id = v
		case "uid":
		case "txnNumber", "txnUUID": // of sessions that servers of a cluster begin
			return "", document.NewError(codeInvalidOptions, "%s: internal sessions are not supported", field)
		default:
			return "", document.NewError(codeUnknownField, "BSON field '%s.%s' is an unknown field.", field, name)
		}
	}
	subtype, data, isBinary := id.BinaryOK()
	switch {
	case id.Type == 0:
		return "", missingField(field + ".id")
	case !isBinary || subtype != bson.TypeBinaryUUID:
		return "", wrongType(field+".id", id, "binData', of subtype 'UUID")
	case len(data) != uuidBytes:
		return "", document.NewError(document.Code(207), "%s.id must be a UUID of %d bytes", field, uuidBytes)
	}
	return string(data), nil
}
