package server

import (
	"bytes"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
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
