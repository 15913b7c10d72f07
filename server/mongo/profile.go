package mongo

import (
	"context"
	"crypto/md5" //nolint:gosec // the answer's field is called so; it proves nothing
	"encoding/hex"
	"hash"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
)

// profiles is the profiler's settings, by database.
type profiles struct {
	mu         sync.Mutex
	byDatabase map[string]profileSetting
}

// profileSetting says which commands of a database go into its system.profile.
type profileSetting struct {
	level int64 // 0: none, 1: slow ones, 2: all
	slow  time.Duration
}

// Defaults of the profiler.
const (
	defaultSlow      = 100 * time.Millisecond
	profileCapacity  = 1 << 20
	profileName      = "system.profile"
	mostProfileBytes = 16 << 10
)

func (p *profiles) of(db string) profileSetting {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.byDatabase[db]
	if !ok {
		s.slow = defaultSlow
	}
	return s
}

// setProfile is the profile command.
// profileLevel returns the level that is asked for; -1 leaves it as it is.
func (r *request) profileLevel() (int64, error) {
	level, isNumber := asInt64(r.target)
	switch {
	case r.target.Type == bsoncore.TypeNull:
		return 0, document.NewError(codeMissingField, "BSON field 'profile.profile' is missing but a required field")
	case !isNumber:
		return 0, wrongType("profile.profile", r.target, "long")
	case level < -1 || level > 2:
		return 0, document.NewError(document.BadValue, "BSON field 'profile' must be -1, 0, 1 or 2")
	}
	v := r.args["sampleRate"]
	rate, isDouble := v.DoubleOK()
	if whole, isNumber := asInt64(v); isNumber && (whole < 0 || whole > 1) || isDouble && (rate < 0 || rate > 1) {
		return 0, document.NewError(document.BadValue, "'sampleRate' must be between 0.0 and 1.0 inclusive")
	}
	v, given := r.args["filter"]
	if text, _ := v.StringValueOK(); !given || text == "unset" {
		return level, nil
	}
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return 0, document.NewError(document.BadValue, "Expected an object, or the string 'unset'.")
	}
	return 0, document.NewError(codeNotSupported, "a filter of the profiler is not supported by this server")
}

func (r *request) setProfile() (bsoncore.Document, error) {
	level, err := r.profileLevel()
	if err != nil {
		return nil, err
	}
	was := r.server.profile.of(r.db)
	now := was
	if level >= 0 {
		now.level = level
	}
	if r.has("slowms") {
		ms, err := r.number("slowms")
		if err != nil {
			return nil, err
		}
		now.slow = time.Duration(ms) * time.Millisecond
	}
	if now.level > 0 {
		_, err := r.server.store.Database(r.db).Collection(r.ctx, profileName, &document.CollectionOptions{Capped: true, SizeBytes: profileCapacity})
		if err != nil {
			return nil, err
		}
	}
	p := &r.server.profile
	p.mu.Lock()
	if p.byDatabase == nil {
		p.byDatabase = map[string]profileSetting{}
	}
	p.byDatabase[r.db] = now
	p.mu.Unlock()
	return encode(bson.D{{Key: "was", Value: int32(was.level)}, {Key: "slowms", Value: int32(was.slow.Milliseconds())}, {Key: "sampleRate", Value: 1.0}, {Key: "ok", Value: 1.0}})
}

// keep puts a command into its database's profile, when its settings ask for it.
func (p *profiles) keep(ctx context.Context, s *Server, r *request, reply bsoncore.Document, err error, took time.Duration) {
	setting := p.of(r.db)
	if setting.level == 0 || setting.level == 1 && took < setting.slow || r.command == nil || r.command.open {
		return
	}
	name, _ := r.target.StringValueOK()
	if name == profileName {
		return
	}
	if name == "" {
		name = "$cmd"
	}
	d := bson.D{
		{Key: "op", Value: operationOf(r.name)}, {Key: "ns", Value: r.db + "." + name}, {Key: "command", Value: bson.Raw(shown(r))},
		{Key: "responseLength", Value: int32(len(reply))}, {Key: "millis", Value: document.Number(took.Milliseconds())}, {Key: "ts", Value: s.clock.Now()},
		{Key: "client", Value: remoteHost(r.conn.net)}, {Key: "appName", Value: r.conn.appName}, {Key: "user", Value: r.conn.auth.user},
	}
	d = append(d, counted(r.name, reply)...)
	if err != nil {
		d = append(d, bson.E{Key: "errCode", Value: int32(document.CodeOf(err))}, bson.E{Key: "errMsg", Value: message(err)})
	}
	if _, err := s.store.Database(r.db).Lookup(profileName).Insert(ctx, d); err != nil && s.work.Err() == nil {
		s.log.Warn("a command could not be put into the profile", "database", r.db, "error", err)
	}
}

// counted says how many documents a command returned or changed.
func counted(name string, reply bsoncore.Document) bson.D {
	as := func(field, from string) bson.D {
		n, ok := asInt64(reply.Lookup(from))
		if !ok {
			return nil
		}
		return bson.D{{Key: field, Value: document.Number(n)}}
	}
	switch name {
	case "find", "aggregate", "getMore":
		for _, batch := range []string{"firstBatch", "nextBatch"} {
			if array, ok := reply.Lookup("cursor", batch).ArrayOK(); ok {
				values, _ := array.Values()
				return bson.D{{Key: "nreturned", Value: document.Number(int64(len(values)))}}
			}
		}
	case "insert":
		return as("ninserted", "n")
	case "delete":
		return as("ndeleted", "n")
	case "update":
		return append(as("nMatched", "n"), as("nModified", "nModified")...)
	}
	return nil
}

// operationOf is what a profile calls a command.
func operationOf(name string) string {
	switch name {
	case "find":
		return "query"
	case "getMore":
		return "getmore"
	case "insert", "update":
		return name
	case "delete":
		return "remove"
	}
	return "command"
}

// digest hashes documents.
type digest struct{ h hash.Hash }

func newDigest() *digest { return &digest{md5.New()} }

func (d *digest) add(b []byte) { _, _ = d.h.Write(b) } // which cannot fail

func (d *digest) sum() string { return hex.EncodeToString(d.h.Sum(nil)) }

func compactOptions() pando.CompactOptions { return pando.CompactOptions{} }

// sortFields puts fields into the order of their names.
func sortFields(d bson.D) {
	slices.SortFunc(d, func(a, b bson.E) int { return strings.Compare(a.Key, b.Key) })
}
