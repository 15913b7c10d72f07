//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/server/wire"
)

// serving is a process of pando serve.
type serving struct {
	t          *testing.T
	cmd        *exec.Cmd
	addr, http string
	stderr     io.Closer // the end that the log is read from
	log        strings.Builder
	read       chan struct{} // closed when the log has ended
}

// startServe starts a process that serves a directory.
func startServe(t *testing.T, dir string, env ...string) *serving {
	t.Helper()
	cmd := exec.Command("pando", "serve", "--dir", dir, "--addr", "127.0.0.1:0", "--http", "127.0.0.1:0", "--test-commands", "--log-format", "json")
	cmd.Env = append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), env...)
	return start(t, cmd)
}

// start starts a process of pando serve, and waits until it serves.
func start(t *testing.T, cmd *exec.Cmd) *serving {
	t.Helper()
	s := &serving{t: t, cmd: cmd, read: make(chan struct{})}
	out, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stderr = out
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	go func() {
		defer close(s.read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var line struct {
				Msg, HTTP string
				Addresses []string
			}
			if err := json.Unmarshal(lines.Bytes(), &line); err == nil && line.Msg == "serving" {
				s.addr, s.http = line.Addresses[0], line.HTTP
				close(ready)
			}
			s.log.WriteString(lines.Text() + "\n")
		}
	}()
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); <-s.read })
	select {
	case <-ready:
	case <-s.read:
		t.Fatalf("pando serve: %s", s.log.String())
	}
	return s
}

// signal sends a signal.
func (s *serving) signal(which os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(which); err != nil {
		s.t.Fatal(err)
	}
}

// wait waits for the end of the process.
func (s *serving) wait() syscall.WaitStatus {
	s.t.Helper()
	<-s.read
	var exit *exec.ExitError
	if err := s.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return s.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// client is a connection to a server.
type client struct {
	net.Conn
	t *testing.T
	r *wire.Reader
}

func (s *serving) connect() *client { return s.connectTo("tcp", s.addr) }

func (s *serving) connectTo(network, addr string) *client {
	s.t.Helper()
	c, err := net.Dial(network, addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(3 * time.Minute)) // so that a test that fails ends
	return &client{c, s.t, wire.NewReader(c)}
}

func (c *client) send(command bson.D) {
	c.t.Helper()
	body, err := bson.Marshal(command)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.Write(wire.AppendMsg(nil, 1, 0, 0, bsoncore.Document(body))); err != nil {
		c.t.Fatal(err)
	}
}

// done takes an answer, which has to be ok.
func (c *client) done() bson.Raw {
	c.t.Helper()
	m, err := c.r.Read()
	if err != nil {
		c.t.Fatal(err)
	}
	if ok, _ := bson.Raw(m.Body).Lookup("ok").DoubleOK(); ok != 1 {
		c.t.Fatalf("%s", bson.Raw(m.Body))
	}
	return bson.Raw(m.Body)
}

// insert sends the insertion of a document.
func (c *client) insert(id int) {
	c.t.Helper()
	c.send(bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.D{{Key: "_id", Value: id}}}}, {Key: "$db", Value: "d"}})
}

// untilInsertRuns waits until the server is at the insertion that another connection sent.
func (c *client) untilInsertRuns() {
	c.t.Helper()
	until(c.t, "the insertion runs", func() bool {
		c.send(bson.D{
			{Key: "aggregate", Value: 1}, {Key: "cursor", Value: bson.D{}}, {Key: "$db", Value: "admin"}, {Key: "pipeline", Value: bson.A{
				bson.D{{Key: "$currentOp", Value: bson.D{}}}, bson.D{{Key: "$match", Value: bson.D{{Key: "command.insert", Value: "c"}}}},
			}},
		})
		operations, err := c.done().Lookup("cursor", "firstBatch").Array().Values()
		return err == nil && len(operations) == 1
	})
}

// hold makes the next insertion wait.
func (c *client) hold(ms int) {
	c.t.Helper()
	c.send(bson.D{
		{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.D{{Key: "times", Value: 1}}},
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"insert"}}, {Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: ms}}},
		{Key: "$db", Value: "admin"},
	})
	c.done()
}

// health asks how the server is.
func (s *serving) health() (int, string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + s.http + "/health")
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, err.Error()
	}
	return r.StatusCode, string(body)
}

// wantStored checks that nobody has the directory's lock, and what it holds.
func wantStored(t *testing.T, dir string, settled bool, ids ...int) {
	t.Helper()
	db, err := pando.Open(dir, &pando.Options{ReadOnly: true, MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	if m := db.Metrics(); settled && m.LastSeq != m.Settled {
		t.Errorf("%d of %d commits are settled", m.Settled, m.LastSeq)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	store, err := document.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, id := range ids {
		if _, err := store.Database("d").Lookup("c").FindOne(t.Context(), bson.D{{Key: "_id", Value: id}}, nil); err != nil {
			t.Errorf("document %d: %v", id, err)
		}
	}
}

// TestShutdown: a server that is told to end finishes what runs, takes nothing new, settles the store, gives back its lock, and exits
// with 0. The health check and systemd hear of it.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for _, which := range []os.Signal{syscall.SIGTERM, os.Interrupt, syscall.SIGHUP} {
		t.Run(fmt.Sprint(which), func(t *testing.T) {
			t.Parallel()
			if which == syscall.SIGHUP && signal.Ignored(which) {
				t.Skip("what this process starts is to outlive the terminal")
			}
			dir, notify := filepath.Join(t.TempDir(), "db"), filepath.Join(t.TempDir(), "n")
			systemd, err := net.ListenPacket("unixgram", notify)
			if err != nil {
				t.Fatal(err)
			}
			defer systemd.Close()
			_ = systemd.SetReadDeadline(time.Now().Add(time.Minute)) // so that a test that fails ends
			hears := func(want string) {
				t.Helper()
				b := make([]byte, 100)
				if n, _, err := systemd.ReadFrom(b); err != nil || string(b[:n]) != want {
					t.Errorf("systemd hears %q, %v, not %q", b[:n], err, want)
				}
			}
			s := startServe(t, dir, "NOTIFY_SOCKET="+notify)
			hears("READY=1")
			if code, text := s.health(); code != http.StatusOK || !strings.Contains(text, `"status":"ok"`) {
				t.Errorf("health: %d %s", code, text)
			}
			idle, busy := s.connect(), s.connect()
			busy.insert(1)
			busy.done()
			busy.hold(8000) // all that a server says while it ends has to be seen in that time
			busy.insert(2)
			busy.insert(3) // comes when the server ends already
			idle.untilInsertRuns()
			s.signal(which)
			until(t, "health says that it stops", func() bool {
				code, text := s.health()
				return code == http.StatusServiceUnavailable && strings.Contains(text, "stopping")
			})
			hears("STOPPING=1")
			if _, err := idle.r.Read(); err == nil {
				t.Error("an idle connection gets an answer")
			}
			if c, err := net.Dial("tcp", s.addr); err == nil {
				t.Error("new connections are taken", c.Close())
			}
			busy.done() // what ran
			if m, err := busy.r.Read(); err == nil && !strings.Contains(bson.Raw(m.Body).String(), "ok") {
				t.Errorf("what was not begun: %s", bson.Raw(m.Body))
			}
			if status := s.wait(); status.ExitStatus() != 0 {
				t.Errorf("it ends with %d: %s", status.ExitStatus(), s.log.String())
			}
			wantStored(t, dir, true, 1, 2)
		})
	}
}

// TestShutdownCommand: a client may end the server, which then settles the store and exits with 0.
func TestShutdownCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	s := startServe(t, dir)
	c := s.connect()
	c.insert(1)
	c.done()
	c.send(bson.D{{Key: "shutdown", Value: 1}, {Key: "$db", Value: "admin"}})
	c.done()
	if status := s.wait(); status.ExitStatus() != 0 {
		t.Errorf("it ends with %d: %s", status.ExitStatus(), s.log.String())
	}
	wantStored(t, dir, true, 1)
}

// TestSecondSignal: who does not want to wait interrupts twice. What was acknowledged is there.
func TestSecondSignal(t *testing.T) {
	for _, which := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(fmt.Sprint(which), func(t *testing.T) {
			if signal.Ignored(which) {
				t.Skip("the system ignores the signal for what this process starts: a shell does so in the background")
			}
			dir := filepath.Join(t.TempDir(), "db")
			s := startServe(t, dir)
			c := s.connect()
			c.insert(1)
			c.done()
			c.hold(3_600_000)
			c.insert(2)
			s.connect().untilInsertRuns()
			s.signal(which)
			until(t, "it stops", func() bool { code, _ := s.health(); return code == http.StatusServiceUnavailable })
			until(t, "a second one ends it", func() bool { // that comes with the first does not count
				_ = s.cmd.Process.Signal(which) // it may have ended
				select {
				case <-s.read:
					return true
				default:
					return false
				}
			})
			if status := s.wait(); !status.Signaled() || status.Signal() != which {
				t.Errorf("it ends with %v: %s", status, s.log.String())
			}
			wantStored(t, dir, false, 1)
		})
	}
}

// TestSignalsThatComeTogether: what is sent twice by who ends a program once, such as by timeout to a process and to its group, lets commands end.
func TestSignalsThatComeTogether(t *testing.T) {
	t.Parallel() // it waits
	dir := filepath.Join(t.TempDir(), "db")
	s := startServe(t, dir)
	c := s.connect()
	c.hold(1500)
	c.insert(1)
	s.connect().untilInsertRuns()
	for range 3 {
		s.signal(syscall.SIGTERM)
		time.Sleep(10 * time.Millisecond) // else they are one to the system
	}
	c.done()
	if status := s.wait(); status.ExitStatus() != 0 {
		t.Errorf("it ends with %v: %s", status, s.log.String())
	}
	wantStored(t, dir, true, 1)
}

// TestLogThatNobodyReads: a server whose log goes into a pipe that was closed goes on, and settles the store when it is told to end.
func TestLogThatNobodyReads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	s := startServe(t, dir)
	if err := s.stderr.Close(); err != nil {
		t.Fatal(err)
	}
	c := s.connect()
	c.insert(1)
	c.done()
	s.signal(syscall.SIGTERM)
	if status := s.wait(); status.ExitStatus() != 0 {
		t.Errorf("it ends with %v", status)
	}
	wantStored(t, dir, true, 1)
}

// TestClientsAreToldWholePaths: a client that is told the path of a socket finds it from its own directory, too.
func TestClientsAreToldWholePaths(t *testing.T) {
	dir, err := os.MkdirTemp("", "pando") // whose name is short: that of a socket is
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("pando", "serve", "--dir", "db", "--addr", "none", "--socket", "s.sock", "--log-format", "json")
	cmd.Dir = dir
	c := start(t, cmd).connectTo("unix", filepath.Join(dir, "s.sock"))
	c.send(bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}})
	told, _ := c.done().Lookup("me").StringValueOK()
	if whole, err := filepath.EvalSymlinks(told); err != nil || !filepath.IsAbs(told) || filepath.Base(whole) != "s.sock" {
		t.Errorf("clients are told %q, %v", told, err)
	}
}
