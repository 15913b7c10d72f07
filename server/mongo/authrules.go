package mongo

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// rule says whether somebody with some privileges may run a command. A command without a rule is for nobody: see allowed.
type rule func(r *request, g *grants) bool

// allowed reports whether somebody with these privileges may run the command.
func (r *request) allowed(g *grants) bool {
	if check := r.server.users.rules[r.command.name]; check != nil {
		return check(r, g)
	}
	return g.allowsCluster("internal")
}

// targetName is the collection that the command's first field names; "" when it names none.
func (r *request) targetName() string {
	name, _ := r.target.StringValueOK()
	return name
}

// Ways of asking for privileges.

// logged is for everybody who has logged in.
func logged(*request, *grants) bool { return true }

// collectionRule asks for actions on the collection that the command names.
func collectionRule(actions ...string) rule {
	return func(r *request, g *grants) bool { return g.allowAll(r.db, r.targetName(), actions...) }
}

// writeRule is collectionRule, and asks for one more action of those who go round validators.
func writeRule(actions ...string) rule {
	return func(r *request, g *grants) bool { return r.bypasses(g) && g.allowAll(r.db, r.targetName(), actions...) }
}

// databaseRule asks for actions on the database that the command is sent to.
func databaseRule(actions ...string) rule {
	return func(r *request, g *grants) bool { return g.allowAll(r.db, "", actions...) }
}

// clusterRule asks for actions on the server.
func clusterRule(actions ...string) rule {
	return func(_ *request, g *grants) bool {
		return !slices.ContainsFunc(actions, func(a string) bool { return !g.allowsCluster(a) })
	}
}

func (g *grants) allowAll(db, collection string, actions ...string) bool {
	return !slices.ContainsFunc(actions, func(a string) bool { return !g.allows(db, collection, a) })
}

// bypasses reports whether the command may go round validators, if that is what it does.
func (r *request) bypasses(g *grants) bool {
	does, err := r.flag("bypassDocumentValidation")
	return err != nil || !does || g.allows(r.db, r.targetName(), "bypassDocumentValidation")
}

// commandRules returns the rules of all commands by their names.
func commandRules() map[string]rule {
	rules := map[string]rule{
		"find": collectionRule("find"), "count": collectionRule("find"), "distinct": collectionRule("find"),
		"insert": writeRule("insert"), "update": ruleUpdate, "delete": collectionRule("remove"), "findAndModify": ruleFindAndModify,
		"aggregate": ruleAggregate, "explain": ruleExplain, "getMore": logged, "killCursors": ruleKillCursors,
		"create": ruleCreate, "collMod": ruleCollMod, "drop": collectionRule("dropCollection"), "dropDatabase": databaseRule("dropDatabase"),
		"renameCollection": ruleRename, "createIndexes": collectionRule("createIndex"), "dropIndexes": collectionRule("dropIndex"),
		"listIndexes": collectionRule("listIndexes"), "listCollections": ruleListCollections, "listDatabases": ruleListDatabases,
		"convertToCapped": collectionRule("convertToCapped"), "cloneCollectionAsCapped": ruleCloneAsCapped,
		"applyOps":            ruleApplyOps,
		"createSearchIndexes": collectionRule("createSearchIndexes"), "updateSearchIndex": collectionRule("updateSearchIndex"),
		"dropSearchIndex": collectionRule("dropSearchIndex"), "dataSize": ruleDataSize,
		"mapReduce": collectionRule("find"), "filemd5": databaseRule("find"),
		"collStats": collectionRule("collStats"), "validate": collectionRule("validate"), "compact": collectionRule("compact"),
		"reIndex": collectionRule("reIndex"), "dbStats": databaseRule("dbStats"), "dbHash": databaseRule("dbHash"), "profile": ruleProfile,
		"planCacheClear": collectionRule("planCacheWrite"), "planCacheListFilters": collectionRule("planCacheIndexFilter"),
		"planCacheSetFilter": collectionRule("planCacheIndexFilter"), "planCacheClearFilters": collectionRule("planCacheIndexFilter"),
	}
	for _, name := range []string{"hello", "isMaster", "ping", "buildInfo", "whatsmyuri", "connectionStatus", "saslStart", "saslContinue", "authenticate",
		"logout", "startSession", "endSessions", "refreshSessions", "killSessions", "commitTransaction", "abortTransaction", "listCommands",
		"features", "getLastError", "configureFailPoint", "testVersion2", "waitForFailPoint", "isdbgrid", "connPoolSync",
		"whatsmysni", "refreshLogicalSessionCacheNow", "reapLogicalSessionCacheNow"} {
		rules[name] = logged
	}
	for name, action := range map[string]string{
		"serverStatus": "serverStatus", "hostInfo": "hostInfo", "getCmdLineOpts": "getCmdLineOpts", "getLog": "getLog", "lockInfo": "serverStatus",
		"getParameter": "getParameter", "setParameter": "setParameter", "top": "top", "connPoolStats": "connPoolStats", "fsync": "fsync",
		"fsyncUnlock": "unlock", "replSetGetStatus": "replSetGetStatus", "replSetGetConfig": "replSetGetConfig", "replSetInitiate": "replSetConfigure",
		"replSetReconfig": "replSetConfigure", "replSetStepDown": "replSetStateChange", "replSetFreeze": "replSetStateChange",
		"replSetMaintenance": "replSetStateChange", "replSetResizeOplog": "replSetResizeOplog", "setUserWriteBlockMode": "setUserWriteBlockMode", "replSetGetRBID": "replSetGetStatus", "shardingState": "shardingState", "getShardMap": "getShardMap",
		"getDefaultRWConcern": "getDefaultRWConcern", "setDefaultRWConcern": "setDefaultRWConcern", "appendOplogNote": "appendOplogNote",
		"setFeatureCompatibilityVersion": "setFeatureCompatibilityVersion", "logRotate": "logRotate", "shutdown": "shutdown",
		"killAllSessions": "killAnySession", "killAllSessionsByPattern": "killAnySession", "invalidateUserCache": "invalidateUserCache",
		"rotateCertificates": "rotateCertificates", "getClusterParameter": "getClusterParameter",
		"setClusterParameter": "setClusterParameter", "listShards": "listShards", "dropConnections": "dropConnections",
	} {
		rules[name] = clusterRule(action)
	}
	rules["currentOp"], rules["killOp"] = ruleCurrentOp, ruleKillOp
	for name, check := range managementRules() {
		rules[name] = check
	}
	return rules
}

// statementsOf returns the documents of a field of the command, none when it has none.
func (r *request) statementsOf(field string) []bsoncore.Document {
	list, err := r.documents(field)
	if err != nil {
		return nil
	}
	return list
}

func ruleUpdate(r *request, g *grants) bool {
	c := r.targetName()
	for _, s := range r.statementsOf("updates") {
		elements, err := s.Elements()
		if err != nil {
			return true // it will be refused
		}
		for _, e := range elements {
			if e.Key() == "upsert" && truth(e.Value()) && !g.allows(r.db, c, "insert") {
				return false
			}
		}
	}
	return r.bypasses(g) && g.allows(r.db, c, "update")
}

// truth reports whether a value stands for true; null is as if it were not there. What is no flag counts as one that is set: the command will
// refuse it.
func truth(v bsoncore.Value) bool {
	set, err := asFlag("", v)
	return v.Type != bsoncore.TypeNull && (err != nil || set)
}

func ruleFindAndModify(r *request, g *grants) bool {
	actions := []string{"find", "update"}
	if v, given := r.args["remove"]; given && truth(v) {
		actions = []string{"find", "remove"}
	}
	if v, given := r.args["upsert"]; given && truth(v) {
		actions = append(actions, "insert")
	}
	return r.bypasses(g) && g.allowAll(r.db, r.targetName(), actions...)
}

// ruleExplain asks for what the command inside asks for.
func ruleExplain(r *request, g *grants) bool {
	inner, isDoc := r.target.DocumentOK()
	if !isDoc {
		return true // it will be refused
	}
	x, named := r.instead(inner)
	return !named || x.command == nil || x.command.name == "explain" || x.allowed(g)
}

// instead returns the request as it would be with another command, and reports whether that has a name.
func (r *request) instead(body bsoncore.Document) (*request, bool) {
	first, err := body.IndexErr(0)
	if err != nil {
		return nil, false
	}
	x := *r
	x.body, x.docs, x.name, x.target, x.args = body, nil, first.Key(), first.Value(), argsOf(body)
	x.command = r.server.commands[x.name]
	return &x, true
}

// opening is the command that has opened a cursor, and when it was last known that the cursor's user may run it.
type opening struct {
	body       bsoncore.Document // nil: there are no logins
	db         string
	generation uint64 // of the users and roles
}

// opening returns the command for a cursor. The body is no part of the message any more: see newRequest.
func (r *request) opening() opening {
	if !r.server.o.Auth {
		return opening{}
	}
	return opening{r.body, r.db, r.conn.auth.grants.generation}
}

// allowed reports whether who reads on from the cursor, whose user that is, may still run what has opened it.
func (o *opening) allowed(r *request) bool {
	if o.body == nil || o.generation == r.conn.auth.grants.generation {
		return true
	}
	x, named := r.instead(o.body)
	if !named {
		return false
	}
	if x.db = o.db; !x.allowed(x.conn.auth.grants) {
		return false
	}
	o.generation = r.conn.auth.grants.generation
	return true
}

// ruleKillCursors lets everybody close their own cursors, and those of others on collections for which they may: whatever collection the
// command names.
func ruleKillCursors(r *request, g *grants) bool {
	array, isArray := r.args["cursors"].ArrayOK()
	if !isArray {
		return true // it will be refused
	}
	values, err := array.Values()
	if err != nil {
		return true
	}
	for _, ns := range r.server.cursors.foreign(values, r.conn.auth.userDigest()) {
		db, name, _ := strings.Cut(ns, ".")
		if !g.allows(db, name, "killCursors") {
			return false
		}
	}
	return true
}

func ruleCreate(r *request, g *grants) bool {
	c, capped := r.targetName(), r.has("capped") && truth(r.args["capped"])
	if capped && !g.allows(r.db, c, "convertToCapped") {
		return false
	}
	if !g.allows(r.db, c, "createCollection") && (capped || r.has("viewOn") || !g.allows(r.db, c, "insert")) {
		return false
	}
	return r.viewAllowed(g)
}

func ruleCollMod(r *request, g *grants) bool {
	return g.allows(r.db, r.targetName(), "collMod") && r.viewAllowed(g)
}

// viewAllowed asks of those who define a view, and may read it, that they may read what it shows. Others, who restore a database for
// instance, learn nothing by it; but the collections of the system are shown by nobody who may not read them.
func (r *request) viewAllowed(g *grants) bool {
	on, isText := r.args["viewOn"].StringValueOK()
	if !isText {
		return true
	}
	if !g.allows(r.db, r.targetName(), "find") {
		g = &grants{privileges: append(slices.Clone(g.privileges), onDatabase(r.db, "find"))}
	}
	stages, _ := r.args["pipeline"].ArrayOK()
	return r.pipelineAllowed(g, r.db, on, stages, 0)
}

// ruleCloneAsCapped is for those who may read the collection, and make and fill the other.
func ruleCloneAsCapped(r *request, g *grants) bool {
	to, _ := r.args["toCollection"].StringValueOK()
	return g.allowAll(r.db, r.targetName(), "find") && g.allowAll(r.db, to, "insert", "createIndex", "convertToCapped")
}

func ruleRename(r *request, g *grants) bool {
	fromDB, from, _ := strings.Cut(r.targetName(), ".")
	text, _ := r.args["to"].StringValueOK()
	toDB, to, _ := strings.Cut(text, ".")
	if v, given := r.args["dropTarget"]; given && truth(v) && !g.allows(toDB, to, "dropCollection") {
		return false
	}
	if fromDB == toDB && g.allows(fromDB, from, "renameCollectionSameDB") && g.allows(toDB, to, "renameCollectionSameDB") {
		// who may not read the old name must not get to read it under the new one
		return g.allows(fromDB, from, "find") || !g.allows(toDB, to, "find")
	}
	return g.allowAll(fromDB, from, "find", "dropCollection") && g.allowAll(toDB, to, "insert", "createIndex")
}

func ruleListCollections(r *request, g *grants) bool {
	names, err1 := r.flag("nameOnly")
	own, err2 := r.flag("authorizedCollections")
	return g.allows(r.db, "", "listCollections") || err1 == nil && err2 == nil && names && own
}

func ruleListDatabases(r *request, g *grants) bool {
	own, err := r.flag("authorizedDatabases")
	return g.allowsCluster("listDatabases") || err == nil && (own || !r.has("authorizedDatabases"))
}

// seesDatabase reports whether listDatabases shows a database.
func (r *request) seesDatabase(name string) bool {
	g := r.conn.auth.grants
	if !r.server.o.Auth || g == nil {
		return true
	}
	own, err := r.flag("authorizedDatabases")
	return err == nil && !own && g.allowsCluster("listDatabases") || g.knowsDatabase(name)
}

// seesCollection reports whether listCollections shows a collection.
func (r *request) seesCollection(name string) bool {
	g := r.conn.auth.grants
	if !r.server.o.Auth || g == nil {
		return true
	}
	own, err := r.flag("authorizedCollections")
	return err == nil && !own && g.allows(r.db, "", "listCollections") || g.knowsCollection(r.db, name)
}

func ruleDataSize(r *request, g *grants) bool {
	db, name, _ := strings.Cut(r.targetName(), ".")
	return g.allows(db, name, "find")
}

// ruleProfile lets those who may read the profile ask how the profiler is set. A level of -1 leaves that as it is; other fields do not.
func ruleProfile(r *request, g *grants) bool {
	level, isNumber := asInt64(r.target)
	asks := isNumber && level < 0 && !slices.ContainsFunc([]string{"slowms", "sampleRate", "filter"}, r.has)
	return g.allows(r.db, "", "enableProfiler") || asks && g.allows(r.db, "system.profile", "find")
}

func ruleCurrentOp(r *request, g *grants) bool {
	own, err := r.flag("$ownOps")
	return g.allowsCluster("inprog") || err == nil && own
}

// ruleKillOp lets everybody end their own commands.
func ruleKillOp(r *request, g *grants) bool {
	if g.allowsCluster("killop") {
		return true
	}
	id, err := r.number("op")
	if err != nil {
		return true // it will be refused
	}
	t := &r.server.ops
	t.mu.Lock()
	defer t.mu.Unlock()
	op := t.byID[id]
	if op == nil {
		return false
	}
	user, database := op.request.conn.auth.who()
	return user == r.conn.auth.user && database == r.conn.auth.database
}
