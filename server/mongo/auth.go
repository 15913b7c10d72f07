package mongo

import (
	"crypto/sha256"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// authState is who a connection has logged in as.
type authState struct {
	database, user string
}

// userDigest tells users apart, for sessions and cursors; "" is nobody.
func (a *authState) userDigest() string {
	if a.user == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(a.user + "@" + a.database))
	return string(sum[:])
}

// authorise refuses commands that the connection's user may not run.
func (r *request) authorise() error {
	if !r.server.o.Auth || r.command.open || r.conn.auth.user != "" {
		return nil
	}
	return document.NewError(codeUnauthorized, "Command %s requires authentication", r.name)
}

func authCommands() []*command { return nil }

func userCommands() []*command { return nil }

// userTable is the users that may log in.
type userTable struct{}

func (t *userTable) load(any, *Server) error { return nil }

// appendMechanisms answers saslSupportedMechs.
func (r *request) appendMechanisms(*bsoncore.DocumentBuilder) error { return nil }

// speculate answers speculativeAuthenticate.
func (r *request) speculate(*bsoncore.DocumentBuilder) error { return nil }
