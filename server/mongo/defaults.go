package mongo

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
)

// Where the default concerns are kept, which is where a mongod has them.
const (
	settingsDatabase   = "config"
	settingsCollection = "settings"
	defaultsID         = "ReadWriteConcernDefaults"
)

const (
	codeUnknownConcern document.Code = 79
	codeStandalone     document.Code = 51300
)

// defaultConcerns is what holds for commands that name no concern of their own.
type defaultConcerns struct {
	changing sync.Mutex
	current  atomic.Pointer[concernsInForce] // never nil once they are loaded
}

// concernsInForce is a state of the default concerns. What nobody has set is nil.
type concernsInForce struct {
	stored storedConcerns
	write  *writeConcern
	known  time.Time // since when
}

// storedConcerns is the document that keeps them.
type storedConcerns struct {
	ID    string         `bson:"_id"`
	Read  bson.Raw       `bson:"defaultReadConcern,omitempty"`
	Write bson.Raw       `bson:"defaultWriteConcern,omitempty"`
	Time  bson.Timestamp `bson:"updateOpTime"`
	Wall  time.Time      `bson:"updateWallClockTime"`
}

// load reads what was set before. What makes no sense holds no server up: commands then have the concerns that nobody has set.
func (d *defaultConcerns) load(ctx context.Context, s *Server) (err error) {
	force, err := s.storedDefaults(ctx)
	d.current.Store(force)
	return err
}

// wrote is told of each command that has ended: it may have changed what is stored behind our back, and the next server would go by that.
func (d *defaultConcerns) wrote(s *Server, r *request) {
	if !r.mayHaveWrittenTo(settingsDatabase) {
		return
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	force, err := s.storedDefaults(s.work)
	if err == nil {
		d.current.Store(force)
	} else if s.work.Err() == nil {
		s.log.Warn("the default concerns could not be read again", "error", err)
	}
}

// storedDefaults reads the default concerns, of which there are none in force when it fails.
func (s *Server) storedDefaults(ctx context.Context) (*concernsInForce, error) {
	force := &concernsInForce{known: s.clock.Now()}
	raw, err := s.defaultsCollection().Get(ctx, defaultsID)
	if errors.Is(err, document.ErrNotFound) || errors.Is(err, document.NamespaceNotFound) {
		return force, nil
	}
	if err != nil {
		return force, err
	}
	if err = bson.Unmarshal(raw, &force.stored); err == nil {
		err = force.parseWrite()
	}
	if err != nil {
		s.log.Warn("the default concerns cannot be read, and do not hold", "error", err)
		force.stored, force.write = storedConcerns{}, nil
	}
	return force, nil
}

// parseWrite makes the stored write concern what commands go by.
func (f *concernsInForce) parseWrite() error {
	if f.stored.Write == nil {
		return nil
	}
	spec := bsoncore.NewDocumentBuilder()
	for _, e := range elementsOf(bsoncore.Document(f.stored.Write)) {
		spec.AppendValue(e.Key(), e.Value())
	}
	f.write = new(writeConcern)
	return f.write.parse(spec.AppendString("provenance", "customDefault").Build())
}

func (s *Server) defaultsCollection() *document.Collection {
	return s.store.Database(settingsDatabase).Lookup(settingsCollection)
}

// hasDefaults refuses commands about default concerns on a server that presents itself as standalone, as a mongod does.
func (r *request) hasDefaults() error {
	if r.server.o.Standalone {
		return document.NewError(codeStandalone, "'%s' is not supported on standalone nodes.", r.name)
	}
	return nil
}

func (r *request) getDefaultRWConcern() (bsoncore.Document, error) {
	if err := r.hasDefaults(); err != nil {
		return nil, err
	}
	inMemory, err := r.flag("inMemory")
	if err != nil {
		return nil, err
	}
	return r.showDefaults(inMemory)
}

// showDefaults answers with what holds for a command that says nothing: where nobody has set anything, a write waits for a sync in the
// durable profile only.
func (r *request) showDefaults(inMemory bool) (bsoncore.Document, error) {
	force := r.server.defaults.current.Load()
	var acknowledged any = "majority"
	if !r.server.durable {
		acknowledged = int32(1)
	}
	source := map[bool]string{true: "global", false: "implicit"}
	var read, write any = force.stored.Read, force.stored.Write
	if force.stored.Read == nil {
		read = bson.D{{Key: "level", Value: "local"}}
	}
	if force.stored.Write == nil {
		write = bson.D{{Key: "w", Value: acknowledged}, {Key: "wtimeout", Value: int32(0)}}
	}
	d := bson.D{{Key: "defaultReadConcern", Value: read}, {Key: "defaultWriteConcern", Value: write}}
	if force.stored.ID != "" {
		d = append(d, bson.E{Key: "updateOpTime", Value: force.stored.Time}, bson.E{Key: "updateWallClockTime", Value: force.stored.Wall})
	}
	d = append(d, bson.E{Key: "defaultWriteConcernSource", Value: source[force.stored.Write != nil]},
		bson.E{Key: "defaultReadConcernSource", Value: source[force.stored.Read != nil]})
	if inMemory {
		d = append(d, bson.E{Key: "inMemory", Value: true})
	}
	return encode(append(d, bson.E{Key: "localUpdateWallClockTime", Value: force.known}, bson.E{Key: "ok", Value: 1.0}))
}

// setDefaultRWConcern changes one of the default concerns, or both. The change itself waits for a sync.
func (r *request) setDefaultRWConcern() (bsoncore.Document, error) {
	if err := r.hasDefaults(); err != nil {
		return nil, err
	}
	if !r.has("defaultReadConcern") && !r.has("defaultWriteConcern") {
		return nil, document.NewError(document.BadValue, `At least one of the "defaultReadConcern" or "defaultWriteConcern" fields must be present`)
	}
	d := &r.server.defaults
	d.changing.Lock()
	defer d.changing.Unlock()
	next := *d.current.Load()
	if err := r.defaultRead(&next); err != nil {
		return nil, err
	}
	if err := r.defaultWrite(&next); err != nil {
		return nil, err
	}
	next.known = r.server.clock.Now()
	next.stored.ID, next.stored.Time, next.stored.Wall = defaultsID, r.server.store.LastTime(), next.known
	if !r.concern.given {
		r.concern = writeConcern{given: true, majority: true}
	}
	_, err := r.server.defaultsCollection().Replace(r.ctx, bson.D{{Key: "_id", Value: defaultsID}}, next.stored, &document.UpdateOptions{Upsert: true})
	if err != nil {
		return nil, err
	}
	d.current.Store(&next)
	return r.showDefaults(false)
}

// defaultRead takes the read concern that is to be the default; an empty one unsets it.
func (r *request) defaultRead(next *concernsInForce) error {
	spec, err := r.document("defaultReadConcern")
	if err != nil || spec == nil {
		return err
	}
	next.stored.Read = nil
	for _, e := range elementsOf(spec) {
		level, _ := e.Value().StringValueOK()
		switch {
		case e.Key() != "level":
			return document.NewError(document.BadValue, "The field '%s' is not suitable for the default read concern", e.Key())
		case level == "snapshot", level == "linearizable":
			return document.NewError(document.BadValue, "level: '%s' is not suitable for the default read concern", level)
		case level != "local" && level != "available" && level != "majority":
			return document.NewError(document.FailedToParse,
				"readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'")
		}
		next.stored.Read = bson.Raw(bsoncore.NewDocumentBuilder().AppendString("level", level).Build())
	}
	return nil
}

// defaultWrite takes the write concern that is to be the default. It can be changed, and not be unset.
func (r *request) defaultWrite(next *concernsInForce) error {
	spec, err := r.document("defaultWriteConcern")
	if err != nil || spec == nil {
		return err
	}
	if len(elementsOf(spec)) == 0 {
		if next.stored.Write == nil {
			return nil
		}
		return document.NewError(codeIllegalOperation, "The global default write concern cannot be unset once it is set.")
	}
	w := &writeConcern{members: 1}
	if err := w.parse(spec); err != nil {
		return err
	}
	b := bsoncore.NewDocumentBuilder()
	switch {
	case w.none:
		return document.NewError(document.BadValue, "Unacknowledged write concern is not suitable for the default write concern")
	case w.members < 0:
		mode, _ := spec.Lookup("w").StringValueOK()
		return document.NewError(codeUnknownConcern, "No write concern mode named '%s' found in replica set configuration", mode)
	case w.majority:
		b.AppendString("w", "majority")
	default:
		b.AppendInt32("w", int32(w.members))
	}
	if w.journal {
		b.AppendBoolean("j", true)
	}
	timeout, _ := asInt64(spec.Lookup("wtimeout"))
	next.stored.Write = bson.Raw(b.AppendInt32("wtimeout", int32(min(max(timeout, 0), math.MaxInt32))).Build())
	return next.parseWrite()
}
