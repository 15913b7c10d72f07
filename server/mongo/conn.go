package mongo

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/server/wire"
)

// conn is one client connection. Its commands run one after the other.
type conn struct {
	server    *Server
	net       net.Conn
	in        *bufio.Reader
	watch     watch
	memory    sync.Mutex // held by the connection but while it waits for a message: then the buffers may be taken away
	reader    *wire.Reader
	silent    int // under memory: how often sweep came since the last message
	id        int64
	busy      atomic.Bool // a command runs, or its answer is on its way
	ending    bool        // a drain closes it; under connectionTable.mu
	out       []byte      // the answer that is being made
	kept      []byte      // for the next one, while out is a large one
	packed    []byte      // and compressed
	requestID int32
	offered   map[string]bool                   // compressors of the handshake
	client    atomic.Pointer[bsoncore.Document] // what the client says of itself
	appName   string
	auth      authState
	work      context.Context // what the commands' contexts come from, so that they do not all meet at the server's
	shared    commandContext
	args      map[string]bsoncore.Value // of the command that runs; nobody has them when it has ended
	takeUntil time.Time                 // the deadline of writing
	quiet     bool                      // the deadline of reading is gone: a message has come
	held      int64                     // bytes of the budget for large messages
	answered  int64                     // bytes of the budget for large answers
	opener    *opener
}

// What a connection takes before its client has logged in is at most 64 KiB, with its goroutine.
const (
	readBuffer   = 8 << 10
	preAuthBytes = 16 << 10 // of a message
)

// ServeConn answers the commands of one connection until it ends, and closes it.
func (s *Server) ServeConn(c net.Conn) {
	x := &conn{server: s, net: c, id: s.connections.Add(1), opener: new(opener)}
	defer c.Close()
	if !s.conns.add(x) {
		return
	}
	s.open.Add(1)
	defer func() {
		s.conns.remove(x)
		s.cursors.connectionEnded(x.opener) // the sessions live on: the client may come back
		s.open.Add(-1)
		s.conns.serving.Done()
	}()
	s.log.Debug("connection accepted", "connection", x.id, "remote", c.RemoteAddr().String())
	err := x.serve()
	level := slog.LevelInfo
	if broken := new(net.OpError); errors.As(err, &broken) && !broken.Timeout() {
		level = slog.LevelDebug // clients come and go, and many close before they have read everything
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		s.log.Log(context.Background(), level, "connection ended", "connection", x.id, "remote", c.RemoteAddr().String(), "error", err)
	}
}

// serve reads and answers messages, until the error that ends the connection.
func (c *conn) serve() error {
	if err := c.shakeHands(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.server.work)
	defer cancel()
	c.work = ctx
	c.in = bufio.NewReaderSize(c.net, readBuffer)
	r := wire.NewReader(c.in)
	c.memory.Lock()
	defer c.memory.Unlock()
	c.reader = r
	// Who connects and says nothing has no use for the connection. Later it may be silent for as long as it likes.
	if err := c.net.SetReadDeadline(c.server.clock.Now().Add(c.server.o.MessageTimeout)); err != nil {
		return err
	}
	defer c.release()
	defer c.releaseAnswer()
	for {
		m, err := c.receive(r)
		if err != nil {
			if errors.Is(err, wire.ErrHTTP) && !c.quiet {
				c.answerHTTP()
			}
			return err
		}
		c.busy.Store(true)
		err = c.answer(m)
		c.busy.Store(false)
		if err != nil {
			return err
		}
		r.Trim()
		if c.held > 0 {
			c.release()
		}
	}
}

// answerHTTP tells a browser, or whoever else speaks HTTP, what this port is for.
func (c *conn) answerHTTP() {
	const text = "This port is for MongoDB's drivers and shells, not for HTTP: connect to it with mongodb:// in place of http://.\n"
	if c.limitWrite() == nil {
		_, _ = fmt.Fprintf(c.net, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text) // the connection ends in any case
	}
}

// shakeHands carries out the TLS handshake, where there is one: a client has as long for it as for a message.
func (c *conn) shakeHands() error {
	secure, ok := c.net.(*tls.Conn)
	if !ok {
		return nil
	}
	if err := secure.SetDeadline(c.server.clock.Now().Add(c.server.o.MessageTimeout)); err != nil {
		return err
	}
	if err := secure.HandshakeContext(c.server.work); err != nil {
		return err
	}
	return secure.SetDeadline(time.Time{})
}

// receive waits for a message to begin, and reads it.
func (c *conn) receive(r *wire.Reader) (*wire.Message, error) {
	c.memory.Unlock()
	_, err := c.in.Peek(1)
	c.memory.Lock()
	if c.silent = 0; err != nil {
		return nil, err
	}
	r.Limit(c.messageLimit())
	if c.quiet && c.arrived() {
		return r.Read()
	}
	if err := c.net.SetReadDeadline(c.server.clock.Now().Add(c.server.o.MessageTimeout)); err != nil {
		return nil, err
	}
	if err := c.reserve(); err != nil {
		return nil, err
	}
	m, err := r.Read()
	if err != nil {
		return nil, err
	}
	c.quiet = true
	return m, c.net.SetReadDeadline(time.Time{})
}

// arrived reports whether all of the message that has begun is there already, as most are: then there is no wait to bound, and no room
// to reserve, unless it was compressed.
func (c *conn) arrived() bool {
	n := c.in.Buffered()
	if n < wire.HeaderBytes {
		return false
	}
	head, err := c.in.Peek(wire.HeaderBytes)
	return err == nil && int64(binary.LittleEndian.Uint32(head)) <= int64(n) && wire.Opcode(binary.LittleEndian.Uint32(head[12:])) != wire.OpCompressed
}

// messageLimit is how long a message may be: strangers have little to say.
func (c *conn) messageLimit() int {
	if c.server.o.Auth && !c.auth.loggedIn() {
		return preAuthBytes
	}
	return wire.MaxMessage
}

var errDropConnection = errors.New("a fail point closes the connection")

// answer carries out one message, and sends its answer or answers.
func (c *conn) answer(m *wire.Message) error {
	c.server.stats.bytesIn.Add(int64(len(m.Body)))
	switch m.Op {
	case wire.OpMsg:
	case wire.OpQuery:
		return c.answerQuery(m)
	default:
		return wire.ErrMalformed
	}
	for {
		r := c.newRequest(m)
		reply, err := c.run(r)
		if errors.Is(err, errDropConnection) {
			return err
		}
		if m.Flags&wire.MoreToCome != 0 {
			c.releaseAnswer()
			c.sent()
			return nil // the client does not want to hear about it
		}
		flags := uint32(0)
		more := r.more && err == nil && m.Flags&wire.ExhaustAllowed != 0 && c.server.accepting.Err() == nil
		if more {
			flags = wire.MoreToCome
		}
		id := c.nextID()
		if m.Flags&wire.ChecksumPresent != 0 {
			c.out = wire.AppendChecked(c.out[:0], id, m.RequestID, flags, reply)
		} else if c.placed(reply) {
			c.out = c.out[:wire.MsgBytes+len(reply)]
			wire.BeginMsg(c.out, id, m.RequestID, flags)
		} else {
			c.fits(len(reply)) // it goes out in any case, and leaves less room to others
			c.out = wire.AppendMsg(c.out[:0], id, m.RequestID, flags, reply)
		}
		if err := c.send(m, r.name); err != nil || !more {
			return err
		}
		m = r.again(m, id)
	}
}

// placed reports whether an answer was made where its message is.
func (c *conn) placed(reply bsoncore.Document) bool {
	return len(reply) > 0 && len(c.out) > wire.MsgBytes && &c.out[wire.MsgBytes] == &reply[0]
}

// answerQuery answers an OP_QUERY, which only carries the first hello.
func (c *conn) answerQuery(m *wire.Message) error {
	r := c.newRequest(m)
	var reply bsoncore.Document
	switch r.name {
	case "hello", "isMaster", "ismaster":
		var err error
		if reply, err = c.run(r); errors.Is(err, errDropConnection) {
			return err
		}
	default:
		reply = errorReply(document.NewError(codeUnsupportedOpQuery, "Unsupported OP_QUERY command: %s. The client driver may require an upgrade.", r.name))
	}
	c.out = wire.AppendReply(c.out[:0], c.nextID(), m.RequestID, reply)
	return c.send(m, r.name)
}

func (c *conn) nextID() int32 {
	c.requestID++
	return c.requestID
}

// uncompressed are the commands whose answers are never compressed, as they carry secrets or come before the handshake.
func uncompressed(name string) bool {
	switch name {
	case "hello", "isMaster", "ismaster", "saslStart", "saslContinue", "getnonce", "authenticate", "createUser", "updateUser":
		return true
	}
	return false
}

// send sends c.out, compressed as the request was.
func (c *conn) send(m *wire.Message, name string) error {
	out := c.out
	if m.Compressor != wire.Uncompressed && !uncompressed(name) {
		var err error
		if c.packed, err = wire.AppendCompressed(c.packed[:0], out, m.Compressor); err != nil {
			return err
		}
		out = c.packed
		c.giveUpLarge() // or there would be two of them for as long as the client takes
	}
	c.keepRoom(len(out))
	c.server.stats.bytesOut.Add(int64(len(out)))
	if err := c.limitWrite(); err != nil {
		return err
	}
	if _, err := c.net.Write(out); err != nil {
		return err
	}
	c.sent()
	if c.answered > 0 {
		c.releaseAnswer()
	}
	return nil
}

// limitWrite gives the client at least WriteTimeout to take an answer, and not much more. A deadline is not set for each: that takes
// as long as a small command does.
func (c *conn) limitWrite() error {
	now, limit := c.server.clock.Now(), c.server.o.WriteTimeout
	if c.takeUntil.Sub(now) >= limit {
		return nil
	}
	c.takeUntil = now.Add(limit + min(limit/8, math.MaxInt64-limit))
	return c.net.SetWriteDeadline(c.takeUntil)
}

// commandContext is the context of a connection's commands. As one runs after the other, they share it until something has ended it:
// to make one costs as much as to look up a document.
type commandContext struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// begin makes a context for a command, unless there is one.
func (x *commandContext) begin(work context.Context) {
	if x.ctx == nil {
		x.ctx, x.cancel = context.WithCancelCause(work)
	}
}

// end gives the context back, unless it has ended, or may do so yet for the command's sake.
func (x *commandContext) end(late bool) {
	if late || x.ctx.Err() != nil {
		x.cancel(nil)
		x.ctx = nil
	}
}

// run carries out a request and returns the answer's document.
func (c *conn) run(r *request) (reply bsoncore.Document, err error) {
	start := c.server.clock.Now()
	x := &c.shared
	x.begin(c.work)
	defer func() { x.end(r.limited) }()
	r.ctx, r.cancel, r.start = x.ctx, x.cancel, start
	c.watch.begin(r)
	reply, err = r.perform()
	c.watch.end(c)
	c.server.users.wrote(r)
	c.server.defaults.wrote(c.server, r)
	if errors.Is(err, errDropConnection) {
		return nil, err
	}
	if err != nil {
		err = r.explainError(err)
		reply = r.finish(errorReply(err))
	}
	c.server.account(r, reply, err, c.server.clock.Now().Sub(start))
	return reply, err
}
