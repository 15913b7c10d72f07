package drivers

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// program is the path of the pando that is tested.
var program string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if os.Getenv("PANDO_DRIVERS") != "1" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "drivers")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "pando")
	// The clients wait for registries and for the times that their tests are about, far more than they compute.
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "github.com/pandodb/pando/cmd/pando").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building pando: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// need skips a test that nobody asked for, and fails one that was asked for where its runtime is missing.
func need(t *testing.T, runtimes ...string) {
	t.Helper()
	if os.Getenv("PANDO_DRIVERS") != "1" {
		t.Skipf("PANDO_DRIVERS=1 is not set: this test installs packages for %s", strings.Join(runtimes, ", "))
	}
	for _, r := range runtimes {
		if _, err := exec.LookPath(r); err != nil {
			t.Fatalf("PANDO_DRIVERS=1 asks for this test, and %s is not there: %v", r, err)
		}
	}
}

var listening = regexp.MustCompile(`addresses="?\[([^\]\s]+)`)

// serve starts pando serve on an empty directory and returns its address. The test fails if the server ends before the test.
func serve(t *testing.T, flags ...string) (addr string) {
	t.Helper()
	args := append([]string{"serve", "--dir", filepath.Join(scratch(t), "db"), "--addr", "127.0.0.1:0", "--profile", "relaxed"}, flags...)
	cmd := exec.Command(program, args...)
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan string, 1), make(chan struct{})
	var tail []string
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(errs)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if found := listening.FindStringSubmatch(lines.Text()); found != nil && len(ready) == 0 {
				ready <- found[1]
			}
			if tail = append(tail, lines.Text()); len(tail) > 400 {
				tail = tail[200:]
			}
		}
	}()
	t.Cleanup(func() {
		interrupted := cmd.Process.Signal(os.Interrupt)
		<-ended
		if err := cmd.Wait(); interrupted != nil || err != nil {
			t.Errorf("pando serve ended before the test or with an error: %v, %v\n%s", interrupted, err, strings.Join(tail, "\n"))
		}
	})
	select {
	case addr = <-ready:
	case <-ended:
		t.Fatal("pando serve ended at once")
	}
	return addr
}

// do runs a command in a directory, for as long as limit at most, and returns what it wrote.
func do(t *testing.T, dir string, limit time.Duration, env []string, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(os.Environ(), env...), time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("%s did not end within %v: %w", name, limit, ctx.Err())
	}
	return string(out), err
}

// must is do for what has to succeed.
func must(t *testing.T, dir string, limit time.Duration, name string, args ...string) {
	t.Helper()
	if out, err := do(t, dir, limit, nil, name, args...); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, last(out, 4000))
	}
}

// fetched is must for what gets something from a registry, and does no harm when done again: it is tried a few times.
func fetched(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	for _, pause := range []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second} {
		out, err := do(t, dir, 7*time.Minute, nil, name, args...)
		if err == nil {
			return
		}
		t.Logf("tried again in %v: %s %s: %v\n%s", pause, name, strings.Join(args, " "), err, last(out, 1000))
		time.Sleep(pause)
	}
	must(t, dir, 7*time.Minute, name, args...)
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }

// copied returns a scratch copy of a directory of this package.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), dir)
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestNode runs the Node driver and mongoose.
func TestNode(t *testing.T) {
	need(t, "node", "npm")
	t.Parallel()
	dir := copied(t, "node")
	fetched(t, dir, "npm", "ci", "--fetch-retries", "5", "--no-audit", "--no-fund", "--ignore-scripts")
	for _, script := range []string{"driver.mjs", "mongoose.mjs"} {
		t.Run(script, func(t *testing.T) {
			addr := serve(t)
			must(t, dir, 6*time.Minute, "node", script, "mongodb://"+addr)
		})
	}
}

// TestSpring runs what applications do with Spring Data.
func TestSpring(t *testing.T) {
	runMaven(t, "spring")
}

// TestJava runs the synchronous Java driver.
func TestJava(t *testing.T) {
	runMaven(t, "java")
}

// runMaven runs the program of a directory against a server of its own.
func runMaven(t *testing.T, name string) {
	t.Helper()
	need(t, "java", "mvn")
	t.Parallel()
	dir := copied(t, name)
	fetched(t, dir, "mvn", "-q", "-B", "compile", "exec:help") // the help brings the plugin that runs programs
	must(t, dir, 6*time.Minute, "mvn", "-q", "-B", "exec:java", "-Dexec.args=mongodb://"+serve(t))
}
