// Package server puts a store of documents on the network: it opens the store, listens, hands connections to package
// server/mongo, answers health checks and metrics over HTTP, and shuts down in good order.
//
// It promises that a shutdown lets running commands end, within ten seconds, settles the store and releases it; that the number of
// connections is bounded; and that an address which others can reach is not served without logins unless that was asked for by name.
//
// It never ends the process and installs no signal handler: that is for the program. What makes no sense is ErrConfig before anything was
// opened; what fails later on gives back what was opened. A connection that fails ends alone.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/server/mongo"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/osfs"
)

// Server is a running server.
type Server struct {
	config Config
	log    *slog.Logger
	clock  clock.Clock
	fs     vfs.FS
	store  *document.Store
	mongo  *mongo.Server

	listeners []net.Listener
	webListen net.Listener // nil: no HTTP
	web       *http.Server
	webOpen   webTable
	probe     *probe        // for health checks
	slots     chan struct{} // one for each connection that is open
	wait      sync.WaitGroup
	closing   atomic.Bool   // Close has been called
	ready     chan struct{} // closed when it shuts down
	refused   counter
}

// drainTime is how long a shutdown waits for commands that run.
const drainTime = 10 * time.Second

// Start opens the store and begins to serve; Close, which must be called, ends it. A nil logger is silent. It fails with ErrConfig when
// c makes no sense, with the system's error when an address is in use or a certificate cannot be read, and with those of pando.Open.
func Start(c Config, log *slog.Logger) (*Server, error) { return begin(c, log, nil) }

// begin is Start. tune, if there is one, changes what is not for everybody to set.
func begin(c Config, log *slog.Logger, tune func(o *mongo.Options)) (*Server, error) {
	asked := c.MaxConnections
	if err := c.complete(); err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{config: c, log: log, clock: clock.System(), fs: osfs.New(), ready: make(chan struct{})}
	most := connections(c.MaxConnections, s.fs)
	s.slots = make(chan struct{}, most)
	if err := s.begin(tune); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if most < asked {
		log.Warn("fewer connections than max-connections are taken: the process may have too few files open", "limit", most)
	}
	s.notify("READY=1")
	log.Info("serving", "dir", c.Dir, "addresses", s.Addrs(), "http", s.HTTPAddr(), "profile", c.Profile, "auth", c.Auth, "tls", c.TLSCert != "")
	return s, nil
}

// begin listens before it opens the store, so that a start which fails for an address makes no database. Who connects meanwhile
// waits. Only a socket in the directory of the database has to come after it, and one in the place of another that was left behind: two servers
// that are started at one moment both find that nobody answers, and only the one that has got the database may take it away.
func (s *Server) begin(tune func(o *mongo.Options)) error {
	address, err := s.listen()
	if err != nil {
		return err
	}
	early := s.config.Socket != "" && !within(s.config.Dir, s.config.Socket)
	if early {
		var left bool
		left, err = s.leftBehind()
		early = !left
	}
	if err == nil && early {
		err = s.bindUnix()
	}
	if err == nil {
		err = s.open()
	}
	if err == nil && !early {
		err = s.listenUnix()
	}
	if err == nil {
		err = s.answer(address, tune)
	}
	if err != nil {
		return err
	}
	s.serveHTTP()
	for _, l := range s.listeners {
		s.wait.Go(func() { s.accept(l) })
	}
	return nil
}

// open opens the store.
func (s *Server) open() error {
	profile, err := s.config.profile()
	if err != nil {
		return err
	}
	s.store, err = document.Open(s.config.Dir, &document.Options{
		Storage: pando.Options{Profile: profile, MemoryBytes: s.config.Memory, FS: s.fs}, History: s.config.History, Logger: s.log,
		TotalQueryMemoryBytes: queryBytes(),
	})
	return err
}

// answer makes the server of the protocol, which has to know its address.
func (s *Server) answer(address string, tune func(o *mongo.Options)) (err error) {
	o := &mongo.Options{
		Standalone: s.config.Standalone, SetName: s.config.SetName, Address: address, Auth: s.config.Auth,
		TestCommands: s.config.TestCommands, MaxCursors: s.config.MaxCursors, Version: s.config.Version, Logger: s.log,
		Shutdown: s.config.Shutdown, MaxMessageBytes: messageBytes(),
	}
	if tune != nil {
		tune(o)
	}
	s.mongo, err = mongo.New(s.store, o)
	return err
}

// listen opens the listeners of TCP, and returns the address that clients are to be told.
func (s *Server) listen() (address string, err error) {
	secure, err := s.config.tls(s.read)
	if err != nil {
		return "", err
	}
	address = s.config.Advertise
	if s.config.Addr != noTCP {
		l, err := net.Listen("tcp", s.config.Addr)
		if err != nil {
			return "", err
		}
		if address == "" {
			address = advertised(s.config.Addr, l.Addr())
		}
		if secure != nil {
			l = tls.NewListener(l, secure)
		}
		s.listeners = append(s.listeners, l)
	}
	if address == "" {
		address = s.config.Socket
	}
	if s.config.HTTP == "" {
		return address, nil
	}
	if s.webListen, err = net.Listen("tcp", s.config.HTTP); err != nil {
		return "", fmt.Errorf("HTTP: %w", err)
	}
	return address, nil
}

// within reports whether a path leads into a directory, or may do so.
func within(dir, path string) bool {
	way, err := filepath.Rel(dir, path)
	return err != nil || filepath.IsLocal(way)
}

// advertised is the address that was asked for, with the port that the system has chosen if it was to choose.
func advertised(asked string, got net.Addr) string {
	host, _, err := net.SplitHostPort(asked)
	_, port, err2 := net.SplitHostPort(got.String())
	if err != nil || err2 != nil {
		return got.String()
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// leftBehind reports whether there is a Unix socket in the way that a killed process left behind. It fails where somebody answers, and where
// anything else is there.
func (s *Server) leftBehind() (bool, error) {
	path := s.config.Socket
	c, err := net.Dial("unix", path)
	switch {
	case err == nil:
		return false, errors.Join(fmt.Errorf("listen on %s: another server does", path), c.Close())
	case errors.Is(err, fs.ErrNotExist): // there is nothing to remove, but perhaps a link that leads nowhere
		return false, nil
	case s.isOther(path):
		return false, fmt.Errorf("listen on %s: it is there, and no socket", path)
	case !isRefused(err):
		return false, fmt.Errorf("listen on %s: another server may do so: %w", path, err)
	}
	return true, nil
}

// listenUnix opens the Unix socket, if there is to be one. One that was left behind is removed.
func (s *Server) listenUnix() error {
	path := s.config.Socket
	if path == "" {
		return nil
	}
	left, err := s.leftBehind()
	if err != nil {
		return err
	}
	if left {
		if err := s.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("listen on %s: %w", path, err)
		}
	}
	return s.bindUnix()
}

// bindUnix opens the Unix socket where nothing is in its way.
func (s *Server) bindUnix() error {
	l, err := net.Listen("unix", s.config.Socket)
	if err != nil {
		return err
	}
	s.listeners = append(s.listeners, l)
	return nil
}

// isRefused reports whether a Unix socket could not be connected to because nobody listens on it any more. All other errors are no proof of that:
// a server may have no room for another client, have a socket of another kind, or not be for us. Windows has other numbers for them.
func isRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || runtime.GOOS == "windows"
}

// isOther reports whether something is there that is no socket: a socket has no bytes, and cannot be opened. To open it for writing, too, does
// not wait for the other end of a pipe.
func (s *Server) isOther(path string) bool {
	info, err := s.fs.Stat(path)
	if err != nil {
		return false
	}
	if info.Dir || info.Size > 0 {
		return true
	}
	f, err := s.fs.OpenReadWrite(path)
	if err != nil {
		return false
	}
	_ = f.Close() // nothing was written
	return true
}

// maxPEM is the largest file of certificates that is read.
const maxPEM = 1 << 20

// read reads a file of certificates or keys.
func (s *Server) read(name string) ([]byte, error) { return vfs.ReadFile(s.fs, name, maxPEM) }

// Addrs returns the addresses on which the server listens for clients.
func (s *Server) Addrs() []string {
	list := make([]string, len(s.listeners))
	for i, l := range s.listeners {
		list[i] = l.Addr().String()
	}
	return list
}

// HTTPAddr returns the address of the health checks and metrics; "" when there is none.
func (s *Server) HTTPAddr() string {
	if s.webListen == nil {
		return ""
	}
	return s.webListen.Addr().String()
}

// Store returns the store that is served, for a program's own use of it beside the clients. Close closes it.
func (s *Server) Store() *document.Store { return s.store }

// accept takes connections until its listener is closed.
func (s *Server) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, most likely: wait until connections end
			s.log.Error("accept failed", "error", err)
			if s.clock.Sleep(context.Background(), 50*time.Millisecond) != nil {
				return
			}
			continue
		}
		select {
		case s.slots <- struct{}{}:
		default:
			s.refused.add(1)
			s.log.Warn("connection refused: too many", "limit", cap(s.slots))
			_ = c.Close() // the client sees the connection end
			continue
		}
		s.wait.Go(func() {
			defer func() { <-s.slots }()
			s.mongo.ServeConn(c)
		})
	}
}

// Close shuts down: it takes no more connections, lets running commands end for at most ten seconds (drainTime), cuts off what still runs
// then, and settles and closes the store. A second Close does nothing, and does not wait for the first.
func (s *Server) Close() error {
	if !s.closing.CompareAndSwap(false, true) {
		return nil
	}
	close(s.ready)
	if s.mongo != nil {
		s.notify("STOPPING=1")
	}
	var errs []error
	for _, l := range s.listeners {
		errs = append(errs, l.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	timer := s.clock.NewTimer(drainTime)
	go func() {
		select {
		case <-timer.C():
		case <-ctx.Done():
		}
		cancel()
	}()
	if s.mongo != nil {
		if err := s.mongo.Drain(ctx); err != nil {
			s.log.Warn("commands were cut off", "after", drainTime)
		}
		errs = append(errs, s.mongo.Close())
	}
	switch {
	case s.web != nil:
		errs = append(errs, s.endHTTP(ctx))
	case s.webListen != nil:
		errs = append(errs, s.webListen.Close())
	}
	timer.Stop()
	cancel()
	s.wait.Wait()
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if s.mongo != nil {
		s.log.Info("closed")
	}
	return nil
}

// notify tells systemd how far the server is.
func (s *Server) notify(state string) {
	if s.config.NotifySocket == "" {
		return
	}
	c, err := net.Dial("unixgram", s.config.NotifySocket)
	if err == nil {
		_, err = io.WriteString(c, state)
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		s.log.Warn("systemd could not be told", "state", state, "error", err)
	}
}
