package document

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/expression"
	"github.com/pandodb/pando/document/internal/scratch"
	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/vfs/osfs"
)

// DefaultDatabase is the database of Store.Collection, and the one in which a MongoDB shell begins.
const DefaultDatabase = "test"

// Store is an open database of documents. It is safe for concurrent use.
type Store struct {
	db        *pando.DB
	owned     bool // Close closes db
	meta      *pando.Keyspace
	options   Options
	log       *slog.Logger
	clock     clock.Clock
	scratch   *scratch.Space  // nil: queries do not spill
	held      *scratch.Memory // by the sorts and groups of queries
	ids       idSource
	times     timestamps
	retries   retries
	durable   bool         // a commit waits for a sync
	exposed   atomic.Int64 // calls of SyncOnce with commits that others may see and that may not be durable
	claims    claims
	ttl       ttl
	oplog     oplogIndex
	undropped undropped
	buried    struct { // dropped collections of which the log was asked
		mu       sync.Mutex
		byNumber map[uint32]*collection
	}

	schema  sync.Mutex // of those who change the catalogue
	current atomic.Pointer[catalogue]
	nextID  uint32 // of a collection; under schema

	work   context.Context // of what runs in the background; done when the store closes
	stop   context.CancelFunc
	beside background
	closed atomic.Bool
	opened time.Time
}

// Open opens the store in dir, and creates it where there is none. It must be closed. It fails as pando.Open does.
func Open(dir string, o *Options) (*Store, error) {
	var options Options
	if o != nil {
		options = *o
	}
	if err := options.check(); err != nil { // before anything is made
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	storage := options.Storage
	if options.History == 0 {
		options.History = defaultHistory
	}
	storage.KeepChanges = max(storage.KeepChanges, options.History)
	if storage.ValueThreshold == 0 {
		storage.ValueThreshold = defaultThreshold
	}
	if storage.Logger == nil {
		storage.Logger = options.Logger
	}
	db, err := pando.Open(dir, &storage)
	if err != nil {
		return nil, err
	}
	if options.FS == nil {
		if options.FS = storage.FS; options.FS == nil {
			options.FS = osfs.New()
		}
	}
	if options.ScratchDir == "" && !storage.ReadOnly {
		options.ScratchDir = filepath.Join(dir, "scratch")
	}
	s, err := NewWith(db, &options)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.owned = true
	return s, nil
}

// check refuses options that make no sense.
func (o *Options) check() error {
	if o.QueryMemoryBytes < 0 || o.TotalQueryMemoryBytes < 0 || o.ScratchBytes < 0 {
		return fmt.Errorf("%w: QueryMemoryBytes, TotalQueryMemoryBytes and ScratchBytes must not be negative", pando.ErrOptions)
	}
	return nil
}

// nowIn returns what $$NOW is in a call: the time at which it begins, or that of the call of which it is a part, unless that is zero.
func (s *Store) nowIn(whole time.Time) time.Time {
	if whole.IsZero() {
		return s.clock.Now()
	}
	return whole
}

// New returns the store in an open database, with the defaults. Closing it leaves the database open.
func New(db *pando.DB) (*Store, error) { return NewWith(db, nil) }

// NewWith is New with options; those that make no sense are pando.ErrOptions.
func NewWith(db *pando.DB, o *Options) (*Store, error) {
	s := &Store{db: db, clock: clock.System()}
	if o != nil {
		s.options = *o
	}
	if s.options.clock != nil {
		s.clock = s.options.clock
	}
	if err := s.options.check(); err != nil {
		return nil, err
	}
	if s.options.QueryMemoryBytes == 0 {
		s.options.QueryMemoryBytes = defaultQueryMemory
	}
	if s.options.TotalQueryMemoryBytes == 0 {
		s.options.TotalQueryMemoryBytes = min(s.options.QueryMemoryBytes, math.MaxInt64/defaultQueries) * defaultQueries
	}
	s.held = scratch.NewMemory(s.options.TotalQueryMemoryBytes, scratch.DefaultOwn)
	if s.options.TTLInterval == 0 {
		s.options.TTLInterval = defaultTTLInterval
	}
	if s.log = s.options.Logger; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.opened = s.clock.Now()
	s.durable = db.Metrics().Profile == pando.Durable
	s.work, s.stop = context.WithCancel(context.Background())
	if err := s.ids.init(); err != nil {
		return nil, err
	}
	if s.options.FS != nil && s.options.ScratchDir != "" {
		var err error
		if s.scratch, err = scratch.Open(s.options.FS, s.options.ScratchDir, s.options.ScratchBytes); err != nil {
			return nil, fmt.Errorf("open the space for spilled queries: %w", err)
		}
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	s.dropTemporary()
	s.startTTL()
	s.startForgetting()
	return s, nil
}

// Close ends what runs in the background, and closes the database if Open opened it. Closing twice is no error.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.stop()
	s.beside.end()
	if s.scratch != nil {
		s.scratch.Close()
	}
	if s.owned {
		return s.db.Close()
	}
	return nil
}

// DB returns the database underneath, for backups, checks, compaction and metrics.
func (s *Store) DB() *pando.DB { return s.db }

// Database returns a database. There is no need to create it: it exists while it has collections.
func (s *Store) Database(name string) *Database { return &Database{store: s, name: name} }

// Collection opens a collection of DefaultDatabase, and creates it where there is none; then o, which may be nil, says how.
func (s *Store) Collection(ctx context.Context, name string, o *CollectionOptions) (*Collection, error) {
	return s.Database(DefaultDatabase).Collection(ctx, name, o)
}

// usable says why the store cannot be used, if it cannot.
func (s *Store) usable() error {
	if s.closed.Load() {
		return fmt.Errorf("document store: %w", ErrClosed)
	}
	return nil
}

// idSource makes ObjectIDs: seconds, five bytes that tell processes apart, and a counter.
type idSource struct {
	process [5]byte
	counter atomic.Uint32
}

// newIDs reserves ObjectIDs for the documents of a batch, so that they are in its order whoever asks first.
func (s *Store) newIDs(n int) func(i int) bson.ObjectID {
	last := s.ids.counter.Add(uint32(n))
	first, t := last-uint32(n)+1, uint32(s.clock.Now().Unix())
	return func(i int) bson.ObjectID { return s.ids.id(t, first+uint32(i)) }
}

// id makes an ObjectID.
func (s *idSource) id(t, n uint32) (id bson.ObjectID) {
	id[0], id[1], id[2], id[3] = byte(t>>24), byte(t>>16), byte(t>>8), byte(t)
	copy(id[4:9], s.process[:])
	id[9], id[10], id[11] = byte(n>>16), byte(n>>8), byte(n)
	return id
}

func (i *idSource) init() error {
	var seed [8]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return fmt.Errorf("random bytes for ObjectIDs: %w", err)
	}
	copy(i.process[:], seed[:5])
	i.counter.Store(uint32(seed[5])<<16 | uint32(seed[6])<<8 | uint32(seed[7]))
	return nil
}

func (s *Store) newID() bson.ObjectID {
	return s.ids.id(uint32(s.clock.Now().Unix()), s.ids.counter.Add(1))
}

// timestamps gives each operation a moment that is later than all that were given before: seconds in the upper half, a counter
// in the lower, as BSON timestamps have them.
type timestamps struct {
	last   atomic.Uint64
	resume sync.Once
}

func (s *Store) timestamp() uint64 { return s.timestamps(1) }

// timestamps returns the first of n timestamps, one after the other, that nobody else gets.
func (s *Store) timestamps(n int) uint64 {
	s.times.resume.Do(s.resumeTime)
	now := uint64(max(s.clock.Now().Unix(), 0)) << 32 // what is negative would come round, into a future that no later operation may leave
	for {
		last := s.times.last.Load()
		next := max(last+1, now+1)
		if s.times.last.CompareAndSwap(last, next+uint64(n)-1) {
			return next
		}
	}
}

// LastTime returns the timestamp of the newest operation, or of the present second when there has been none.
func (s *Store) LastTime() bson.Timestamp {
	s.times.resume.Do(s.resumeTime)
	last := s.times.last.Load()
	if last == 0 {
		last = s.timestamp()
	}
	return bson.Timestamp{T: uint32(last >> 32), I: uint32(last)}
}

// newCall makes the call that a query is parsed for, and first carried out.
func (s *Store) newCall(ctx context.Context) *expression.Call {
	call := new(expression.Call)
	if s.options.History >= 0 { // else there is no replica set either
		call.Cluster = (*clusterClock)(s)
	}
	call.By(ctx)
	return call
}

// clusterClock is the store as expressions see it. It implements expression.ClusterClock.
type clusterClock Store

// ClusterTime implements expression.ClusterClock.
func (c *clusterClock) ClusterTime() uint64 {
	t := (*Store)(c).LastTime()
	return uint64(t.T)<<32 | uint64(t.I)
}

// resumeTime goes on from the newest time that the log tells of, when a time is wanted first: the store may have been open before in this
// very second, or the system's clock have been set back.
func (s *Store) resumeTime() {
	if s.options.History < 0 {
		return
	}
	last, oldest := s.db.LastSeq(), s.db.OldestChange()
	for reach := uint64(1024); last >= oldest; reach *= 16 {
		from := oldest
		if last-oldest >= reach {
			from = last - reach
		}
		if s.noticeTimes(from) || from == oldest {
			return
		}
	}
}

// noticeTimes takes in the times of the notes that the log has from a change on, and reports whether there was one.
func (s *Store) noticeTimes(from uint64) (found bool) {
	for c, err := range s.db.Changes(s.work, pando.ChangesOptions{From: from}) {
		if errors.Is(err, pando.ErrReadOnly) {
			return true // and nobody asks the log for anything
		}
		if err != nil {
			s.log.Warn("the time of the newest operation is not known", "error", err)
			return found
		}
		if c.Kind != pando.ChangeNote || c.Keyspace != metaKeyspace || len(c.Value) < 9 {
			continue
		}
		if op := operation(c.Value[0]); op != opImage && op != opDiff {
			s.times.last.Store(max(s.times.last.Load(), binary.BigEndian.Uint64(c.Value[1:])))
			found = true
		}
	}
	return found
}

// Tick moves the time of operations on, as a write does, and returns it.
func (s *Store) Tick() bson.Timestamp {
	t := s.timestamp()
	return bson.Timestamp{T: uint32(t >> 32), I: uint32(t)}
}
