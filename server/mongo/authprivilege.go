package mongo

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// authName is the name of a user or of a role. Both belong to a database, and another database may have others of the same
// name. It is stored as the name of a role.
type authName struct {
	Name string `bson:"role"`
	DB   string `bson:"db"`
}

// String is how errors and logs show the name.
func (n authName) String() string { return n.Name + "@" + n.DB }

// id is the _id of the user or role in the collection that it is stored in.
func (n authName) id() string { return n.DB + "." + n.Name }

// resource is what a privilege is about: a collection (or all of a database's, or all), the cluster, or everything.
type resource struct {
	DB          *string `bson:"db,omitempty"`
	Collection  *string `bson:"collection,omitempty"`
	Cluster     bool    `bson:"cluster,omitempty"`
	AnyResource bool    `bson:"anyResource,omitempty"`
	Buckets     *string `bson:"system_buckets,omitempty"` // the buckets of this time series, of DB if that is set; "": of all
}

// namespace is the resource of a collection. An empty name stands for all.
func namespace(db, collection string) resource { return resource{DB: &db, Collection: &collection} }

// privilege allows actions on a resource.
type privilege struct {
	Resource resource `bson:"resource"`
	Actions  []string `bson:"actions"` // sorted
}

// anyAction is all actions.
const anyAction = "anyAction"

// bucketsPrefix begins the name of the collection that holds the buckets of a time series.
const bucketsPrefix = "system.buckets."

// ordinary reports whether "all collections" takes a collection in: those of the system are named one by one.
func ordinary(collection string) bool { return !strings.HasPrefix(collection, "system.") }

// ordinaryDatabase reports whether "all databases" takes a database in.
func ordinaryDatabase(db string) bool { return db != "local" && db != "config" }

// covers reports whether the resource takes in a collection, or, when that is "", a database as a whole.
func (x *resource) covers(db, collection string) bool {
	switch {
	case x.AnyResource:
		return true
	case x.Buckets != nil:
		name, is := strings.CutPrefix(collection, bucketsPrefix)
		return is && (*x.Buckets == "" || *x.Buckets == name) && (x.DB == nil || *x.DB == "" || *x.DB == db)
	case x.DB == nil || x.Collection == nil:
		return false
	case *x.Collection == "" && !ordinary(collection):
		return false
	case *x.Collection != "" && *x.Collection != collection:
		return false
	case *x.DB == "":
		return *x.Collection != "" || ordinaryDatabase(db)
	}
	return *x.DB == db
}

// equal reports whether two resources are the same one.
func (x *resource) equal(y *resource) bool {
	same := func(a, b *string) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
	return x.Cluster == y.Cluster && x.AnyResource == y.AnyResource && same(x.DB, y.DB) && same(x.Collection, y.Collection) &&
		same(x.Buckets, y.Buckets)
}

// has reports whether the privilege allows an action.
func (p *privilege) has(action string) bool {
	if _, found := slices.BinarySearch(p.Actions, action); found {
		return true
	}
	_, found := slices.BinarySearch(p.Actions, anyAction)
	return found
}

// addPrivilege adds actions to the privilege on the same resource, or a new privilege.
func addPrivilege(list []privilege, p privilege) []privilege {
	for i := range list {
		if list[i].Resource.equal(&p.Resource) {
			actions := append(slices.Clone(list[i].Actions), p.Actions...)
			slices.Sort(actions)
			list[i].Actions = slices.Compact(actions)
			return list
		}
	}
	actions := slices.Clone(p.Actions)
	slices.Sort(actions)
	return append(list, privilege{Resource: p.Resource, Actions: slices.Compact(actions)})
}

// takePrivilege takes actions away from the privilege on the same resource.
func takePrivilege(list []privilege, p privilege) []privilege {
	for i := range list {
		if list[i].Resource.equal(&p.Resource) {
			list[i].Actions = slices.DeleteFunc(slices.Clone(list[i].Actions), func(a string) bool { return slices.Contains(p.Actions, a) })
		}
	}
	return slices.DeleteFunc(list, func(p privilege) bool { return len(p.Actions) == 0 })
}

// grants is what a user may do: its roles, and theirs, and the privileges of all of them. It is not changed once made.
type grants struct {
	generation   uint64 // of the users and roles that it was made from
	userID       string
	direct       []authName
	roles        []authName // with those that are inherited
	privileges   []privilege
	restrictions [][]restriction // all of which have to be met, each by one of a list
}

// allows reports whether an action on a collection, or on a database when collection is "", is allowed.
func (g *grants) allows(db, collection, action string) bool {
	for i := range g.privileges {
		if p := &g.privileges[i]; p.Resource.covers(db, collection) && p.has(action) {
			return true
		}
	}
	return false
}

// allowsCluster reports whether an action on the server as a whole is allowed.
func (g *grants) allowsCluster(action string) bool {
	for i := range g.privileges {
		if p := &g.privileges[i]; (p.Resource.Cluster || p.Resource.AnyResource) && p.has(action) {
			return true
		}
	}
	return false
}

// knowsDatabase reports whether anything at all is allowed in a database.
func (g *grants) knowsDatabase(db string) bool {
	return slices.ContainsFunc(g.privileges, func(p privilege) bool {
		x := &p.Resource
		return x.AnyResource || x.DB != nil && (*x.DB == db || *x.DB == "" && ordinaryDatabase(db))
	})
}

// knowsCollection reports whether anything at all is allowed with a collection.
func (g *grants) knowsCollection(db, collection string) bool {
	return slices.ContainsFunc(g.privileges, func(p privilege) bool { return p.Resource.covers(db, collection) })
}

// privileges reads the privileges that the command lists.
func (r *request) privileges() ([]privilege, error) {
	list, err := r.documents("privileges")
	if err != nil {
		return nil, err
	}
	var out []privilege
	for _, doc := range list {
		p, err := readPrivilege(doc)
		if err != nil {
			return nil, err
		}
		out = addPrivilege(out, p)
	}
	return out, nil
}

// readPrivilege reads a privilege, and checks that it makes sense.
func readPrivilege(doc bsoncore.Document) (privilege, error) {
	var p privilege
	if err := bson.Unmarshal(doc, &p); err != nil {
		return p, document.NewError(document.FailedToParse, "a privilege has a resource and a list of actions")
	}
	if len(p.Actions) == 0 {
		return p, document.NewError(document.FailedToParse, "missing actions field")
	}
	x := &p.Resource
	if (x.DB == nil) != (x.Collection == nil) && x.Buckets == nil {
		return p, document.NewError(document.FailedToParse, "resource must set both db and collection or neither, but not exactly one.")
	}
	kinds := 0
	for _, is := range []bool{x.DB != nil && x.Buckets == nil || x.Collection != nil, x.Cluster, x.AnyResource, x.Buckets != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		return p, document.NewError(document.FailedToParse, "resource must have either db and collection, cluster, or anyResource set")
	}
	known := strings.Fields(knownActions)
	for _, a := range p.Actions {
		if !slices.Contains(known, a) {
			return p, document.NewError(document.BadValue, "Unrecognized action: %s", a)
		}
	}
	return p, nil
}
