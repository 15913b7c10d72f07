package godriver

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// program is the path of the pando that is tested.
var program string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "godriver")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "pando")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./cmd/pando")
	build.Dir = filepath.Join("..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building pando: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

var listening = regexp.MustCompile(`addresses="?\[([^\]\s]+)`)

// server is a running pando serve.
type server struct {
	t    *testing.T
	dir  string
	addr string
	cmd  *exec.Cmd
	tail []string
	over chan struct{}
}

// start starts a server on a directory; addr may be the one of a server that was killed.
func start(t *testing.T, dir, addr string, flags ...string) *server {
	t.Helper()
	s := &server{t: t, dir: dir, over: make(chan struct{})}
	s.cmd = exec.Command(program, "serve", "--dir", dir, "--addr", addr, "--profile", "relaxed")
	s.cmd.Args = append(s.cmd.Args, flags...)
	errs, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	ready := make(chan string, 1)
	go func() {
		defer close(s.over)
		for lines := bufio.NewScanner(errs); lines.Scan(); {
			if found := listening.FindStringSubmatch(lines.Text()); found != nil && len(ready) == 0 {
				ready <- found[1]
			}
			s.tail = append(s.tail, lines.Text())
		}
	}()
	select {
	case s.addr = <-ready:
	case <-s.over:
		t.Fatalf("pando serve ended at once: %v", s.tail)
	}
	return s
}

// kill ends the server as kill -9 does. A second call does nothing.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.over
	_ = s.cmd.Wait()
}

// patience is how long a client waits for a server that starts, on a machine that is busy with other things too.
const patience = 2 * time.Minute

// lasting returns an address on which a server can be started again after it was killed: the system gives ports of its choice to
// whoever connects meanwhile, but not those below that range.
func lasting(t *testing.T) (addr string) {
	t.Helper()
	for {
		addr = fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			check(t, l.Close())
			return addr
		}
	}
}

// connect returns a client of the server, which lives as long as the test.
func (s *server) connect() *mongo.Client {
	s.t.Helper()
	c, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.addr).SetServerSelectionTimeout(patience))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Disconnect(ctx)
	})
	return c
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want[T comparable](t *testing.T, what string, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Fatalf("%s: got %v, want %v", what, got, wanted)
	}
}
