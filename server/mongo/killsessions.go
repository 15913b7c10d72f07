package mongo

import (
	"crypto/sha256"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

func (r *request) killSessions() (bsoncore.Document, error) {
	ids := map[string]bool{}
	err := r.eachSession(func(id string, _ bsoncore.Document) error {
		ids[id] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.server.killSessions(ids)
	return ok(), nil
}

// killSessions ends what sessions have open: the commands that they run, their transactions and their cursors. What they have written stays
// known, as on a mongod: their clients may send it again.
func (s *Server) killSessions(ids map[string]bool) {
	s.ops.killSessions(ids)
	for id := range ids {
		s.sessions.kill(id)
	}
}

// sessionChoice is which sessions are meant: to end, or to be listed. There may be as many of them as of wishes, so each is looked up.
type sessionChoice struct {
	all   bool
	ids   map[string]bool
	users map[string]bool // by the hashes of their names
}

func (c *sessionChoice) has(id string) bool { return c.all || c.ids[id] || c.users[id[uuidBytes:]] }

// killChosen ends the sessions of a choice, but for the command's own.
func (r *request) killChosen(choice *sessionChoice) {
	t := &r.server.sessions
	ids := map[string]bool{}
	t.mu.Lock()
	for id := range t.byID {
		own := r.session != nil && id == r.session.id
		if !own && choice.has(id) {
			ids[id] = true
		}
	}
	t.mu.Unlock()
	r.server.killSessions(ids)
}

func (r *request) killAllSessions() (bsoncore.Document, error) {
	docs, err := r.documents(r.name)
	if err != nil {
		return nil, err
	}
	choice := sessionChoice{all: len(docs) == 0, users: map[string]bool{}}
	for _, doc := range docs {
		name, err := r.ownerOfSessions(doc)
		if err != nil {
			return nil, err
		}
		choice.users[digestOf(name.Name, name.DB)] = true
	}
	r.killChosen(&choice)
	return ok(), nil
}

// ownerOfSessions reads the name of a user whose sessions are to end.
func (r *request) ownerOfSessions(doc bsoncore.Document) (authName, error) {
	name, err := userNamed(r.command.name, doc)
	if err != nil {
		return name, err
	}
	if u, err := r.server.users.find(r.ctx, name); u == nil {
		if err == nil {
			err = noUser(name)
		}
		return name, err
	}
	return name, nil
}

// userNamed reads the name of a user, {user: name, db: database}, in a field of a command.
func userNamed(field string, doc bsoncore.Document) (authName, error) {
	args := argsOf(doc)
	var name authName
	for _, part := range []struct {
		name string
		into *string
	}{{"user", &name.Name}, {"db", &name.DB}} {
		path := field + "." + part.name
		v, given := args[part.name]
		if !given {
			return name, missingField(path)
		}
		var isText bool
		if *part.into, isText = v.StringValueOK(); !isText {
			return name, wrongType(path, v, "string")
		}
		delete(args, part.name)
	}
	for other := range args {
		return name, document.NewError(codeUnknownField, "BSON field '%s.%s' is an unknown field.", field, other)
	}
	return name, nil
}

func (r *request) killAllSessionsByPattern() (bsoncore.Document, error) {
	docs, err := r.documents(r.name)
	if err != nil {
		return nil, err
	}
	choice := sessionChoice{all: len(docs) == 0, ids: map[string]bool{}, users: map[string]bool{}}
	for _, doc := range docs {
		if err := r.addPattern(&choice, doc); err != nil {
			return nil, err
		}
	}
	r.killChosen(&choice)
	return ok(), nil
}

// addPattern adds the sessions of a pattern: one session, or those of a user by the hash of the name, or neither, which is all sessions.
func (r *request) addPattern(choice *sessionChoice, doc bsoncore.Document) error {
	args, path := argsOf(doc), r.command.name+"."
	for field := range args {
		switch field {
		case "lsid", "uid":
		case "users", "roles": // for whom to act, which is for the servers of a cluster, and no choice of sessions
			return document.NewError(codeNotSupported, "%s: '%s' in a pattern is not supported", r.command.name, field)
		default:
			return document.NewError(codeUnknownField, "BSON field '%s%s' is an unknown field.", path, field)
		}
	}
	user, ofUser := args["uid"]
	digest := ""
	if ofUser {
		var err error
		if digest, err = readUserDigest(path+"uid", user); err != nil {
			return err
		}
	}
	v, one := args["lsid"]
	switch {
	case one:
		id, err := readSession(path+"lsid", v)
		choice.ids[id] = err == nil
		return err
	case ofUser:
		choice.users[digest] = true
	default:
		choice.all = true
	}
	return nil
}

// readSession reads the id of a session, its user's included.
func readSession(path string, v bsoncore.Value) (string, error) {
	lsid, isDoc := v.DocumentOK()
	if !isDoc {
		return "", wrongType(path, v, "object")
	}
	uuid, err := readUUID(path, lsid)
	if err != nil {
		return "", err
	}
	digest, err := readUserDigest(path+".uid", argsOf(lsid)["uid"])
	return uuid + digest, err
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
