package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.uber.org/goleak"

	"github.com/pandodb/pando/server/mongo"
	"github.com/pandodb/pando/server/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts a server that ends with the test.
func start(t *testing.T, c Config) *Server {
	t.Helper()
	return startTuned(t, c, nil)
}

// startTuned is start with options of the protocol.
func startTuned(t *testing.T, c Config, tune func(o *mongo.Options)) *Server {
	t.Helper()
	c.Dir, c.Memory = filepath.Join(t.TempDir(), "db"), 8<<20
	s, err := begin(c, nil, tune)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ping sends a ping and returns whether it was answered with ok.
func ping(t *testing.T, c net.Conn) error {
	t.Helper()
	body, err := bson.Marshal(bson.D{{Key: "ping", Value: 1}, {Key: "$db", Value: "admin"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(wire.AppendMsg(nil, 1, 0, 0, bsoncore.Document(body))); err != nil {
		return err
	}
	m, err := wire.NewReader(c).Read()
	if err != nil {
		return err
	}
	if ok, _ := bson.Raw(m.Body).Lookup("ok").DoubleOK(); ok != 1 {
		t.Errorf("ping: %s", bson.Raw(m.Body))
	}
	return nil
}

// connect connects to an address until the test ends.
func connect(t *testing.T, network, address string) net.Conn {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestListens(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	s := start(t, Config{Addr: "127.0.0.1:0", Socket: socket})
	for network, address := range map[string]string{"tcp": s.Addrs()[0], "unix": socket} {
		if err := ping(t, connect(t, network, address)); err != nil {
			t.Errorf("%s: %v", network, err)
		}
	}
}

func TestTooManyConnections(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0", MaxConnections: 1})
	first := connect(t, "tcp", s.Addrs()[0])
	if err := ping(t, first); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, connect(t, "tcp", s.Addrs()[0])); err == nil {
		t.Error("a second connection was served")
	}
	if err := ping(t, first); err != nil {
		t.Error(err)
	}
}

func TestConfigRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		c    Config
		says string
	}{
		{"no directory", Config{}, "no directory"},
		{"a profile that is not known", Config{Dir: "d", Profile: "fast"}, "durable or relaxed"},
		{"nowhere to listen", Config{Dir: "d", Addr: "none"}, "neither an address nor a socket"},
		{"a key without a certificate", Config{Dir: "d", TLSKey: "k"}, "need tls-cert"},
		{"reachable from other machines without logins", Config{Dir: "d", Addr: ":27017"}, "ask for logins"},
		{"less than no connections", Config{Dir: "d", MaxConnections: -1}, "negative"},
		{"less than no cursors", Config{Dir: "d", MaxCursors: -1}, "negative"},
		{"less than no history", Config{Dir: "d", History: -1}, "negative"},
		{"less than no memory", Config{Dir: "d", Memory: -1}, "negative"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := test.c.complete(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q is wanted: %v", test.says, err)
			}
		})
	}
}

// TestCannotListen: a server that cannot begin says why, and leaves nothing behind: neither a database nor a lock.
func TestCannotListen(t *testing.T) {
	busy := start(t, Config{Addr: "127.0.0.1:0", Socket: filepath.Join(t.TempDir(), "s")})
	dir := filepath.Join(t.TempDir(), "db")
	for _, test := range []struct {
		name string
		c    Config
		says string
	}{
		{"a port in use", Config{Dir: dir, Addr: busy.Addrs()[0]}, "listen"},
		{"a socket in use", Config{Dir: dir, Addr: "none", Socket: busy.Addrs()[1]}, "another server does"},
		{"a port in use for HTTP", Config{Dir: dir, Addr: "127.0.0.1:0", HTTP: busy.Addrs()[0]}, "HTTP: listen"},
		{"a socket in no directory", Config{Dir: dir, Addr: "none", Socket: filepath.Join(t.TempDir(), "x", "s")}, "listen"},
		{"a certificate that is not there", Config{Dir: dir, Addr: "127.0.0.1:0", TLSCert: filepath.Join(dir, "pem")}, "tls-cert"},
		{"a directory in use", Config{Dir: busy.config.Dir, Addr: "127.0.0.1:0"}, "lock"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := Start(test.c, nil)
			if err == nil {
				t.Fatal("it serves", s.Close())
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q is wanted: %v", test.says, err)
			}
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the directory of the database was made: %v", err)
			}
		})
	}
	free := lasting(t)
	if _, err := Start(Config{Dir: busy.config.Dir, Addr: "127.0.0.1:0", HTTP: free}, nil); err == nil {
		t.Fatal("a directory in use is served twice")
	}
	s, err := Start(Config{Dir: dir, Addr: "127.0.0.1:0", HTTP: free}, nil)
	if err != nil {
		t.Fatal("after a start that failed: ", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// lasting returns an address that stays free: the system gives ports of its choice to whoever connects or listens meanwhile, but not those
// below that range.
func lasting(t *testing.T) (addr string) {
	t.Helper()
	for {
		addr = fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return addr
		}
	}
}

// TestSocketInThePlaceOfSomethingElse: what a killed server has left gives way to the socket, and nothing else does.
func TestSocketInThePlaceOfSomethingElse(t *testing.T) {
	left := filepath.Join(t.TempDir(), "left")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: left})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, connect(t, "unix", start(t, Config{Addr: "none", Socket: left}).Addrs()[0])); err != nil {
		t.Error(err)
	}
	file, empty, dir := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "empty"), t.TempDir()
	if err := errors.Join(os.WriteFile(file, []byte("notes"), 0o600), os.WriteFile(empty, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, empty, dir} {
		s, err := Start(Config{Dir: filepath.Join(t.TempDir(), "db"), Addr: "none", Socket: path}, nil)
		if err == nil {
			err = s.Close()
		} else if !strings.Contains(err.Error(), "no socket") {
			t.Error(err)
		}
		if _, gone := os.Stat(path); gone != nil {
			t.Errorf("%v, %v", gone, err)
		}
	}
}

// TestSocketInTheDatabase: a socket may lie in the directory of the database, also in one that is to be made.
func TestSocketInTheDatabase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	for range 2 {
		s, err := Start(Config{Dir: dir, Addr: "none", Socket: filepath.Join(dir, "s")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHealthAndMetrics(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0", HTTP: "127.0.0.1:0"})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, says := range map[string]string{"/health": "ok", "/metrics": "pando_"} {
		r, err := client.Get("http://" + s.HTTPAddr() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != http.StatusOK || !strings.Contains(string(body), says) {
			t.Errorf("%s: %s: %s", path, r.Status, body)
		}
	}
}

func TestTellsSystemd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	systemd, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()
	s := start(t, Config{Addr: "127.0.0.1:0", NotifySocket: path})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"READY=1", "STOPPING=1"} {
		b := make([]byte, 64)
		n, _, err := systemd.ReadFrom(b)
		if err != nil || string(b[:n]) != want {
			t.Errorf("%q, %v; %s is wanted", b[:n], err, want)
		}
	}
}

// TestShutdownDoesNotWaitForWhatMayNeverCome: heartbeats and cursors that wait for more end at once, in good order.
func TestShutdownDoesNotWaitForWhatMayNeverCome(t *testing.T) {
	var log bytes.Buffer
	s, err := Start(Config{Addr: "127.0.0.1:0", Dir: filepath.Join(t.TempDir(), "db"), Memory: 8 << 20}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	h, beat, watch := newPeer(t, s), newPeer(t, s), newPeer(t, s)
	version := h.must("admin", cmd("hello", 1)).Lookup("topologyVersion")
	stream := watch.must("d", cmd("aggregate", "c", "pipeline", bson.A{bson.D{{Key: "$changeStream", Value: bson.D{}}}}, "cursor", bson.D{}))
	beat.sends(message(t, 1, "admin", cmd("hello", 1, "topologyVersion", version, "maxAwaitTimeMS", int64(1<<40)))...)
	watch.sends(message(t, 2, "d", cmd("getMore", stream.Lookup("cursor", "id").Int64(), "collection", "c", "maxTimeMS", int32(1<<30)))...)
	eventually(t, "both wait", func() bool { return running(h) == 3 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Contains(text, "cut off") || !strings.Contains(text, "closed") {
		t.Error(text)
	}
}

// A server may be closed by several goroutines at once, a signal and a deferred call say: one of them shuts it down.
func TestClosedByMany(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0"})
	begin := make(chan struct{})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			<-begin
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	close(begin)
	wait.Wait()
}
