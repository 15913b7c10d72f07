// Package mongo speaks MongoDB's wire protocol on top of package document, so that MongoDB's drivers and tools find what they know.
//
// It promises that what it does not support answers with the code and name that MongoDB has for it, never with silence; that no
// client can make it hold unbounded memory, cursors or goroutines; and that an acknowledged write is as durable as its write concern
// says. It presents itself as a one-member replica set of MongoDB 7.0, or as a standalone server.
//
// A Server knows connections, sessions, cursors and users; it does not listen: package server does, and hands it connections.
package mongo

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/internal/clock"
)

// Options says how to serve. The zero value is ready for use.
type Options struct {
	// Standalone presents the server without the identity of a replica set. Transactions, change streams and retryable writes
	// need that identity, as drivers ask for them only then.
	Standalone bool
	// SetName is the name of the replica set. Default: rs0.
	SetName string
	// Address is how clients reach the server, for the replica set's member list. Default: localhost:27017.
	Address string
	// Auth demands that clients log in. The first user may be made without, from the machine itself.
	Auth bool
	// TestCommands allows configureFailPoint, as the drivers' own tests use it. Never set it on a server that is in use.
	TestCommands bool
	// CursorTimeout closes cursors that nobody read from for so long, until setParameter says otherwise. Default: 10 minutes.
	CursorTimeout time.Duration
	// TransactionTimeout aborts transactions that take longer, until setParameter says otherwise. Default: 60 seconds.
	TransactionTimeout time.Duration
	// MaxCursors bounds the open cursors of all clients. Default: 10,000.
	MaxCursors int
	// MaxConnectionCursors bounds those that were opened through one connection. Default: 1,000.
	MaxConnectionCursors int
	// MaxSessions bounds the sessions of all clients. Default: 100,000.
	MaxSessions int
	// MaxTransactions bounds the transactions that are open. Default: 1,000.
	MaxTransactions int
	// MaxMessageBytes bounds the bytes of all large messages that are being read or carried out; others wait. It also bounds those of all
	// large answers that clients have not taken yet; other batches are made shorter, and what cannot be shorter waits. An eighth of it is for
	// documents that did not fit into a batch and wait for the next one, and a quarter for the large commands that open cursors have come from.
	// Default: 512 MiB.
	MaxMessageBytes int64
	// MessageTimeout ends connections whose clients begin a message, or the first one, and do not complete it. Default: 30 seconds.
	MessageTimeout time.Duration
	// WriteTimeout ends connections whose clients do not take their answers. Default: 2 minutes.
	WriteTimeout time.Duration
	// Shutdown is called when a client asks the server to end. It must return at once. nil: the shutdown command is not supported.
	Shutdown func()
	// Version of the program, for buildInfo's pando field.
	Version string
	// Logger hears about connections and failures. Default: silence.
	Logger *slog.Logger
}

const (
	defaultSetName            = "rs0"
	defaultAddress            = "localhost:27017"
	defaultCursorTimeout      = 10 * time.Minute
	defaultTransactionTimeout = time.Minute
	defaultMaxCursors         = 10_000
	defaultConnectionCursors  = 1000
	defaultMaxSessions        = 100_000
	defaultMaxTransactions    = 1000
	defaultMessageBytes       = 512 << 20
	defaultMessageTimeout     = 30 * time.Second
	defaultWriteTimeout       = 2 * time.Minute
	sessionTimeout            = 30 * time.Minute
	waitingShare              = 8 // what part of MaxMessageBytes is for documents that wait for a batch
)

// Server answers MongoDB's clients from a store. It is safe for concurrent use.
type Server struct {
	store   *document.Store
	o       Options
	log     *slog.Logger
	clock   clock.Clock
	started time.Time
	id      bson.ObjectID // of this run, for topologyVersion and electionId

	durable bool // every write is synced before it returns

	commands  map[string]*command
	cursors   cursorTable
	sessions  sessionTable
	ops       operationTable
	fails     failPoints
	users     userTable
	stats     statistics
	profile   profiles
	snapshots snapshots
	params    parameters
	defaults  defaultConcerns
	messages  budget // of large ones
	answers   budget // of large answers
	waiting   budget // of documents that did not fit into them
	large     largeBuffers

	connections  atomic.Int64 // that were ever made
	open         atomic.Int64
	transactions transactionCounts
	work         context.Context // done when the server closes
	stop         context.CancelFunc
	accepting    context.Context // done when the server begins to drain: nobody waits for something to happen any more
	drain        context.CancelFunc
	wait         sync.WaitGroup
	conns        connectionTable
}

// New returns a server. It must be closed; the store stays open.
func New(store *document.Store, o *Options) (*Server, error) {
	s := &Server{store: store, clock: clock.System(), id: bson.NewObjectID()}
	if o != nil {
		s.o = *o
	}
	s.o.setDefaults()
	if s.log = s.o.Logger; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.started = s.clock.Now()
	s.durable = store.DB().Metrics().Profile == pando.Durable
	work, end := context.WithCancel(context.Background())
	s.work = work
	s.accepting, s.drain = context.WithCancel(work)
	s.stop = func() {
		s.drain() // first: by this a command that the end of the work ends knows that it was a shutdown
		end()
	}
	s.commands = commandTable()
	s.cursors.init(s)
	s.sessions.init(s)
	s.ops.init()
	s.conns.init()
	s.params.init(&s.o)
	s.messages.init(s.o.MaxMessageBytes)
	s.answers.init(s.o.MaxMessageBytes)
	s.waiting.init(s.o.MaxMessageBytes / waitingShare)
	if err := errors.Join(s.users.load(s.work, s), s.defaults.load(s.work, s)); err != nil {
		s.stop()
		return nil, err
	}
	if err := s.noteStart(s.work); err != nil {
		s.stop()
		return nil, err
	}
	s.wait.Go(s.sweep)
	return s, nil
}

func (o *Options) setDefaults() {
	if o.SetName == "" {
		o.SetName = defaultSetName
	}
	if o.Address == "" {
		o.Address = defaultAddress
	}
	for _, d := range []struct {
		value   *time.Duration
		without time.Duration
	}{
		{&o.CursorTimeout, defaultCursorTimeout}, {&o.TransactionTimeout, defaultTransactionTimeout},
		{&o.MessageTimeout, defaultMessageTimeout}, {&o.WriteTimeout, defaultWriteTimeout},
	} {
		if *d.value == 0 {
			*d.value = d.without
		}
	}
	for _, n := range []struct {
		value   *int
		without int
	}{
		{&o.MaxCursors, defaultMaxCursors}, {&o.MaxConnectionCursors, defaultConnectionCursors}, {&o.MaxSessions, defaultMaxSessions},
		{&o.MaxTransactions, defaultMaxTransactions},
	} {
		if *n.value == 0 {
			*n.value = n.without
		}
	}
	if o.MaxMessageBytes == 0 {
		o.MaxMessageBytes = defaultMessageBytes
	}
}

// Close ends all connections, cursors and transactions, and waits for the commands that run. Closing twice is no error.
func (s *Server) Close() error {
	s.stop()
	s.conns.closeAll()
	s.conns.serving.Wait()
	s.wait.Wait()
	s.cursors.closeAll()
	s.sessions.closeAll()
	s.endSnapshots(true)
	return nil
}

// Drain ends connections that wait for a command, and waits until the others have got their answers, or ctx is done.
func (s *Server) Drain(ctx context.Context) error {
	s.drain()
	return s.conns.drain(ctx, s)
}

// sweepInterval is how often idle cursors, sessions and transactions, and users who have expired, are looked for.
const sweepInterval = time.Second

// sweep closes what was idle for too long.
func (s *Server) sweep() {
	for s.clock.Sleep(s.work, sweepInterval) == nil {
		now := s.clock.Now()
		s.cursors.expire(now)
		s.sessions.expire(now)
		s.endSnapshots(false)
		s.users.expire(s.work)
		s.ops.watchClients(now)
		s.conns.trim()
	}
}

// connectionTable is the open connections.
type connectionTable struct {
	mu       sync.Mutex
	list     map[*conn]struct{}
	draining bool
	closed   bool
	serving  sync.WaitGroup // those that add has taken, until nothing of theirs runs
}

func (t *connectionTable) init() { t.list = map[*conn]struct{}{} }

// add takes a connection, unless the server is closing.
func (t *connectionTable) add(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.draining {
		return false
	}
	t.list[c] = struct{}{}
	t.serving.Add(1)
	return true
}

func (t *connectionTable) remove(c *conn) {
	t.mu.Lock()
	delete(t.list, c)
	t.mu.Unlock()
}

func (t *connectionTable) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for c := range t.list {
		c.cut()
	}
}

// cut closes a connection at once, and has nobody wait for the client.
func (c *conn) cut() {
	end := c.net
	if secure, ok := end.(*tls.Conn); ok {
		end = secure.NetConn()
	}
	_ = end.Close() // it is being thrown away
}

// drain closes idle connections, again and again, until none is left.
func (t *connectionTable) drain(ctx context.Context, s *Server) error {
	for {
		t.mu.Lock()
		t.draining = true
		left := len(t.list)
		for c := range t.list {
			if !c.busy.Load() && !c.ending {
				c.ending = true
				t.serving.Go(func() { _ = c.net.Close() }) // which over TLS tells the client, and waits while that takes nothing
			}
		}
		t.mu.Unlock()
		if left == 0 {
			return nil
		}
		if err := s.clock.Sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// remoteHost returns the address of a connection's other end without the port.
func remoteHost(c net.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	return host
}
