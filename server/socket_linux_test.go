package server

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// wantKept starts a server on the path of a Unix socket, which has to be refused, and wants what is there to stay.
func wantKept(t *testing.T, path string) {
	t.Helper()
	before, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Start(Config{Dir: filepath.Join(t.TempDir(), "db"), Addr: "none", Socket: path, Memory: 8 << 20}, nil)
	if err == nil {
		t.Error("it is listened on", s.Close())
	}
	after, err := os.Lstat(path)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("what was there is gone: %v, %v", after, err)
	}
}

// TestSocketOfABusyServer: that a server has no room for another client is no reason to take its socket away.
func TestSocketOfABusyServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ { // until nobody else may wait
		c, err := net.DialTimeout("unix", path, time.Second)
		if err != nil {
			break
		}
		defer c.Close()
		if i == 100 {
			t.Skip("as many may wait as like to")
		}
	}
	wantKept(t, path)
}

// TestSocketOfAnotherKind: nor that it speaks in datagrams.
func TestSocketOfAnotherKind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	c, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	wantKept(t, path)
}

// TestSocketWhereALinkIs: a link that leads nowhere is no socket.
func TestSocketWhereALinkIs(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), path); err != nil {
		t.Fatal(err)
	}
	wantKept(t, path)
}
