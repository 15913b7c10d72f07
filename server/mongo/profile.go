package mongo

import (
	"context"
	"crypto/md5" //nolint:gosec // the answer's field is called so; it proves nothing
	"encoding/hex"
	"hash"
	"math"
	"math/rand/v2"
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
	level  int64 // 0: none, 1: those that the filter matches, or without one a sample of the slow ones, 2: all
	slow   time.Duration
	rate   float64 // of the slow ones, from 0 to 1
	filter *document.Filter
	spec   bson.Raw // of the filter
}

// Defaults of the profiler.
const (
	defaultSlow     = 100 * time.Millisecond
	profileCapacity = 1 << 20
	profileName     = "system.profile"
)

// switchOff switches the profiler of a database off, and returns what it was set to.
func (p *profiles) switchOff(db string) profileSetting {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.byDatabase[db]
	if off := before; known {
		off.level = 0
		p.byDatabase[db] = off
	}
	return before
}

func (p *profiles) of(db string) profileSetting {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.byDatabase[db]
	if !ok {
		s.slow, s.rate = defaultSlow, 1
	}
	return s
}

// set keeps the setting of a database, unless it is the one of those that have none: names of databases cost a client nothing.
func (p *profiles) set(db string, s profileSetting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.level == 0 && s.slow == defaultSlow && s.rate == 1 && s.filter == nil {
		delete(p.byDatabase, db)
		return
	}
	if p.byDatabase == nil {
		p.byDatabase = map[string]profileSetting{}
	}
	p.byDatabase[db] = s
}

// profileOf returns the collection of a database's profile, and makes it where it is not there.
func (s *Server) profileOf(ctx context.Context, db string) (*document.Collection, error) {
	return s.store.Database(db).Collection(ctx, profileName, &document.CollectionOptions{Capped: true, SizeBytes: profileCapacity})
}

// setProfile is the profile command.
func (r *request) setProfile() (bsoncore.Document, error) {
	was := r.server.profile.of(r.db)
	now, err := r.profileAsked(was)
	if err != nil {
		return nil, err
	}
	if now.level > 0 {
		if _, err := r.server.profileOf(r.ctx, r.db); err != nil {
			return nil, err
		}
	}
	r.server.profile.set(r.db, now)
	d := bson.D{{Key: "was", Value: int32(was.level)}, {Key: "slowms", Value: int32(was.slow.Milliseconds())}, {Key: "sampleRate", Value: was.rate}}
	if was.filter != nil {
		d = append(d, bson.E{Key: "filter", Value: was.spec})
	}
	if was.filter != nil || now.filter != nil {
		d = append(d, bson.E{Key: "note", Value: "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query log lines."})
	}
	return encode(append(d, bson.E{Key: "ok", Value: 1.0}))
}

// profileAsked returns the setting that is asked for; a level of -1 leaves it as it is.
func (r *request) profileAsked(was profileSetting) (profileSetting, error) {
	now := was
	level, isNumber := asInt64(r.target)
	switch {
	case r.target.Type == bsoncore.TypeNull:
		return was, missingField("profile.profile")
	case !isNumber:
		return was, wrongType("profile.profile", r.target, "long")
	case level < -1 || level > 2:
		return was, document.NewError(document.BadValue, "BSON field 'profile' must be -1, 0, 1 or 2")
	case level >= 0:
		now.level = level
	}
	if r.has("slowms") {
		ms, err := r.number("slowms")
		if err != nil {
			return was, err
		}
		// More milliseconds than the answer can tell would not even be a time.Duration: who means never shall not get always.
		now.slow = time.Duration(min(max(ms, math.MinInt32), math.MaxInt32)) * time.Millisecond
	}
	if rate, isNumber := asDouble(r.args["sampleRate"]); isNumber {
		if !(rate >= 0 && rate <= 1) {
			return was, document.NewError(document.BadValue, "'sampleRate' must be between 0.0 and 1.0 inclusive")
		}
		now.rate = rate
	}
	v, given := r.args["filter"]
	if !given {
		return now, nil
	}
	now.filter, now.spec = nil, nil
	if text, _ := v.StringValueOK(); text == "unset" {
		return now, nil
	}
	if v.Type != bsoncore.TypeEmbeddedDocument {
		return was, document.NewError(document.BadValue, "Expected an object, or the string 'unset'.")
	}
	var err error
	now.spec = slices.Clone(bson.Raw(v.Data))
	now.filter, err = document.ParseFilter(now.spec)
	return now, err
}

// picks reports whether a command goes by its duration into the profile, or may do so by what is to be said of it.
func (p *profileSetting) picks(took time.Duration) bool {
	return p.level == 2 || p.level == 1 && (p.filter != nil || took >= p.slow && (p.rate == 1 || rand.Float64() < p.rate))
}

// wants reports whether an entry goes into the profile.
func (p *profileSetting) wants(entry bson.Raw) (bool, error) {
	if p.level == 2 || p.filter == nil {
		return true, nil
	}
	return p.filter.Match(entry)
}

// keep puts a command into its database's profile, when its settings ask for it.
func (p *profiles) keep(s *Server, r *request, reply bsoncore.Document, err error, took time.Duration) {
	setting := p.of(r.db)
	if !setting.picks(took) || r.command == nil || r.command.open {
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
	entry, err := bson.Marshal(d)
	wanted := false
	if err == nil {
		wanted, err = setting.wants(entry)
	}
	if wanted {
		err = s.putProfile(context.WithoutCancel(r.ctx), r.db, entry)
	}
	if err != nil && s.work.Err() == nil {
		s.log.Warn("a command could not be put into the profile", "database", r.db, "error", err)
	}
}

// putProfile puts an entry into a database's profile, which is made anew, and capped, where somebody has dropped it while it is in use.
func (s *Server) putProfile(ctx context.Context, db string, entry bson.Raw) error {
	c := s.store.Database(db).Lookup(profileName)
	exists, err := c.Exists()
	if err == nil && !exists {
		if s.profile.of(db).level == 0 {
			return nil
		}
		c, err = s.profileOf(ctx, db)
	}
	if err != nil {
		return err
	}
	_, err = c.Insert(ctx, entry)
	return err
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
