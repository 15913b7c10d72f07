package mongo

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// Where users and roles are stored, in MongoDB's shape, so that its tools carry them from one server to another.
const (
	adminDB           = "admin"
	externalDB        = "$external" // of users who log in with a certificate
	usersCollection   = "system.users"
	rolesCollection   = "system.roles"
	versionCollection = "system.version"
	authSchema        = 5 // of those collections
)

// userDoc is a user as it is stored.
type userDoc struct {
	ID           string        `bson:"_id"`
	UserID       bson.Binary   `bson:"userId"`
	User         string        `bson:"user"`
	DB           string        `bson:"db"`
	Credentials  credentials   `bson:"credentials"`
	CustomData   bson.Raw      `bson:"customData,omitempty"`
	Roles        []authName    `bson:"roles"`
	Restrictions []restriction `bson:"authenticationRestrictions,omitempty"`
}

// userTable is the users that may log in, and what they may do.
type userTable struct {
	store      *document.Store
	rules      map[string]rule // of who may run which command
	secret     [32]byte        // of the decoys
	nobody     bson.Raw        // is read in place of a user who is not there, so that it takes as long
	generation atomic.Uint64   // grows when users or roles may have changed
	some       atomic.Bool     // there are users, and were at that generation
	mu         sync.Mutex      // held while users or roles are changed
}

// load makes the table ready.
func (t *userTable) load(_ context.Context, s *Server) error {
	t.store, t.rules = s.store, commandRules()
	if _, err := rand.Read(t.secret[:]); err != nil {
		return err
	}
	u := &userDoc{ID: "admin.nobody", UserID: newUUID(), User: "nobody", DB: adminDB, Roles: []authName{{Name: "read", DB: adminDB}}}
	u.Credentials.SHA1 = t.decoyCredential(scramSHA1)
	u.Credentials.SHA256 = t.decoyCredential(scramSHA256)
	var err error
	t.nobody, err = bson.Marshal(u)
	return err
}

func (t *userTable) users() *document.Collection {
	return t.store.Database(adminDB).Lookup(usersCollection)
}

func (t *userTable) roles() *document.Collection {
	return t.store.Database(adminDB).Lookup(rolesCollection)
}

// changed makes all connections look at their privileges again.
func (t *userTable) changed() {
	t.generation.Add(1)
	t.some.Store(false)
}

// wrote is told of each command that has ended: it may have changed users or roles behind our back.
func (t *userTable) wrote(r *request) {
	if r.mayHaveWrittenTo(adminDB) {
		t.changed()
	}
}

// mayHaveWrittenTo reports whether the command is one that changes collections of a database of the server's own, be it sent to that one or not. A
// transaction changes none of them.
func (r *request) mayHaveWrittenTo(database string) bool {
	if r.command == nil || !r.command.write || r.command.name == "commitTransaction" {
		return false
	}
	switch r.command.name {
	case "applyOps", "renameCollection":
		return true
	case "aggregate":
		return r.db == database || r.writesOut()
	}
	return r.db == database
}

// expire makes all connections look at their privileges again where users or roles expire by a TTL index: nobody is told of that.
func (t *userTable) expire(ctx context.Context) {
	for _, c := range []*document.Collection{t.users(), t.roles()} {
		list, _ := c.Indexes(ctx) // it may not be there
		if slices.ContainsFunc(list, func(x document.IndexInfo) bool {
			return bsoncore.Document(x.Spec).Lookup("expireAfterSeconds").Type != 0
		}) {
			t.changed()
			return
		}
	}
}

// find returns a user, nil when there is none.
func (t *userTable) find(ctx context.Context, name authName) (*userDoc, error) {
	u := &userDoc{}
	if there, err := fetch(ctx, t.users(), "user", name, u); !there || err != nil {
		return nil, err
	}
	if u.User != name.Name || u.DB != name.DB {
		return nil, nil // the dot is elsewhere: a.b and c, b.c and a
	}
	return u, nil
}

// fetch reads the document of a user or role, and reports whether there is one.
func fetch(ctx context.Context, c *document.Collection, kind string, name authName, into any) (bool, error) {
	doc, err := c.Get(ctx, name.id())
	if errors.Is(err, document.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := bson.Unmarshal(doc, into); err != nil {
		return false, document.NewError(document.Code(12), "%s %s is not stored as %ss are: %v", kind, name, kind, err)
	}
	return true, nil
}

// empty reports whether there are no users yet.
func (t *userTable) empty(ctx context.Context) (bool, error) {
	if t.some.Load() {
		return false, nil
	}
	before := t.generation.Load()
	_, err := t.users().FindOne(ctx, nil, nil)
	if errors.Is(err, document.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	t.some.Store(true)
	if t.generation.Load() != before {
		t.some.Store(false)
	}
	return false, nil
}

// grantsOf collects what a user may do; nil when the user is gone.
func (t *userTable) grantsOf(ctx context.Context, name authName) (*grants, error) {
	generation := t.generation.Load()
	u, err := t.find(ctx, name)
	if u == nil || err != nil {
		return nil, err
	}
	g, err := t.expand(ctx, u.Roles)
	if err != nil {
		return nil, err
	}
	g.generation, g.userID = generation, string(u.UserID.Data)
	g.restrictions = append(g.restrictions, u.Restrictions)
	return g, nil
}

// named reads the name of the user or role that the command's first field gives.
func (r *request) named() (authName, error) {
	text, isText := r.target.StringValueOK()
	if !isText {
		return authName{}, wrongType(r.name+"."+r.name, r.target, "string")
	}
	return authName{Name: text, DB: r.db}, nil
}

func userCommands() []*command {
	user := []string{"pwd", "customData", "roles", "digestPassword", "mechanisms", "authenticationRestrictions"}
	return append([]*command{
		{name: "createUser", run: (*request).createUser, fields: user, write: true, help: "makes a user"},
		{name: "updateUser", run: (*request).updateUser, fields: user, write: true, help: "changes a user"},
		{name: "dropUser", run: (*request).dropUser, write: true, help: "drops a user"},
		{name: "dropAllUsersFromDatabase", run: (*request).dropUsers, write: true, help: "drops the users of a database"},
		{name: "grantRolesToUser", run: (*request).changeUserRoles, fields: []string{"roles"}, write: true, help: "gives a user roles"},
		{name: "revokeRolesFromUser", run: (*request).changeUserRoles, fields: []string{"roles"}, write: true, help: "takes roles from a user"},
		{name: "usersInfo", run: (*request).usersInfo, help: "tells about users",
			fields: []string{"showCredentials", "showCustomData", "showPrivileges", "showAuthenticationRestrictions", "filter"}},
		{name: "_mergeAuthzCollections", run: (*request).mergeUsers, admin: true, write: true, help: "takes restored users and roles over",
			fields: []string{"tempUsersCollection", "tempRolesCollection", "db", "drop"}},
		{name: "invalidateUserCache", run: (*request).invalidate, help: "reads users and roles again"},
	}, roleCommands()...)
}

// password reads what createUser and updateUser say of the password; nil when they say nothing.
func (r *request) password(user string, mechanisms []string) (*credentials, error) {
	v, given := r.args["pwd"]
	if !given {
		return nil, nil
	}
	password, isText := v.StringValueOK()
	if !isText {
		return nil, wrongType(r.name+".pwd", v, "string")
	}
	digested := false
	if r.has("digestPassword") {
		digest, err := r.flag("digestPassword")
		if err != nil {
			return nil, err
		}
		digested = !digest
	}
	return newCredentials(user, password, digested, mechanisms)
}

// mechanisms reads the mechanisms that a command lists; nil when it does not.
func (r *request) mechanisms() ([]string, error) {
	v, given := r.args["mechanisms"]
	if !given {
		return nil, nil
	}
	array, isArray := v.ArrayOK()
	if !isArray {
		return nil, wrongType(r.name+".mechanisms", v, "array")
	}
	values, err := array.Values()
	if err != nil {
		return nil, document.NewError(document.FailedToParse, "%s.mechanisms: %v", r.name, err)
	}
	if len(values) == 0 {
		return nil, document.NewError(document.BadValue, "mechanisms field must not be empty")
	}
	var list []string
	for _, v := range values {
		m, _ := v.StringValueOK()
		if m != scramSHA1 && m != scramSHA256 {
			return nil, document.NewError(document.BadValue, "Unknown auth mechanism '%s'", printable(m))
		}
		list = append(list, m)
	}
	return list, nil
}

func (r *request) createUser() (bsoncore.Document, error) {
	u, err := r.newUser()
	if err != nil {
		return nil, err
	}
	t := &r.server.users
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.conn.auth.first { // nobody has logged in: only the very first user may be made so
		if none, err := t.empty(r.ctx); err != nil || !none {
			return nil, errors.Join(err, r.needsLogin())
		}
	}
	if err := t.checkRoles(r.ctx, u.Roles); err != nil {
		return nil, err
	}
	if err := t.prepare(r.ctx); err != nil {
		return nil, err
	}
	defer t.changed()
	if _, err := t.users().Insert(r.ctx, u); errors.Is(err, document.DuplicateKey) {
		return nil, document.NewError(document.Code(51003), "User \"%s@%s\" already exists", u.User, u.DB)
	} else if err != nil {
		return nil, err
	}
	return ok(), nil
}

// newUser reads the user that createUser makes.
func (r *request) newUser() (*userDoc, error) {
	name, err := r.named()
	if err != nil {
		return nil, err
	}
	u := &userDoc{ID: name.id(), User: name.Name, DB: name.DB, UserID: newUUID()}
	if u.Roles, err = r.roles(); err != nil {
		return nil, err
	}
	_, password := r.args["pwd"]
	switch {
	case name.Name == "":
		return nil, document.NewError(document.BadValue, "User document needs 'user' field to be non-empty")
	case strings.ContainsRune(name.Name, 0):
		return nil, document.NewError(document.BadValue, "a user's name must not contain null characters")
	case name.DB == "local":
		return nil, document.NewError(document.BadValue, "Cannot create users in the local database")
	case name.DB == externalDB && password:
		return nil, document.NewError(document.BadValue, "Cannot set the password for users defined on the '$external' database")
	case name.DB != externalDB && !password:
		return nil, document.NewError(document.BadValue, "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db")
	}
	mechanisms, err := r.mechanisms()
	if err != nil {
		return nil, err
	}
	if mechanisms == nil {
		mechanisms = []string{scramSHA1, scramSHA256}
	}
	if c, err := r.password(name.Name, mechanisms); err != nil {
		return nil, err
	} else if c != nil {
		u.Credentials = *c
	}
	u.Credentials.External = name.DB == externalDB
	custom, err := r.document("customData")
	if err != nil {
		return nil, err
	}
	u.CustomData = bson.Raw(custom)
	u.Restrictions, err = r.restrictions()
	return u, err
}

// newUUID makes a random UUID.
func newUUID() bson.Binary {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return bson.Binary{Subtype: bson.TypeBinaryUUID, Data: b}
}

// prepare makes the collections that users and roles are stored in: last what says that all of it is there. The table is locked.
func (t *userTable) prepare(ctx context.Context) error {
	if list, err := t.users().Indexes(ctx); err == nil && len(list) > 1 {
		return nil
	}
	_, err := t.store.Database(adminDB).Lookup(versionCollection).Replace(ctx, bson.D{{Key: "_id", Value: "authSchema"}},
		bson.D{{Key: "_id", Value: "authSchema"}, {Key: "currentVersion", Value: int32(authSchema)}}, &document.UpdateOptions{Upsert: true})
	if err != nil {
		return err
	}
	if _, err := t.roles().CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "role", Value: 1}, {Key: "db", Value: 1}}, Unique: true}); err != nil {
		return err
	}
	_, err = t.users().CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "user", Value: 1}, {Key: "db", Value: 1}}, Unique: true})
	return err
}

func (r *request) updateUser() (bsoncore.Document, error) {
	name, err := r.named()
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc([]string{"pwd", "customData", "roles", "mechanisms", "authenticationRestrictions"}, r.has) {
		return nil, document.NewError(document.BadValue, "Must specify at least one field to update in updateUser")
	}
	if r.has("pwd") && name.DB == externalDB {
		return nil, document.NewError(document.BadValue, "Cannot set the password for users defined on the '$external' database")
	}
	return r.changeUser(name, document.NewError(codeUserNotFound, "User %s not found", name), func(u *userDoc) (bson.D, error) {
		set, unset, err := r.userChanges(u)
		if err != nil {
			return nil, err
		}
		update := bson.D{}
		if len(set) > 0 {
			update = append(update, bson.E{Key: "$set", Value: set})
		}
		if len(unset) > 0 {
			update = append(update, bson.E{Key: "$unset", Value: unset})
		}
		return update, nil
	})
}

// changeUser changes a user: change returns the update that does it. Where there is no such user the error is missing.
func (r *request) changeUser(name authName, missing error, change func(u *userDoc) (update bson.D, err error)) (bsoncore.Document, error) {
	t := &r.server.users
	t.mu.Lock()
	defer t.mu.Unlock()
	u, err := t.find(r.ctx, name)
	if err != nil {
		return nil, err
	}
	if u == nil {
		return nil, missing
	}
	update, err := change(u)
	if err != nil {
		return nil, err
	}
	defer t.changed()
	if _, err := t.users().Update(r.ctx, bson.D{{Key: "_id", Value: u.ID}}, update, nil); err != nil {
		return nil, err
	}
	return ok(), nil
}

// noUser is the error of commands that name a user who is not there.
func noUser(name authName) error {
	return document.NewError(codeUserNotFound, "Could not find user \"%s\" for db \"%s\"", name.Name, name.DB)
}

// userChanges reads what updateUser changes. The table is locked.
func (r *request) userChanges(u *userDoc) (set, unset bson.D, err error) {
	before := u.Credentials.mechanisms()
	mechanisms, err := r.mechanisms()
	if err != nil {
		return nil, nil, err
	}
	if r.has("pwd") {
		if mechanisms == nil {
			mechanisms = before
		}
		c, err := r.password(u.User, mechanisms)
		if err != nil {
			return nil, nil, err
		}
		set = append(set, bson.E{Key: "credentials", Value: c})
	} else {
		for _, m := range mechanisms {
			if !slices.Contains(before, m) {
				return nil, nil, document.NewError(document.BadValue, "mechanisms field must be a subset of previously set mechanisms")
			}
		}
		for _, m := range before {
			if mechanisms != nil && !slices.Contains(mechanisms, m) {
				unset = append(unset, bson.E{Key: "credentials." + m, Value: ""})
			}
		}
	}
	if custom, err := r.document("customData"); err != nil {
		return nil, nil, err
	} else if custom != nil {
		set = append(set, bson.E{Key: "customData", Value: bson.Raw(custom)})
	}
	if r.has("roles") {
		roles, err := r.roles()
		if err != nil {
			return nil, nil, err
		}
		if err := r.server.users.checkRoles(r.ctx, roles); err != nil {
			return nil, nil, err
		}
		set = append(set, bson.E{Key: "roles", Value: roles})
	}
	if r.has("authenticationRestrictions") {
		list, err := r.restrictions()
		if err != nil {
			return nil, nil, err
		}
		set = append(set, bson.E{Key: "authenticationRestrictions", Value: append([]restriction{}, list...)})
	}
	return set, unset, nil
}

func (r *request) dropUser() (bsoncore.Document, error) {
	name, err := r.named()
	if err != nil {
		return nil, err
	}
	t := &r.server.users
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.changed()
	n, err := t.users().Delete(r.ctx, bson.D{{Key: "_id", Value: name.id()}}, nil)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, document.NewError(codeUserNotFound, "User '%s' not found", name)
	}
	return ok(), nil
}

func (r *request) dropUsers() (bsoncore.Document, error) {
	t := &r.server.users
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.changed()
	n, err := t.users().Delete(r.ctx, bson.D{{Key: "db", Value: r.db}}, &document.DeleteOptions{Many: true})
	if err != nil {
		return nil, err
	}
	return done(bsoncore.NewDocumentBuilder().AppendInt32("n", int32(n))), nil
}

// changeUserRoles is grantRolesToUser and revokeRolesFromUser.
func (r *request) changeUserRoles() (bsoncore.Document, error) {
	name, err := r.named()
	if err != nil {
		return nil, err
	}
	roles, err := r.someRoles()
	if err != nil {
		return nil, err
	}
	return r.changeUser(name, noUser(name), func(u *userDoc) (bson.D, error) {
		if err := r.server.users.checkRoles(r.ctx, roles); err != nil {
			return nil, err
		}
		return bson.D{{Key: "$set", Value: bson.D{{Key: "roles", Value: changeRoles(u.Roles, roles, r.name == "grantRolesToUser")}}}}, nil
	})
}

// changeRoles adds names to a list, or takes them out.
func changeRoles(list, names []authName, add bool) []authName {
	out := slices.DeleteFunc(slices.Clone(list), func(n authName) bool { return slices.Contains(names, n) })
	if add {
		for _, n := range names {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	if out == nil {
		out = []authName{} // an empty list is stored, not null
	}
	return out
}

func (r *request) invalidate() (bsoncore.Document, error) {
	r.server.users.changed()
	return ok(), nil
}
