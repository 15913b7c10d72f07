package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// currentOp is the command: its further fields are a filter.
func (r *request) currentOp() (bsoncore.Document, error) {
	own, err := r.flag("$ownOps")
	if err != nil {
		return nil, err
	}
	idle := false
	if r.has("$all") {
		if idle, err = r.flag("$all"); err != nil {
			return nil, err
		}
	}
	filter, err := r.currentOpFilter()
	if err != nil {
		return nil, err
	}
	list := bson.A{}
	rows, err := r.currentOps(own, idle)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		ok, err := filter.Match(row)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, row)
		}
	}
	return encode(bson.D{{Key: "inprog", Value: list}, {Key: "ok", Value: 1.0}})
}

// currentOpFilter is the fields of the command that are neither options nor what every command may have.
func (r *request) currentOpFilter() (*document.Filter, error) {
	spec := bsoncore.NewDocumentBuilder()
	elements, err := r.body.Elements()
	if err != nil {
		return nil, document.NewError(document.FailedToParse, "%s: %v", r.name, err)
	}
	for _, e := range elements[1:] {
		if key := e.Key(); key != "$ownOps" && key != "$all" && !generic(key) {
			spec.AppendValue(key, e.Value())
		}
	}
	return document.ParseFilter(bson.Raw(spec.Build()))
}

// currentOpStage is the stage: what it may be told are booleans.
func (r *request) currentOpStage(spec bson.RawValue) ([]bson.Raw, error) {
	all, idle := false, false
	options, _ := bsoncore.Document(spec.Value).Elements() // the pipeline has been checked
	for _, e := range options {
		key := e.Key()
		switch key {
		case "allUsers", "idleConnections", "idleCursors", "idleSessions", "localOps", "truncateOps", "backtrace", "targetAllNodes":
		default:
			return nil, document.NewError(document.FailedToParse, "Unrecognized option '%s' in $currentOp stage.", printable(key))
		}
		v, isBool := e.Value().BooleanOK()
		if !isBool {
			return nil, document.NewError(document.FailedToParse, "The '%s' parameter of the $currentOp stage must be a boolean value, but found: %s",
				key, bson.Type(e.Value().Type))
		}
		all = all || key == "allUsers" && v
		idle = idle || key == "idleConnections" && v
	}
	return r.currentOps(!all, idle)
}

// currentOps describes the commands that run, and then the connections on which none does, if idle: all of them, or those of the user
// who asks.
func (r *request) currentOps(own, idle bool) ([]bson.Raw, error) {
	me := r.conn.auth.shared.Load()
	foreign := func(user *authName) bool { return own && me != nil && (user == nil || *user != *me) }
	busy := map[*conn]bool{}
	list, err := r.describeOps(foreign, busy)
	if !idle || err != nil {
		return list, err
	}
	t := &r.server.conns
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.list {
		user := c.auth.shared.Load()
		if busy[c] || foreign(user) {
			continue
		}
		row, err := bson.Marshal(append(c.describe(user, false), bson.E{Key: "threaded", Value: true}))
		if err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, nil
}

// describeOps describes the commands that run, but those of foreign users, and notes on which connections they do.
func (r *request) describeOps(foreign func(user *authName) bool, busy map[*conn]bool) ([]bson.Raw, error) {
	t := &r.server.ops
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []bson.Raw
	for _, op := range t.byID {
		user := op.request.conn.auth.shared.Load()
		busy[op.request.conn] = true
		if foreign(user) {
			continue
		}
		row, err := bson.Marshal(r.describe(op, user))
		if err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, nil
}

// describe describes a connection.
func (c *conn) describe(user *authName, active bool) bson.D {
	d := bson.D{
		{Key: "type", Value: "op"}, {Key: "host", Value: c.server.o.Address}, {Key: "desc", Value: "conn" + itoa(int(c.id))}, {Key: "connectionId", Value: c.id},
		{Key: "client", Value: c.net.RemoteAddr().String()},
	}
	if client := c.client.Load(); client != nil {
		if app, ok := client.Lookup("application", "name").StringValueOK(); ok {
			d = append(d, bson.E{Key: "appName", Value: app})
		}
		d = append(d, bson.E{Key: "clientMetadata", Value: bson.Raw(*client)})
	}
	d = append(d, bson.E{Key: "active", Value: active}, bson.E{Key: "currentOpTime", Value: c.server.clock.Now().UTC().Format("2006-01-02T15:04:05.000-07:00")})
	if user != nil {
		d = append(d, bson.E{Key: "effectiveUsers", Value: bson.A{bson.D{{Key: "user", Value: user.Name}, {Key: "db", Value: user.DB}}}})
	}
	return d
}

// describe describes a command that runs. The table of operations is locked, so it does not end meanwhile.
func (r *request) describe(op *operation, user *authName) bson.D {
	x, took := op.request, r.server.clock.Now().Sub(op.started)
	d := x.conn.describe(user, true)
	d = append(d, bson.E{Key: "opid", Value: int32(op.id)})
	if id, err := x.body.LookupErr("lsid"); err == nil {
		d = append(d, bson.E{Key: "lsid", Value: bson.RawValue{Type: bson.Type(id.Type), Value: id.Data}})
	}
	return append(d, bson.D{
		{Key: "secs_running", Value: int64(took.Seconds())}, {Key: "microsecs_running", Value: took.Microseconds()},
		{Key: "op", Value: x.kind()}, {Key: "ns", Value: x.namespace()}, {Key: "command", Value: bson.Raw(shown(x))},
		{Key: "numYields", Value: int32(0)}, {Key: "locks", Value: bson.D{}}, {Key: "waitingForLock", Value: false}, {Key: "lockStats", Value: bson.D{}},
	}...)
}

// kind is what MongoDB's statistics call a command.
func (r *request) kind() string {
	switch r.command.name {
	case "find":
		return "query"
	case "getMore":
		return "getmore"
	case "delete":
		return "remove"
	case "insert", "update":
		return r.command.name
	}
	return "command"
}

// namespace is the collection that a command names, or a stand-in.
func (r *request) namespace() string { return string(r.appendNamespace(nil)) }

func (r *request) appendNamespace(dst []byte) []byte {
	of := r.target
	if r.command.name == "getMore" {
		of = r.args["collection"]
	}
	const around = 4 + 1 // the length before a string, and the zero behind it
	isText := of.Type == bsoncore.TypeString && len(of.Data) > around
	if isText && r.command.name == "dataSize" { // which is given the database, too
		return append(dst, of.Data[4:len(of.Data)-1]...)
	}
	dst = append(append(dst, r.db...), '.')
	if isText && r.command.onCollection() {
		return append(dst, of.Data[4:len(of.Data)-1]...)
	}
	return append(dst, noCollection...)
}

// onCollection reports whether a text that stands first in the command is the name of a collection: not that of a user, or of a log.
func (c *command) onCollection() bool {
	switch c.name {
	case "aggregate", "count", "distinct", "find", "getMore", "killCursors", "insert", "update", "delete", "findAndModify", "mapReduce",
		"create", "drop", "collMod", "createIndexes", "dropIndexes", "listIndexes", "reIndex", "convertToCapped", "cloneCollectionAsCapped",
		"collStats", "validate", "compact", "planCacheClear", "planCacheClearFilters", "planCacheListFilters", "planCacheSetFilter":
		return true
	}
	return false
}

// noCollection stands for the collection of a command that names none.
const noCollection = "$cmd"

// shown is a command as others may see it: without secrets, and without what would be too long.
func shown(r *request) bsoncore.Document {
	switch r.name {
	case "saslStart", "saslContinue", "createUser", "updateUser", "hello", "isMaster", "ismaster", "authenticate":
		return bsoncore.NewDocumentBuilder().AppendString(r.name, "xxx").Build()
	}
	const most = 4 << 10
	if len(r.body) > most {
		target := r.target
		if len(target.Data) > most {
			target = bsoncore.Value{Type: bsoncore.TypeNull}
		}
		return bsoncore.NewDocumentBuilder().AppendValue(r.name, target).AppendString("$truncated", "too long").Build()
	}
	return append(bsoncore.Document(nil), redacted(r.name, r.body)...)
}
