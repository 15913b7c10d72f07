package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// What those send who look after replica sets and clusters. There is one member, no shard, and nothing that is locked, so most of it is
// answered with what a mongod says that finds nothing to do; what would change something else fails with its codes.

const (
	codeShardingOff       document.Code = 203
	codeNotSecondary      document.Code = 95
	codeExceededTimeLimit document.Code = 262
)

func maintenanceCommands() []*command {
	return append(refusedCommands(), []*command{
		{name: "shutdown", run: (*request).shutdown, fields: []string{"force", "timeoutSecs"}, admin: true, help: "ends the server, as SIGTERM does"},
		{name: "logRotate", run: nothingToDo, anyField: true, admin: true, help: "does nothing: the log is the standard error of the process"},
		{name: "lockInfo", run: answers(bson.E{Key: "lockInfo", Value: bson.A{}}), anyField: true, admin: true, help: "says that there are no locks"},
		{name: "fsyncUnlock", run: fails(codeIllegalOperation, "fsyncUnlock called when not locked"), anyField: true, admin: true, help: "says that nothing is locked"},
		{name: "refreshLogicalSessionCacheNow", run: nothingToDo, anyField: true, help: "does nothing: sessions are in one place"},
		{name: "reapLogicalSessionCacheNow", run: nothingToDo, anyField: true, help: "does nothing: sessions are in one place"},
		{name: "whatsmysni", run: answers(bson.E{Key: "sni", Value: false}), anyField: true, help: "says that the name in a TLS handshake is not looked at"},
		{name: "shardingState", run: answers(bson.E{Key: "enabled", Value: false}), anyField: true, admin: true, help: "says that there are no shards"},
		{name: "getShardMap", run: fails(codeShardingOff, "Sharding is not enabled"), anyField: true, admin: true, help: "says that there are no shards"},
		{name: "replSetGetRBID", run: ofMember((*request).rollbackID), anyField: true, admin: true, help: "says that nothing was ever rolled back"},
		{name: "replSetFreeze", run: ofMember(fails(codeNotSecondary, "Cannot freeze node when primary or running for election, state: Primary")),
			anyField: true, admin: true, help: "fails: there is no other member"},
		{name: "replSetMaintenance", run: ofMember(fails(codeNotSecondary, "primaries can't modify maintenance mode")),
			anyField: true, admin: true, help: "fails: there is no other member"},
		{name: "replSetStepDown", run: ofMember((*request).stepDown), anyField: true, admin: true, help: "fails: there is no other member"},
	}...)
}

// refusedCommands are known, and cannot be done here.
func refusedCommands() []*command {
	var list []*command
	for _, x := range []struct {
		name, help string
		admin      bool
	}{
		{"mapReduce", "is not supported: there is no JavaScript", false},
		{"filemd5", "is not supported: GridFS has no hashes since MongoDB 4.0", false},
		{"replSetReconfig", "is not supported: the replica set has one member", true},
		{"replSetResizeOplog", "is not supported: --history says how much is kept", true},
		{"rotateCertificates", "is not supported: certificates are read at the start", true},
		{"setUserWriteBlockMode", "is not supported", true},
		{"getClusterParameter", "is not supported", true},
		{"setClusterParameter", "is not supported", true},
		{"dropConnections", "is not supported: there are no connections to other servers", true},
	} {
		list = append(list, &command{name: x.name, run: (*request).notSupported, anyField: true, admin: x.admin, help: x.help})
	}
	return list
}

// shutdown answers, where a mongod just closes the connection, and has the server end: commands that run are let end. Without logins
// only clients on the same machine may ask for it.
func (r *request) shutdown() (bsoncore.Document, error) {
	s := r.server
	if _, err := r.flag("force"); err != nil {
		return nil, err
	}
	if _, err := r.number("timeoutSecs"); err != nil {
		return nil, err
	}
	switch {
	case s.o.Shutdown == nil:
		return r.notSupported()
	case !s.o.Auth && !r.conn.isLocal():
		return nil, document.NewError(codeUnauthorized, "shutdown must run from localhost when running db without auth")
	}
	s.log.Info("a client has the server end", "client", remoteHost(r.conn.net), "user", r.conn.auth.user)
	s.o.Shutdown()
	return ok(), nil
}

func nothingToDo(*request) (bsoncore.Document, error) { return ok(), nil }

// answers makes a command that always says the same.
func answers(fields ...bson.E) func(*request) (bsoncore.Document, error) {
	return func(*request) (bsoncore.Document, error) {
		return encode(append(bson.D(fields), bson.E{Key: "ok", Value: 1.0}))
	}
}

// fails makes a command that always fails.
func fails(code document.Code, text string) func(*request) (bsoncore.Document, error) {
	return func(*request) (bsoncore.Document, error) { return nil, document.NewError(code, "%s", text) }
}

// ofMember makes a command that only a member of a replica set has.
func ofMember(run func(*request) (bsoncore.Document, error)) func(*request) (bsoncore.Document, error) {
	return func(r *request) (bsoncore.Document, error) {
		if err := r.onlySet(); err != nil {
			return nil, err
		}
		return run(r)
	}
}

func (r *request) rollbackID() (bsoncore.Document, error) {
	return encode(bson.D{{Key: "rbid", Value: int32(1)}, {Key: "ok", Value: 1.0}})
}

// stepDown fails at once, where a mongod waits for other members to catch up: there is none that could come.
func (r *request) stepDown() (bsoncore.Document, error) {
	if _, isNumber := asInt64(r.target); !isNumber {
		return nil, document.NewError(document.BadValue, "Expected a number of seconds in replSetStepDown")
	}
	force, err := r.flag("force")
	if err != nil {
		return nil, err
	}
	if force {
		return nil, document.NewError(codeNotSupported, "the only member of the replica set is always its primary")
	}
	return nil, document.NewError(codeExceededTimeLimit, "No electable secondaries caught up: there is no other member.")
}
