package server

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lines is a log that several goroutines write to.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// shortOfFiles is a listener whose first connection finds that the process has too many files open.
type shortOfFiles struct {
	net.Listener
	once sync.Once
}

func (l *shortOfFiles) Accept() (c net.Conn, err error) {
	l.once.Do(func() { err = &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE} })
	if err != nil {
		return nil, err
	}
	return l.Listener.Accept()
}

// TestLogOfHTTP: what the server of HTTP has to say stands in the log like everything else.
func TestLogOfHTTP(t *testing.T) {
	var log lines
	s, err := begin(Config{Dir: filepath.Join(t.TempDir(), "db"), Addr: "127.0.0.1:0", Memory: 8 << 20}, slog.New(slog.NewJSONHandler(&log, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.webListen = &shortOfFiles{Listener: l}
	s.serveHTTP()
	get(t, s, "/health")
	if text := log.String(); !strings.Contains(text, `"level":"ERROR"`) || !strings.Contains(text, "too many open files") {
		t.Errorf("the log: %s", text)
	}
}

// TestShutdownBesideASlowReader: who asks over HTTP and does not take the answers holds a shutdown up for as long as it lets commands end, and
// does not make it fail.
func TestShutdownBesideASlowReader(t *testing.T) {
	t.Parallel() // it waits
	s, err := Start(Config{Dir: filepath.Join(t.TempDir(), "db"), Addr: "127.0.0.1:0", HTTP: "127.0.0.1:0", Memory: 8 << 20}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := connect(t, "tcp", s.HTTPAddr())
	if err := errors.Join(c.(*net.TCPConn).SetReadBuffer(4<<10), c.SetWriteDeadline(time.Now().Add(2*time.Second))); err != nil {
		t.Fatal(err)
	}
	const enough = 5000                                                                          // to fill all buffers with answers
	_, _ = io.WriteString(c, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n", enough)) // as far as they are read
	time.Sleep(time.Second)                                                                      // for the answers: there is no telling when they are stuck
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is still there")
	}
}
