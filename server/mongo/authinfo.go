package mongo

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// userOf reads a user's name: database and user with a dot between, or a document.
func userOf(v bsoncore.Value) (authName, error) {
	text, isText := v.StringValueOK()
	if !isText {
		return nameOf(v, "user", "")
	}
	db, user, hasDot := strings.Cut(text, ".")
	if !hasDot {
		return authName{}, document.NewError(document.BadValue, "UserName must contain a '.' separated database.user pair")
	}
	return authName{Name: user, DB: db}, nil
}

// asked is what usersInfo or rolesInfo is to tell about: everything, a database, or some names.
type asked struct {
	all   bool // all databases
	named []authName
	exact bool // names are given
}

// whom reads the first field of usersInfo and rolesInfo.
func (r *request) whom(field string) (*asked, error) {
	if doc, isDoc := r.target.DocumentOK(); isDoc {
		if all, _ := doc.Lookup("forAllDBs").BooleanOK(); all {
			return &asked{all: true}, nil
		}
	}
	values := []bsoncore.Value{r.target}
	if array, isArray := r.target.ArrayOK(); isArray {
		var err error
		if values, err = array.Values(); err != nil {
			return nil, document.NewError(document.FailedToParse, "%s: %v", r.name, err)
		}
	} else if n, isNumber := asInt64(r.target); isNumber {
		if n != 1 {
			return nil, document.NewError(document.BadValue, "%s: what is asked for is 1, a name, or a list of names", r.name)
		}
		return &asked{}, nil
	}
	a := &asked{exact: true}
	for _, v := range values {
		name, err := nameOf(v, field, r.db)
		if err != nil {
			return nil, err
		}
		a.named = append(a.named, name)
	}
	return a, nil
}

// filter finds what is asked for.
func (a *asked) filter(db string) bson.D {
	if a.all {
		return bson.D{}
	}
	if !a.exact {
		return bson.D{{Key: "db", Value: db}}
	}
	ids := bson.A{}
	for _, n := range a.named {
		ids = append(ids, n.id())
	}
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}
}

// shows are the parts that usersInfo is asked for.
type shows struct{ credentials, privileges, restrictions, custom bool }

func (r *request) shows() (s shows, err error) {
	s.custom = true
	for _, f := range []struct {
		name string
		to   *bool
	}{{"showCredentials", &s.credentials}, {"showPrivileges", &s.privileges}, {"showAuthenticationRestrictions", &s.restrictions},
		{"showCustomData", &s.custom}} {
		if !r.has(f.name) {
			continue
		}
		if *f.to, err = r.flag(f.name); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (r *request) usersInfo() (bsoncore.Document, error) {
	who, err := r.whom("user")
	if err != nil {
		return nil, err
	}
	show, err := r.shows()
	if err != nil {
		return nil, err
	}
	if (show.privileges || show.restrictions) && !who.exact {
		return nil, document.NewError(codeIllegalOperation, "Privilege or restriction details require exact-match usersInfo queries")
	}
	match, err := r.filter("filter")
	if err != nil {
		return nil, err
	}
	list := bson.A{}
	for doc, err := range r.server.users.users().Find(r.ctx, who.filter(r.db), &document.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}}) {
		if err != nil {
			return nil, err
		}
		u := &userDoc{}
		if err := bson.Unmarshal(doc, u); err != nil {
			return nil, document.NewError(document.Code(12), "a user is not stored as users are: %v", err)
		}
		told, err := r.tell(u, show)
		if err != nil {
			return nil, err
		}
		if fits, err := match(told); err != nil {
			return nil, err
		} else if fits {
			list = append(list, bson.Raw(told))
		}
	}
	return encode(bson.D{{Key: "users", Value: list}, {Key: "ok", Value: 1.0}})
}

// tell makes what usersInfo tells about a user.
func (r *request) tell(u *userDoc, show shows) (bsoncore.Document, error) {
	roles := append([]authName{}, u.Roles...)
	d := bson.D{{Key: "_id", Value: u.ID}, {Key: "userId", Value: u.UserID}, {Key: "user", Value: u.User}, {Key: "db", Value: u.DB}}
	if show.credentials {
		d = append(d, bson.E{Key: "credentials", Value: u.Credentials})
	}
	if u.CustomData != nil && show.custom {
		d = append(d, bson.E{Key: "customData", Value: u.CustomData})
	}
	d = append(d, bson.E{Key: "roles", Value: roles}, bson.E{Key: "mechanisms", Value: append([]string{}, u.Credentials.mechanisms()...)})
	if show.restrictions {
		d = append(d, bson.E{Key: "authenticationRestrictions", Value: append([]restriction{}, u.Restrictions...)})
	}
	if show.privileges || show.restrictions {
		g, err := r.server.users.expand(r.ctx, roles)
		if err != nil {
			return nil, err
		}
		d = append(d, bson.E{Key: "inheritedRoles", Value: g.roles}, bson.E{Key: "inheritedPrivileges", Value: g.privileges})
		if show.restrictions {
			d = append(d, bson.E{Key: "inheritedAuthenticationRestrictions", Value: inherited(g.restrictions)})
		}
	}
	return encode(d)
}

// inherited is how the restrictions of roles are told: those that say something.
func inherited(lists [][]restriction) [][]restriction {
	out := [][]restriction{}
	for _, list := range lists {
		if len(list) > 0 {
			out = append(out, list)
		}
	}
	return out
}

func (r *request) rolesInfo() (bsoncore.Document, error) {
	what, err := r.whom("role")
	if err != nil {
		return nil, err
	}
	fragment, _ := r.args["showPrivileges"].StringValueOK()
	if fragment == "asUserFragment" {
		return r.fragment(what)
	}
	privileges, err := r.flag("showPrivileges")
	if err != nil {
		return nil, err
	}
	builtin, err := r.flag("showBuiltinRoles")
	if err != nil {
		return nil, err
	}
	list := bson.A{}
	add := func(x *roleDoc, builtin bool) error {
		d, err := r.tellRole(x, builtin, privileges)
		list = append(list, d)
		return err
	}
	for _, name := range builtinsAsked(what, r.db, builtin) {
		if err := add(&roleDoc{Role: name.Name, DB: name.DB, Privileges: builtinPrivileges(name)}, true); err != nil {
			return nil, err
		}
	}
	for doc, err := range r.server.users.roles().Find(r.ctx, what.filter(r.db), &document.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}}) {
		if err != nil {
			return nil, err
		}
		x := &roleDoc{}
		if err := bson.Unmarshal(doc, x); err != nil {
			return nil, document.NewError(document.Code(12), "a role is not stored as roles are: %v", err)
		}
		if err := add(x, false); err != nil {
			return nil, err
		}
	}
	return encode(bson.D{{Key: "roles", Value: list}, {Key: "ok", Value: 1.0}})
}

// builtinsAsked returns the built-in roles that are asked for.
func builtinsAsked(what *asked, db string, all bool) []authName {
	var names []authName
	for _, n := range what.named {
		if isBuiltin(n) {
			names = append(names, n)
		}
	}
	if what.exact || !all {
		return names
	}
	roles := databaseRoles()
	if db == adminDB {
		roles = append(roles, clusterRoles()...)
	}
	for _, role := range roles {
		names = append(names, authName{Name: role, DB: db})
	}
	return names
}

// tellRole makes what rolesInfo tells about a role.
func (r *request) tellRole(x *roleDoc, builtin, privileges bool) (bson.D, error) {
	var d bson.D
	if x.ID != "" {
		d = bson.D{{Key: "_id", Value: x.ID}}
	}
	roles := append([]authName{}, x.Roles...)
	g, err := r.server.users.expand(r.ctx, roles)
	if err != nil {
		return nil, err
	}
	d = append(d, bson.E{Key: "role", Value: x.Role}, bson.E{Key: "db", Value: x.DB}, bson.E{Key: "isBuiltin", Value: builtin},
		bson.E{Key: "roles", Value: roles}, bson.E{Key: "inheritedRoles", Value: g.roles})
	if privileges {
		d = append(d, bson.E{Key: "privileges", Value: append([]privilege{}, x.Privileges...)},
			bson.E{Key: "inheritedPrivileges", Value: together(x.Privileges, g.privileges)})
	}
	if show, err := r.flag("showAuthenticationRestrictions"); err != nil {
		return nil, err
	} else if show {
		d = append(d, bson.E{Key: "authenticationRestrictions", Value: append([]restriction{}, x.Restrictions...)})
	}
	return d, nil
}

// fragment tells what a user with the roles would have.
func (r *request) fragment(what *asked) (bsoncore.Document, error) {
	g, err := r.server.users.expand(r.ctx, slices.Clone(what.named))
	if err != nil {
		return nil, err
	}
	fragment := bson.D{{Key: "roles", Value: append([]authName{}, what.named...)}, {Key: "inheritedRoles", Value: g.roles},
		{Key: "inheritedPrivileges", Value: g.privileges}}
	return encode(bson.D{{Key: "userFragment", Value: fragment}, {Key: "ok", Value: 1.0}})
}

// mergeUsers takes users and roles over from collections into which a tool has restored them. With drop, those that were not
// restored go.
func (r *request) mergeUsers() (bsoncore.Document, error) {
	only, err := r.text("db")
	if err != nil {
		return nil, err
	}
	drop, err := r.flag("drop")
	if err != nil {
		return nil, err
	}
	t := &r.server.users
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.prepare(r.ctx); err != nil {
		return nil, err
	}
	defer t.changed()
	for _, x := range []struct {
		field string
		to    *document.Collection
		make  func() any
	}{{"tempUsersCollection", t.users(), func() any { return &userDoc{} }}, {"tempRolesCollection", t.roles(), func() any { return &roleDoc{} }}} {
		from, err := r.text(x.field)
		if err != nil {
			return nil, err
		}
		if from == "" {
			continue
		}
		if err := r.merge(from, x.to, only, drop, x.make); err != nil {
			return nil, err
		}
	}
	return ok(), nil
}

// merge takes the documents of one collection over into another, if they are of one database, or of any when only is "".
func (r *request) merge(from string, to *document.Collection, only string, drop bool, as func() any) error {
	db, name, _ := strings.Cut(from, ".")
	filter := bson.D{}
	if only != "" {
		filter = bson.D{{Key: "db", Value: only}}
	}
	kept := bson.A{}
	return r.server.store.Transaction(r.ctx, func(tx *document.Tx) error {
		source, target := tx.In(r.server.store.Database(db).Lookup(name)), tx.In(to)
		kept = kept[:0]
		for doc, err := range source.Find(r.ctx, filter, nil) {
			if err != nil {
				return err
			}
			if err := bson.Unmarshal(doc, as()); err != nil {
				return document.NewError(document.Code(12), "%s does not hold what was asked for: %v", from, err)
			}
			id := doc.Lookup("_id")
			kept = append(kept, bson.RawValue{Type: id.Type, Value: slices.Clone(id.Value)})
			if _, err := target.Replace(r.ctx, bson.D{{Key: "_id", Value: id}}, slices.Clone(doc), &document.UpdateOptions{Upsert: true}); err != nil {
				return err
			}
		}
		if !drop {
			return nil
		}
		gone := append(slices.Clone(filter), bson.E{Key: "_id", Value: bson.D{{Key: "$nin", Value: kept}}})
		_, err := target.Delete(r.ctx, gone, &document.DeleteOptions{Many: true})
		return err
	})
}
