package server

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// Nobody logs in to ask for health and metrics, and how many connections do was not bounded: each takes a file from the store.
func TestConnectionsOfHTTPAreBounded(t *testing.T) {
	s, err := Start(Config{Dir: filepath.Join(t.TempDir(), "db"), Addr: "127.0.0.1:0", HTTP: "127.0.0.1:0", Memory: 8 << 20}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	open := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", s.HTTPAddr())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	var idle []net.Conn
	for range webConnections {
		c := open()
		defer c.Close()
		idle = append(idle, c)
		if _, err := io.WriteString(c, "GET /health HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	c := open()
	defer c.Close()
	var late net.Error
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.As(err, &late) && late.Timeout() {
		t.Errorf("one more connection than there may be is kept: %v", err)
	}
	if n := s.refused.n.Load(); n != 1 {
		t.Errorf("%d connections were refused", n)
	}
	_ = idle[0].Close()
	eventually(t, "there is room for another one", func() bool {
		c := open()
		defer c.Close()
		if _, err := io.WriteString(c, "GET /health HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			return false
		}
		_, err := c.Read(make([]byte, 1))
		return err == nil
	})
}

// Whoever opens a connection for health checks gets it, also where one client has taken all that there may be: silent ones give way, and then
// those whose request does not come to its end.
func TestNobodyKeepsOthersFromHTTP(t *testing.T) {
	s := start(t, Config{Addr: "127.0.0.1:0", HTTP: "127.0.0.1:0"})
	open := func(text string) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", s.HTTPAddr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, begun := range []string{"", "GET /health HT"} {
		for range webConnections {
			open(begun)
		}
		c := open("GET /health HTTP/1.1\r\nHost: h\r\n\r\n")
		if err := c.SetDeadline(time.Now().Add(hangs)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Errorf("beside connections that have sent %q: %v", begun, err)
		}
		s.webOpen.mu.Lock()
		if n := len(s.webOpen.open); n > webConnections {
			t.Errorf("%d connections are open", n)
		}
		s.webOpen.mu.Unlock()
	}
}
