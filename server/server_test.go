package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.uber.org/goleak"

	"github.com/pandodb/pando/server/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts a server that ends with the test.
func start(t *testing.T, c Config) *Server {
	t.Helper()
	c.Dir, c.Memory = filepath.Join(t.TempDir(), "db"), 8<<20
	s, err := Start(c, nil)
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
	for _, test := range []struct{ name, text, says string }{
		{"no directory", ``, "no directory"},
		{"a name that is not known", "dir = 'd'\ncolour = 'red'", "unknown name"},
		{"not TOML", "dir = ", "configuration"},
		{"a profile that is not known", "dir = 'd'\nprofile = 'fast'", "durable or relaxed"},
		{"nowhere to listen", "dir = 'd'\naddr = 'none'", "neither an address nor a socket"},
		{"a key without a certificate", "dir = 'd'\ntls-key = 'k'", "need tls-cert"},
		{"reachable from other machines without logins", "dir = 'd'\naddr = ':27017'", "ask for logins"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c Config
			err := c.ParseConfig([]byte(test.text))
			if err == nil {
				err = c.complete()
			}
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q is wanted: %v", test.says, err)
			}
		})
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
