package mongo

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

func replicationCommands() []*command {
	return []*command{
		{name: "getParameter", run: (*request).getParameter, anyField: true, admin: true, help: "returns parameters of the server"},
		{name: "setParameter", run: (*request).setParameter, anyField: true, admin: true, help: "sets parameters of the server"},
		{name: "replSetGetStatus", run: (*request).replSetGetStatus, anyField: true, admin: true, help: "says how the replica set is"},
		{name: "replSetGetConfig", run: (*request).replSetGetConfig, anyField: true, admin: true, help: "returns the replica set's configuration"},
		{name: "replSetInitiate", run: (*request).replSetInitiate, anyField: true, admin: true, help: "says that the replica set is there already"},
		{name: "getDefaultRWConcern", run: (*request).getDefaultRWConcern, fields: []string{"inMemory"}, admin: true, help: "returns the default concerns"},
		{name: "setDefaultRWConcern", run: (*request).setDefaultRWConcern, fields: []string{"defaultReadConcern", "defaultWriteConcern"},
			admin: true, write: true, help: "sets the concerns of commands that name none"},
		{name: "setFeatureCompatibilityVersion", run: (*request).setFeatureCompatibilityVersion, anyField: true, admin: true, help: "takes 7.0 and nothing else"},
		{name: "appendOplogNote", run: (*request).appendOplogNote, anyField: true, admin: true, help: "puts a note into the oplog"},
	}
}

func (r *request) onlySet() error {
	if r.server.o.Standalone {
		return document.NewError(document.Code(76), "not running with --replSet")
	}
	return nil
}

func (r *request) replSetGetStatus() (bsoncore.Document, error) {
	if err := r.onlySet(); err != nil {
		return nil, err
	}
	s := r.server
	last := s.store.LastTime()
	at := bson.D{{Key: "ts", Value: last}, {Key: "t", Value: int64(1)}}
	wall := time.Unix(int64(last.T), 0)
	up := int32(s.clock.Now().Sub(s.started).Seconds())
	return encode(bson.D{
		{Key: "set", Value: s.o.SetName}, {Key: "date", Value: s.clock.Now()}, {Key: "myState", Value: int32(1)}, {Key: "term", Value: int64(1)},
		{Key: "syncSourceHost", Value: ""}, {Key: "syncSourceId", Value: int32(-1)},
		{Key: "heartbeatIntervalMillis", Value: int64(2000)}, {Key: "majorityVoteCount", Value: int32(1)}, {Key: "writeMajorityCount", Value: int32(1)},
		{Key: "votingMembersCount", Value: int32(1)}, {Key: "writableVotingMembersCount", Value: int32(1)},
		{Key: "optimes", Value: bson.D{
			{Key: "lastCommittedOpTime", Value: at}, {Key: "lastCommittedWallTime", Value: wall}, {Key: "readConcernMajorityOpTime", Value: at},
			{Key: "appliedOpTime", Value: at}, {Key: "durableOpTime", Value: at}, {Key: "lastAppliedWallTime", Value: wall}, {Key: "lastDurableWallTime", Value: wall},
		}},
		{Key: "lastStableRecoveryTimestamp", Value: last},
		{Key: "members", Value: bson.A{bson.D{
			{Key: "_id", Value: int32(0)}, {Key: "name", Value: s.o.Address}, {Key: "health", Value: 1.0}, {Key: "state", Value: int32(1)},
			{Key: "stateStr", Value: "PRIMARY"}, {Key: "uptime", Value: up}, {Key: "optime", Value: at}, {Key: "optimeDate", Value: wall},
			{Key: "lastAppliedWallTime", Value: wall}, {Key: "lastDurableWallTime", Value: wall}, {Key: "syncSourceHost", Value: ""},
			{Key: "syncSourceId", Value: int32(-1)}, {Key: "infoMessage", Value: ""}, {Key: "lastHeartbeatMessage", Value: ""},
			{Key: "electionTime", Value: bson.Timestamp{T: uint32(s.started.Unix()), I: 1}}, {Key: "electionDate", Value: s.started},
			{Key: "configVersion", Value: int32(1)}, {Key: "configTerm", Value: int32(1)}, {Key: "self", Value: true},
		}}},
		{Key: "ok", Value: 1.0},
	})
}

func (r *request) replSetGetConfig() (bsoncore.Document, error) {
	if err := r.onlySet(); err != nil {
		return nil, err
	}
	s := r.server
	return encode(bson.D{
		{Key: "config", Value: bson.D{
			{Key: "_id", Value: s.o.SetName}, {Key: "version", Value: int32(1)}, {Key: "term", Value: int32(1)}, {Key: "protocolVersion", Value: int64(1)},
			{Key: "writeConcernMajorityJournalDefault", Value: true},
			{Key: "members", Value: bson.A{bson.D{
				{Key: "_id", Value: int32(0)}, {Key: "host", Value: s.o.Address}, {Key: "arbiterOnly", Value: false}, {Key: "buildIndexes", Value: true},
				{Key: "hidden", Value: false}, {Key: "priority", Value: 1.0}, {Key: "tags", Value: bson.D{}}, {Key: "secondaryDelaySecs", Value: int64(0)},
				{Key: "votes", Value: int32(1)},
			}}},
			{Key: "settings", Value: bson.D{
				{Key: "chainingAllowed", Value: true}, {Key: "heartbeatIntervalMillis", Value: int32(2000)}, {Key: "heartbeatTimeoutSecs", Value: int32(10)},
				{Key: "electionTimeoutMillis", Value: int32(10_000)}, {Key: "catchUpTimeoutMillis", Value: int32(-1)},
				{Key: "catchUpTakeoverDelayMillis", Value: int32(30_000)}, {Key: "getLastErrorModes", Value: bson.D{}},
				{Key: "getLastErrorDefaults", Value: bson.D{{Key: "w", Value: int32(1)}, {Key: "wtimeout", Value: int32(0)}}}, {Key: "replicaSetId", Value: s.electionID()},
			}},
		}},
		{Key: "ok", Value: 1.0},
	})
}

func (r *request) replSetInitiate() (bsoncore.Document, error) {
	if err := r.onlySet(); err != nil {
		return nil, err
	}
	return nil, document.NewError(document.Code(23), "already initialized")
}

func (r *request) setFeatureCompatibilityVersion() (bsoncore.Document, error) {
	if r.target.Type == bsoncore.TypeNull {
		return nil, missingField("setFeatureCompatibilityVersion.setFeatureCompatibilityVersion")
	}
	v, isText := r.target.StringValueOK()
	if !isText {
		return nil, wrongType("setFeatureCompatibilityVersion.setFeatureCompatibilityVersion", r.target, "string")
	}
	if v != "7.0" {
		return nil, document.NewError(document.Code(4926900), "Invalid feature compatibility version value, expected '7.0'")
	}
	return ok(), nil
}

// appendOplogNote only puts a note into the oplog: there are no other members who would have to hear of it.
func (r *request) appendOplogNote() (bsoncore.Document, error) {
	data, err := r.document("data")
	if err != nil {
		return nil, err
	}
	if data == nil {
		return nil, document.NewError(document.Code(4), "Missing expected field \"data\"")
	}
	return ok(), r.server.store.Noop(r.ctx, bson.Raw(data))
}
