package mongo

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// roleDoc is a role as it is stored.
type roleDoc struct {
	ID           string        `bson:"_id"`
	Role         string        `bson:"role"`
	DB           string        `bson:"db"`
	Privileges   []privilege   `bson:"privileges"`
	Roles        []authName    `bson:"roles"`
	Restrictions []restriction `bson:"authenticationRestrictions,omitempty"`
}

// The errors of what is said of users and roles.
const (
	codeUserNotFound     = document.Code(11)
	codeRoleNotFound     = document.Code(31)
	codeRoleModification = document.Code(49) // roles that cannot be what they are asked to be
)

// maxRoles bounds how many roles a user has, with those that they inherit.
const maxRoles = 10_000

// findRole returns a role that was created, nil when there is none.
func (t *userTable) findRole(ctx context.Context, name authName) (*roleDoc, error) {
	x := &roleDoc{}
	if there, err := fetch(ctx, t.roles(), "role", name, x); !there || err != nil {
		return nil, err
	}
	if x.Role != name.Name || x.DB != name.DB {
		return nil, nil // the dot is elsewhere: a.b and c, b.c and a
	}
	return x, nil
}

// expand returns what comes of having roles: those that they inherit too, and the privileges of all.
func (t *userTable) expand(ctx context.Context, direct []authName) (*grants, error) {
	g := &grants{generation: t.generation.Load(), direct: direct, roles: []authName{}, privileges: []privilege{}}
	seen := map[authName]bool{}
	for queue := slices.Clone(direct); len(queue) > 0 && len(g.roles) < maxRoles; queue = queue[1:] {
		name := queue[0]
		if seen[name] {
			continue
		}
		seen[name] = true
		if isBuiltin(name) {
			g.roles = append(g.roles, name)
			g.privileges = together(g.privileges, builtinPrivileges(name))
			continue
		}
		x, err := t.findRole(ctx, name)
		if err != nil {
			return nil, err
		}
		if x == nil {
			continue // it was dropped, or not restored
		}
		g.roles = append(g.roles, name)
		g.privileges = together(g.privileges, x.Privileges)
		g.restrictions = append(g.restrictions, x.Restrictions)
		queue = append(queue, x.Roles...)
	}
	return g, nil
}

// noRole is the error of commands that name a role that is not there.
func noRole(name authName) error {
	return document.NewError(codeRoleNotFound, "Could not find role: %s", name)
}

// checkRoles reports the first role of a list that is not there.
func (t *userTable) checkRoles(ctx context.Context, list []authName) error {
	for _, name := range list {
		if isBuiltin(name) {
			continue
		}
		x, err := t.findRole(ctx, name)
		if err != nil {
			return err
		}
		if x == nil {
			return noRole(name)
		}
	}
	return nil
}

// roles reads the roles that the command lists: names, or documents of a name and a database.
func (r *request) roles() ([]authName, error) {
	path := r.name + ".roles"
	v, given := r.args["roles"]
	if !given {
		return nil, missingField(path)
	}
	array, isArray := v.ArrayOK()
	if !isArray {
		return nil, wrongType(path, v, "array")
	}
	values, err := array.Values()
	if err != nil {
		return nil, document.NewError(document.FailedToParse, "%s: %v", path, err)
	}
	list := []authName{}
	for _, v := range values {
		name, err := nameOf(v, "role", r.db)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list, nil
}

// nameOf reads a name: a string, or a document with the name under a field and a db.
func nameOf(v bsoncore.Value, field, db string) (authName, error) {
	kind := "Role"
	if field == "user" {
		kind = "User"
	}
	if text, isText := v.StringValueOK(); isText {
		return authName{Name: text, DB: db}, nil
	}
	doc, isDoc := v.DocumentOK()
	if !isDoc {
		return authName{}, document.NewError(document.BadValue, "%s name must be either a document or string", kind)
	}
	name, hasName := doc.Lookup(field).StringValueOK()
	if !hasName {
		return authName{}, document.NewError(document.BadValue, "%sName must contain a field named: %s", kind, field)
	}
	of, hasDB := doc.Lookup("db").StringValueOK()
	if !hasDB {
		return authName{}, document.NewError(document.BadValue, "%sName must contain a field named: db", kind)
	}
	return authName{Name: name, DB: of}, nil
}

// someRoles reads the roles of a command that gives or takes them.
func (r *request) someRoles() ([]authName, error) {
	roles, err := r.roles()
	if err == nil && len(roles) == 0 {
		err = document.NewError(document.BadValue, "%s command requires a non-empty \"roles\" array", r.name)
	}
	return roles, err
}

func roleCommands() []*command {
	role := []string{"privileges", "roles", "authenticationRestrictions"}
	return []*command{
		{name: "createRole", run: (*request).createRole, fields: role, write: true, help: "makes a role"},
		{name: "updateRole", run: (*request).updateRole, fields: role, write: true, help: "changes a role"},
		{name: "dropRole", run: (*request).dropRole, write: true, help: "drops a role"},
		{name: "dropAllRolesFromDatabase", run: (*request).dropRoles, write: true, help: "drops the roles of a database"},
		{name: "grantRolesToRole", run: (*request).changeRoleRoles, fields: []string{"roles"}, write: true, help: "gives a role the privileges of roles"},
		{name: "revokeRolesFromRole", run: (*request).changeRoleRoles, fields: []string{"roles"}, write: true, help: "takes roles from a role"},
		{name: "grantPrivilegesToRole", run: (*request).changePrivileges, fields: []string{"privileges"}, write: true, help: "gives a role privileges"},
		{name: "revokePrivilegesFromRole", run: (*request).changePrivileges, fields: []string{"privileges"}, write: true, help: "takes privileges from a role"},
		{name: "rolesInfo", run: (*request).rolesInfo, fields: []string{"showPrivileges", "showBuiltinRoles", "showAuthenticationRestrictions"}, help: "tells about roles"},
	}
}

// ownPrivileges checks that a role of one database has no privileges in others.
func ownPrivileges(name authName, list []privilege) error {
	if name.DB == adminDB {
		return nil
	}
	for _, p := range list {
		if p.Resource.DB == nil || *p.Resource.DB != name.DB {
			return document.NewError(codeRoleModification, "Roles on the '%s' database cannot be granted privileges that target other databases or the cluster", name.DB)
		}
	}
	return nil
}

// ownRoles checks that a role of one database has no roles of others, that they are there, and that none of them has this one.
func (t *userTable) ownRoles(ctx context.Context, name authName, list []authName) error {
	for _, n := range list {
		if n.DB != name.DB && name.DB != adminDB {
			return document.NewError(codeRoleModification, "Roles on the '%s' database cannot be granted roles from other databases", name.DB)
		}
	}
	if err := t.checkRoles(ctx, list); err != nil {
		return err
	}
	all, err := t.expand(ctx, list)
	if err == nil && slices.Contains(all.roles, name) {
		err = document.NewError(codeRoleModification, "Granting roles to %s would introduce a cycle in the role graph", name)
	}
	return err
}

func (r *request) createRole() (bsoncore.Document, error) {
	name, err := r.named()
	if err != nil {
		return nil, err
	}
	if name.Name == "" || strings.ContainsRune(name.Name, 0) {
		return nil, document.NewError(document.BadValue, "Role name must be non-empty")
	}
	x := &roleDoc{ID: name.id(), Role: name.Name, DB: name.DB}
	if x.Privileges, err = r.privileges(); err != nil {
		return nil, err
	}
	if x.Privileges == nil {
		x.Privileges = []privilege{}
	}
	if x.Roles, err = r.roles(); err != nil {
		return nil, err
	}
	if x.Restrictions, err = r.restrictions(); err != nil {
		return nil, err
	}
	switch {
	case name.DB == "local" || name.DB == externalDB:
		return nil, document.NewError(document.BadValue, "Cannot create roles in the %s database", name.DB)
	case isBuiltin(name):
		return nil, document.NewError(document.BadValue, "Cannot create roles with the same name as a built-in role")
	}
	if err := ownPrivileges(name, x.Privileges); err != nil {
		return nil, err
	}
	t := &r.server.users
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ownRoles(r.ctx, name, x.Roles); err != nil {
		return nil, err
	}
	if err := t.prepare(r.ctx); err != nil {
		return nil, err
	}
	defer t.changed()
	if _, err := t.roles().Insert(r.ctx, x); errors.Is(err, document.DuplicateKey) {
		return nil, document.NewError(document.Code(51002), "Role \"%s\" already exists", name)
	} else if err != nil {
		return nil, err
	}
	return ok(), nil
}

// changeRole changes a role that was created: change returns the fields that are set.
func (r *request) changeRole(change func(name authName, x *roleDoc) (bson.D, error)) (bsoncore.Document, error) {
	name, err := r.named()
	if err != nil {
		return nil, err
	}
	t := &r.server.users
	t.mu.Lock()
	defer t.mu.Unlock()
	x, err := t.findRole(r.ctx, name)
	if err != nil {
		return nil, err
	}
	switch {
	case isBuiltin(name):
		return nil, document.NewError(document.BadValue, "%s is a built-in role and cannot be modified", name)
	case x == nil:
		return nil, noRole(name)
	}
	set, err := change(name, x)
	if err != nil {
		return nil, err
	}
	defer t.changed()
	if _, err := t.roles().Update(r.ctx, bson.D{{Key: "_id", Value: x.ID}}, bson.D{{Key: "$set", Value: set}}, nil); err != nil {
		return nil, err
	}
	return ok(), nil
}

func (r *request) updateRole() (bsoncore.Document, error) {
	if !slices.ContainsFunc([]string{"privileges", "roles", "authenticationRestrictions"}, r.has) {
		return nil, document.NewError(document.BadValue, "Must specify at least one field to update in updateRole")
	}
	return r.changeRole(func(name authName, _ *roleDoc) (set bson.D, err error) {
		if r.has("privileges") {
			list, err := r.privileges()
			if err != nil {
				return nil, err
			}
			if err := ownPrivileges(name, list); err != nil {
				return nil, err
			}
			set = append(set, bson.E{Key: "privileges", Value: append([]privilege{}, list...)})
		}
		if r.has("roles") {
			list, err := r.roles()
			if err != nil {
				return nil, err
			}
			if err := r.server.users.ownRoles(r.ctx, name, list); err != nil {
				return nil, err
			}
			set = append(set, bson.E{Key: "roles", Value: list})
		}
		if r.has("authenticationRestrictions") {
			list, err := r.restrictions()
			if err != nil {
				return nil, err
			}
			set = append(set, bson.E{Key: "authenticationRestrictions", Value: append([]restriction{}, list...)})
		}
		return set, nil
	})
}

// changeRoleRoles is grantRolesToRole and revokeRolesFromRole.
func (r *request) changeRoleRoles() (bsoncore.Document, error) {
	roles, err := r.someRoles()
	if err != nil {
		return nil, err
	}
	add := r.name == "grantRolesToRole"
	return r.changeRole(func(name authName, x *roleDoc) (bson.D, error) {
		if add {
			if err := r.server.users.ownRoles(r.ctx, name, roles); err != nil {
				return nil, err
			}
		}
		return bson.D{{Key: "roles", Value: changeRoles(x.Roles, roles, add)}}, nil
	})
}

// changePrivileges is grantPrivilegesToRole and revokePrivilegesFromRole.
func (r *request) changePrivileges() (bsoncore.Document, error) {
	list, err := r.privileges()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, document.NewError(document.BadValue, "%s command requires a non-empty \"privileges\" array", r.name)
	}
	return r.changeRole(func(name authName, x *roleDoc) (bson.D, error) {
		if err := ownPrivileges(name, list); err != nil {
			return nil, err
		}
		now := x.Privileges
		for _, p := range list {
			if r.name == "grantPrivilegesToRole" {
				now = addPrivilege(now, p)
			} else {
				now = takePrivilege(now, p)
			}
		}
		return bson.D{{Key: "privileges", Value: append([]privilege{}, now...)}}, nil
	})
}

func (r *request) dropRole() (bsoncore.Document, error) {
	name, err := r.named()
	if err != nil {
		return nil, err
	}
	if isBuiltin(name) {
		return nil, document.NewError(document.BadValue, "%s is a built-in role and cannot be modified", name)
	}
	n, err := r.removeRoles(bson.D{{Key: "_id", Value: name.id()}}, bson.D{{Key: "role", Value: name.Name}, {Key: "db", Value: name.DB}})
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, noRole(name)
	}
	return ok(), nil
}

func (r *request) dropRoles() (bsoncore.Document, error) {
	keep := databaseRoles() // nobody loses those that are built in
	if r.db == adminDB {
		keep = append(keep, clusterRoles()...)
	}
	n, err := r.removeRoles(bson.D{{Key: "db", Value: r.db}}, bson.D{{Key: "db", Value: r.db}, {Key: "role", Value: bson.D{{Key: "$nin", Value: keep}}}})
	if err != nil {
		return nil, err
	}
	return done(bsoncore.NewDocumentBuilder().AppendInt32("n", int32(n))), nil
}

// removeRoles drops roles, and takes them from the users and roles that have them, as one.
func (r *request) removeRoles(which, reference bson.D) (n int64, err error) {
	t := &r.server.users
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.changed()
	if n, err = t.roles().Count(r.ctx, which, nil); n == 0 || err != nil {
		return 0, err
	}
	err = t.store.Transaction(r.ctx, func(tx *document.Tx) error {
		users, roles := tx.In(t.users()), tx.In(t.roles())
		var err error
		if n, err = roles.Delete(r.ctx, which, &document.DeleteOptions{Many: true}); err != nil {
			return err
		}
		holders := bson.D{{Key: "roles", Value: bson.D{{Key: "$elemMatch", Value: reference}}}}
		pull := bson.D{{Key: "$pull", Value: bson.D{{Key: "roles", Value: reference}}}}
		for _, c := range []*document.Collection{users, roles} {
			if _, err := c.Update(r.ctx, holders, pull, &document.UpdateOptions{Many: true}); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}
