package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pandodb/pando/server/wire"
)

// A process may have so many descriptors open that both ends of 10,000 connections are too many for one. So the clients of
// TestIdleConnections live in another process: this test's program again, which does what it is told by lines on its standard input.

// idleClientsOf names the environment variable that makes the program the clients of the server with that address.
const idleClientsOf = "PANDO_TEST_IDLE_CLIENTS_OF"

// idleClients is the process of the clients.
type idleClients struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

// startIdleClients starts the process of the clients of a server.
func startIdleClients(t *testing.T, addr string) *idleClients {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^TestIdleClients$")
	command.Env = append(os.Environ(), idleClientsOf+"="+addr)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = command.Wait() // it ends with its input
	})
	return &idleClients{t: t, in: in, out: bufio.NewReader(out)}
}

// tell makes the process do something, and waits until it has.
func (c *idleClients) tell(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
	if line, err := c.out.ReadString('\n'); err != nil || line != "done\n" {
		c.t.Fatalf("the clients say %q, %v", line, err)
	}
}

// idleMessages are what idle clients say: before is answered, after is not, as it is not complete.
func idleMessages(t *testing.T) map[string]struct{ before, after []byte } {
	large := message(t, 2, "admin", cmd("ping", 1, "comment", string(make([]byte, 16<<10-100))))
	squeezed, err := wire.AppendCompressed(nil, large, wire.Zlib)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]struct{ before, after []byte }{
		"after hello": {},
		"in the longest message that strangers may send": {nil, large[:len(large)-1]},
		"after the longest message":                      {large, nil},
		"after a compressed one":                         {squeezed, nil},
	}
}

// TestIdleClients is the process of the clients: "open N CASE" opens connections that say what the case has, "close" closes them.
func TestIdleClients(t *testing.T) {
	addr := os.Getenv(idleClientsOf)
	if addr == "" {
		t.Skip("this is the other process of TestIdleConnections")
	}
	lines := bufio.NewScanner(os.Stdin)
	var open []*peer
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "open":
			count, name, _ := strings.Cut(rest, " ")
			var n int
			if _, err := fmt.Sscan(count, &n); err != nil {
				t.Fatal(err)
			}
			if most := affordable(t, n); most < n {
				t.Fatalf("only %d connections are possible", most)
			}
			say := idleMessages(t)[name]
			for range n {
				open = append(open, idleClient(t, addr, say.before, say.after))
			}
		case "close":
			for _, p := range open {
				_ = p.Close()
			}
			open = nil
		}
		if _, err := fmt.Fprintln(os.Stdout, "done"); err != nil {
			t.Fatal(err)
		}
	}
}

// idleClient connects to the server, and says what it is to say.
func idleClient(t *testing.T, addr string, before, after []byte) *peer {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	p := speak(t, c)
	p.must("admin", cmd("hello", 1))
	if before != nil {
		p.sends(before...)
		if _, err := p.r.Read(); err != nil {
			t.Fatal(err)
		}
	}
	p.sends(after...)
	return p
}
