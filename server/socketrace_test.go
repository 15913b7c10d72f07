//go:build unix

package server

import (
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/osfs"
)

// overtaken is a file system on which something happens before the first file is removed that has a name.
type overtaken struct {
	vfs.FS
	name    string
	once    sync.Once
	happens func()
}

func (o *overtaken) Remove(name string) error {
	if name == o.name {
		o.once.Do(o.happens)
	}
	return o.FS.Remove(name)
}

// Of two servers that are started at one moment, on one database and one path on which a killed one has left its socket, one serves. The other
// took away its socket for the one that was left, and its own with it when the database was refused: nobody reached the one that served.
func TestTwoServersOnOneSocketThatWasLeft(t *testing.T) {
	for _, inside := range []bool{false, true} {
		dir := t.TempDir()
		c := Config{Dir: filepath.Join(dir, "db"), Addr: "none", Socket: filepath.Join(dir, "s"), Memory: 8 << 20}
		first, err := Start(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if inside {
			c.Socket = filepath.Join(c.Dir, "s")
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: c.Socket})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.complete(); err != nil {
			t.Fatal(err)
		}
		var other *Server
		fs := &overtaken{FS: osfs.New(), name: c.Socket, happens: func() { other, _ = Start(c, nil) }}
		s := &Server{
			config: c, log: slog.New(slog.DiscardHandler), clock: clock.System(), fs: fs, ready: make(chan struct{}), slots: make(chan struct{}, 10),
		}
		failed := s.begin(nil)
		if failed != nil {
			_ = s.Close() // what it has is another error of the same
		} else {
			defer s.Close()
		}
		if other != nil {
			defer other.Close()
		}
		if (failed != nil) != (other != nil) {
			t.Fatalf("inside: %v: one of two serves, and one does not: %v, %v", inside, failed, other)
		}
		conn, err := net.Dial("unix", c.Socket)
		if err != nil {
			t.Errorf("inside: %v: the one that serves is not reached: %v", inside, err)
			continue
		}
		if err := ping(t, conn); err != nil {
			t.Errorf("inside: %v: %v", inside, err)
		}
	}
}
