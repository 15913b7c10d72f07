package mongo

import (
	"crypto/sha256"
	"errors"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// authState is who a connection has logged in as. Its fields are for the goroutine of the connection; others ask who.
type authState struct {
	database, user string
	userID         string
	digest         string  // see userDigest
	grants         *grants // what the user may do
	first          bool    // the command that runs may make the first user

	login         *conversation // a login that is under way
	conversations int32

	shared atomic.Pointer[authName] // the user, for other goroutines
}

// userDigest tells users apart, for sessions and cursors; "" is nobody.
func (a *authState) userDigest() string { return a.digest }

// loggedIn reports whether the connection is somebody's.
func (a *authState) loggedIn() bool { return a.user != "" }

// who returns the user, for any goroutine; nothing when nobody has logged in.
func (a *authState) who() (user, database string) {
	if name := a.shared.Load(); name != nil {
		return name.Name, name.DB
	}
	return "", ""
}

// digestOf tells users apart; "" is nobody.
func digestOf(user, database string) string {
	if user == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(user + "@" + database))
	return string(sum[:])
}

// codeOneLogin is of connections that somebody else has logged in on.
const codeOneLogin = document.Code(5626700)

// enter makes the user of a proven login that of the connection.
func (r *request) enter(u *userDoc, mechanism string) error {
	a, name := &r.conn.auth, authName{Name: u.User, DB: u.DB}
	if a.user != "" && (a.user != u.User || a.database != u.DB) {
		return document.NewError(codeOneLogin, "Each client connection may only be authenticated once. Previously authenticated as: %s@%s", a.user, a.database)
	}
	g, err := r.server.users.grantsOf(r.ctx, name)
	if err != nil {
		return err
	}
	if g == nil || g.userID != string(u.UserID.Data) || !r.conn.mayEnter(g.restrictions) {
		return r.loginFailed(name, mechanism)
	}
	a.user, a.database, a.userID, a.grants = u.User, u.DB, g.userID, g
	a.digest = digestOf(u.User, u.DB)
	a.shared.Store(&name)
	r.server.log.Debug("logged in", "connection", r.conn.id, "user", u.User, "database", u.DB, "mechanism", mechanism)
	return nil
}

// leave logs out.
func (a *authState) leave() {
	a.user, a.database, a.userID, a.digest, a.grants, a.login = "", "", "", "", nil, nil
	a.shared.Store(nil)
}

// refresh looks what the user may do up again, if that may have changed. A user who is gone is logged out, and so is one who may not log in from
// where the client is any more.
func (r *request) refresh() error {
	a := &r.conn.auth
	if a.user == "" || a.grants.generation == r.server.users.generation.Load() {
		return nil
	}
	g, err := r.server.users.grantsOf(r.ctx, authName{Name: a.user, DB: a.database})
	if err != nil {
		return err
	}
	if g == nil || g.userID != a.userID || !r.conn.mayEnter(g.restrictions) {
		a.leave()
		return nil
	}
	a.grants = g
	return nil
}

func (r *request) needsLogin() error {
	return document.NewError(codeUnauthorized, "Command %s requires authentication", r.name)
}

// authorise refuses commands that the connection's user may not run.
func (r *request) authorise() error {
	if !r.server.o.Auth {
		return nil
	}
	if r.has("autocommit") && r.db == adminDB && !r.endsTransaction() {
		return document.NewError(document.Code(263), "Cannot run command against the 'admin' database in a transaction.")
	}
	if err := r.refresh(); err != nil {
		return err
	}
	a := &r.conn.auth
	a.first = false
	if r.command.open {
		return nil
	}
	if a.user == "" {
		return r.allowFirst()
	}
	if !r.allowed(a.grants) {
		return document.NewError(codeUnauthorized, "not authorized on %s to execute command %s", printable(r.db), quoted(r.name, r.body))
	}
	return nil
}

// allowFirst allows somebody on this machine to make the first user of the database admin: who else could?
func (r *request) allowFirst() error {
	if r.command.name != "createUser" || r.db != adminDB || !r.conn.isLocal() {
		return r.needsLogin()
	}
	none, err := r.server.users.empty(r.ctx)
	if err != nil || !none {
		return errors.Join(err, r.needsLogin())
	}
	r.conn.auth.first = true
	return nil
}

func authCommands() []*command {
	return []*command{
		{name: "saslStart", run: (*request).saslStart, fields: []string{"mechanism", "payload", "autoAuthorize", "options", "db"}, open: true, stable: true, help: "begins a login"},
		{name: "saslContinue", run: (*request).saslContinue, fields: []string{"conversationId", "payload"}, open: true, stable: true, help: "goes on with a login"},
		{name: "authenticate", run: (*request).authenticate, fields: []string{"mechanism", "user", "db"}, open: true, stable: true, help: "logs in with a certificate"},
		{name: "logout", run: (*request).logout, open: true, help: "logs out"},
		{name: "connectionStatus", run: (*request).connectionStatus, fields: []string{"showPrivileges"}, open: true, help: "tells who has logged in"},
	}
}

func (r *request) saslStart() (bsoncore.Document, error) { return r.startLogin(r.args, r.db) }

func (r *request) saslContinue() (bsoncore.Document, error) {
	id, err := r.number("conversationId")
	if err != nil {
		return nil, err
	}
	return r.continueLogin(id, r.args["payload"])
}

func (r *request) authenticate() (bsoncore.Document, error) { return r.certificateLogin(r.args, r.db) }

func (r *request) logout() (bsoncore.Document, error) {
	if a := &r.conn.auth; a.database == r.db || a.user == "" {
		a.leave()
	}
	return ok(), nil
}

// connectionStatus tells who has logged in, and what they may do.
func (r *request) connectionStatus() (bsoncore.Document, error) {
	show, err := r.flag("showPrivileges")
	if err != nil {
		return nil, err
	}
	if err := r.refresh(); err != nil {
		return nil, err
	}
	a, users, g := &r.conn.auth, bson.A{}, &grants{roles: []authName{}, privileges: []privilege{}}
	if a.user != "" {
		g = a.grants
		users = append(users, bson.D{{Key: "user", Value: a.user}, {Key: "db", Value: a.database}})
	}
	info := bson.D{{Key: "authenticatedUsers", Value: users}, {Key: "authenticatedUserRoles", Value: g.roles}}
	if show {
		info = append(info, bson.E{Key: "authenticatedUserPrivileges", Value: g.privileges})
	}
	return encode(bson.D{{Key: "authInfo", Value: info}, {Key: "ok", Value: 1.0}})
}

// appendMechanisms answers saslSupportedMechs. Of a user who is not there it says what is usual, so as not to tell who is.
func (r *request) appendMechanisms(b *bsoncore.DocumentBuilder) error {
	if !r.has("saslSupportedMechs") {
		return nil
	}
	name, err := userOf(r.args["saslSupportedMechs"])
	if err != nil {
		return err
	}
	u, err := r.server.users.find(r.ctx, name)
	if err != nil {
		return err
	}
	list := []string{scramSHA1, scramSHA256}
	if u != nil && !u.Credentials.External { // that is no mechanism of SASL
		list = u.Credentials.mechanisms()
	}
	array := bsoncore.NewArrayBuilder()
	for _, m := range list {
		array.AppendString(m)
	}
	b.AppendArray("saslSupportedMechs", array.Build())
	return nil
}

// speculate answers speculativeAuthenticate: the first step of a login, with the handshake. One that fails is not mentioned.
func (r *request) speculate(b *bsoncore.DocumentBuilder) error {
	spec, err := r.document("speculativeAuthenticate")
	if spec == nil || err != nil {
		return err
	}
	first, err := spec.IndexErr(0)
	if err != nil {
		return nil
	}
	args := argsOf(spec)
	db, _ := args["db"].StringValueOK()
	var reply bsoncore.Document
	switch first.Key() {
	case "saslStart":
		reply, err = r.startLogin(args, db)
		if x := r.conn.auth.login; err == nil && x.lacks {
			// saslSupportedMechs says so too. The driver takes another mechanism only if this is no conversation.
			r.conn.auth.login, reply = nil, nil
		}
	case "authenticate":
		if db == "" {
			db = externalDB
		}
		reply, err = r.certificateLogin(args, db)
	}
	if err == nil && reply != nil {
		b.AppendDocument("speculativeAuthenticate", reply)
	}
	return nil
}
