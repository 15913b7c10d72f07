package mongo

import (
	"crypto/sha256"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// sessionStage answers the stages $listLocalSessions and $listSessions, which are about the same sessions here: those of the user who asks,
// which is own, of the users that are named, or of all.
func (r *request) sessionStage(stage string, spec bson.RawValue, own string) ([]bson.Raw, error) {
	if stage == "$listSessions" && (r.db != "config" || r.targetName() != "system.sessions") {
		return nil, document.NewError(codeInvalidNamespace, "$listSessions may only be run against config.system.sessions")
	}
	options, isDoc := spec.DocumentOK()
	if !isDoc {
		return nil, document.NewError(document.TypeMismatch, "%s options must be specified in an object, but found: %s", stage, document.TypeName(spec.Type))
	}
	all, users, err := sessionOwners(stage, bsoncore.Document(options))
	if err != nil {
		return nil, err
	}
	if len(users) == 0 {
		users = map[string]bool{own: true}
	}
	return r.server.sessions.rows(&sessionChoice{all: all, users: users}), nil
}

// sessionOwners reads whose sessions a stage is to list: all, or those of some users by the hashes of their names.
func sessionOwners(stage string, options bsoncore.Document) (all bool, users map[string]bool, err error) {
	for _, e := range elementsOf(options) {
		v, field := e.Value(), stage+"."+e.Key()
		switch e.Key() {
		case "allUsers":
			if v.Type == bsoncore.TypeNull {
				continue
			}
			var isBool bool
			if all, isBool = v.BooleanOK(); !isBool {
				return false, nil, wrongType(field, v, "bool")
			}
		case "users":
			array, isArray := v.ArrayOK()
			if !isArray {
				return false, nil, wrongType(field, v, "array")
			}
			if users, err = usersNamed(field, array); err != nil {
				return false, nil, err
			}
		default:
			return false, nil, document.NewError(codeUnknownField, "BSON field '%s' is an unknown field.", field)
		}
	}
	if all && len(users) > 0 {
		return false, nil, document.NewError(document.Code(12), "%s may not specify {allUsers:true} and {users:[...]} at the same time", stage)
	}
	return all, users, nil
}

// usersNamed reads names of users, {user: name, db: database} each.
func usersNamed(field string, array bsoncore.Array) (map[string]bool, error) {
	values, err := array.Values()
	if err != nil {
		return nil, document.NewError(document.FailedToParse, "%s: %v", field, err)
	}
	users := map[string]bool{}
	for i, v := range values {
		doc, isDoc := v.DocumentOK()
		if !isDoc {
			return nil, wrongType(field+"."+itoa(i), v, "object")
		}
		name, err := userNamed(field, doc)
		if err != nil {
			return nil, err
		}
		users[digestOf(name.Name, name.DB)] = true
	}
	return users, nil
}

// onlyOwnSessions reports whether a stage lists no sessions but those of the user who asks. What cannot be read will be refused.
func (r *request) onlyOwnSessions(stage string, options bsoncore.Document) bool {
	all, users, err := sessionOwners(stage, options)
	if err != nil {
		return true
	}
	own := r.conn.auth.userDigest()
	return !all && (len(users) == 0 || len(users) == 1 && users[own])
}

// rows describes the sessions of a choice.
func (t *sessionTable) rows(choice *sessionChoice) []bson.Raw {
	nobody := sha256.Sum256(nil)
	t.mu.Lock()
	defer t.mu.Unlock()
	var rows []bson.Raw
	for id, s := range t.byID {
		if !choice.has(id) {
			continue
		}
		user := []byte(id[uuidBytes:])
		if len(user) == 0 {
			user = nobody[:]
		}
		name := bsoncore.NewDocumentBuilder().AppendBinary("id", bson.TypeBinaryUUID, []byte(id[:uuidBytes])).AppendBinary("uid", bson.TypeBinaryGeneric, user)
		rows = append(rows, bson.Raw(bsoncore.NewDocumentBuilder().AppendDocument("_id", name.Build()).AppendDateTime("lastUse", s.used.UnixMilli()).Build()))
	}
	return rows
}
