package document

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document/internal/scratch"
	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/vfs/osfs"
)

// DefaultDatabase is the database of Store.Collection, and the one in which a MongoDB shell begins.
const DefaultDatabase = "test"

// Store is an open database of documents. It is safe for concurrent use.
type Store struct {
	db      *pando.DB
	owned   bool // Close closes db
	meta    *pando.Keyspace
	options Options
	log     *slog.Logger
	clock   clock.Clock
	scratch *scratch.Space // nil: queries do not spill
	ids     idSource
	times   timestamps
	retries retries
	claims  claims

	schema  sync.Mutex // of those who change the catalogue
	current atomic.Pointer[catalogue]
	nextID  uint32 // of a collection; under schema

	work   context.Context // of what runs in the background; done when the store closes
	stop   context.CancelFunc
	wait   sync.WaitGroup
	closed atomic.Bool
}

// Open opens the store in dir, and creates it where there is none. It must be closed.
func Open(dir string, o *Options) (*Store, error) {
	var options Options
	if o != nil {
		options = *o
	}
	storage := options.Storage
	if options.History == 0 {
		options.History = defaultHistory
	}
	storage.KeepChanges = max(storage.KeepChanges, options.History)
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

// New returns the store in an open database, with the defaults. Closing it leaves the database open.
func New(db *pando.DB) (*Store, error) { return NewWith(db, nil) }

// NewWith is New with options.
func NewWith(db *pando.DB, o *Options) (*Store, error) {
	s := &Store{db: db, clock: clock.System()}
	if o != nil {
		s.options = *o
	}
	if s.options.QueryMemoryBytes == 0 {
		s.options.QueryMemoryBytes = defaultQueryMemory
	}
	if s.options.TTLInterval == 0 {
		s.options.TTLInterval = defaultTTLInterval
	}
	if s.log = s.options.Logger; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
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
	s.startTTL()
	return s, nil
}

// Close ends what runs in the background, and closes the database if Open opened it. Closing twice is no error.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.stop()
	s.wait.Wait()
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
type timestamps struct{ last atomic.Uint64 }

func (s *Store) timestamp() uint64 {
	now := uint64(s.clock.Now().Unix()) << 32
	for {
		last := s.times.last.Load()
		next := max(last+1, now+1)
		if s.times.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// LastTime returns the timestamp of the newest operation, or of the present second when there was none in this run.
func (s *Store) LastTime() bson.Timestamp {
	last := s.times.last.Load()
	if last == 0 {
		last = s.timestamp()
	}
	return bson.Timestamp{T: uint32(last >> 32), I: uint32(last)}
}

// Tick moves the time of operations on, as a write does, and returns it.
func (s *Store) Tick() bson.Timestamp {
	t := s.timestamp()
	return bson.Timestamp{T: uint32(t >> 32), I: uint32(t)}
}
