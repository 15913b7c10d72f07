package mongo

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
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
	id        int64
	busy      atomic.Bool // a command runs, or its answer is on its way
	w         *bufio.Writer
	out       []byte // the answer that is being made
	packed    []byte // and compressed
	requestID int32
	offered   map[string]bool // compressors of the handshake
	client    bsoncore.Document
	appName   string
	auth      authState
	lastError error
}

// writeTimeout ends connections whose clients do not take their answers.
const writeTimeout = 2 * time.Minute

// messageTimeout ends connections whose clients begin a message and do not complete it. Between messages they may be silent for as
// long as they like.
const messageTimeout = 30 * time.Second

// ServeConn answers the commands of one connection until it ends, and closes it.
func (s *Server) ServeConn(c net.Conn) {
	x := &conn{server: s, net: c, id: s.connections.Add(1), w: bufio.NewWriterSize(c, 32<<10)}
	defer c.Close()
	if !s.conns.add(x) {
		return
	}
	s.open.Add(1)
	s.wait.Add(1)
	defer func() {
		s.conns.remove(x)
		s.sessions.connectionEnded(x)
		s.open.Add(-1)
		s.wait.Done()
	}()
	s.log.Debug("connection accepted", "connection", x.id, "remote", c.RemoteAddr().String())
	err := x.serve()
	if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		s.log.Info("connection ended", "connection", x.id, "error", err)
	}
}

// serve reads and answers messages, until the error that ends the connection.
func (c *conn) serve() error {
	if err := c.shakeHands(); err != nil {
		return err
	}
	in := bufio.NewReaderSize(c.net, 32<<10)
	r := wire.NewReader(in)
	for {
		m, err := c.receive(in, r)
		if err != nil {
			return err
		}
		c.busy.Store(true)
		err = c.answer(m)
		c.busy.Store(false)
		if err != nil {
			return err
		}
	}
}

// shakeHands carries out the TLS handshake, where there is one: a client has as long for it as for a message.
func (c *conn) shakeHands() error {
	secure, ok := c.net.(*tls.Conn)
	if !ok {
		return nil
	}
	if err := secure.SetDeadline(c.server.clock.Now().Add(messageTimeout)); err != nil {
		return err
	}
	if err := secure.HandshakeContext(c.server.work); err != nil {
		return err
	}
	return secure.SetDeadline(time.Time{})
}

// receive waits for a message to begin, and reads it.
func (c *conn) receive(in *bufio.Reader, r *wire.Reader) (*wire.Message, error) {
	if _, err := in.Peek(1); err != nil {
		return nil, err
	}
	if err := c.net.SetReadDeadline(c.server.clock.Now().Add(messageTimeout)); err != nil {
		return nil, err
	}
	m, err := r.Read()
	if err != nil {
		return nil, err
	}
	return m, c.net.SetReadDeadline(time.Time{})
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
			return nil // the client does not want to hear about it
		}
		flags := uint32(0)
		more := r.more && m.Flags&wire.ExhaustAllowed != 0
		if more {
			flags = wire.MoreToCome
		}
		id := c.nextID()
		if m.Flags&wire.ChecksumPresent != 0 {
			c.out = wire.AppendChecked(c.out[:0], id, m.RequestID, flags, reply)
		} else {
			c.out = wire.AppendMsg(c.out[:0], id, m.RequestID, flags, reply)
		}
		if err := c.send(m, r.name); err != nil || !more {
			return err
		}
		m = r.again(m, id)
	}
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
	}
	c.server.stats.bytesOut.Add(int64(len(out)))
	if err := c.net.SetWriteDeadline(c.server.clock.Now().Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := c.w.Write(out); err != nil {
		return err
	}
	const keptBuffer = 1 << 20
	if cap(c.out) > keptBuffer {
		c.out = nil
	}
	if cap(c.packed) > keptBuffer {
		c.packed = nil
	}
	return c.w.Flush()
}

// run carries out a request and returns the answer's document.
func (c *conn) run(r *request) (reply bsoncore.Document, err error) {
	start := c.server.clock.Now()
	ctx, cancel := context.WithCancelCause(c.server.work)
	defer cancel(nil)
	r.ctx, r.cancel, r.start = ctx, cancel, start
	reply, err = r.perform()
	c.server.users.wrote(r)
	if errors.Is(err, errDropConnection) {
		return nil, err
	}
	if err != nil {
		err = r.explainError(err)
		reply = r.finish(errorReply(err))
	}
	c.lastError = err
	c.server.account(r, reply, err, c.server.clock.Now().Sub(start))
	return reply, err
}
