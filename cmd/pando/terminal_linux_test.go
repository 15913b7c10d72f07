package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a pseudo-terminal: the one of who types, and the one of a process.
func openTerminal(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there are no pseudo-terminals:", err)
	}
	t.Cleanup(func() { keyboard.Close() })
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return keyboard, terminal
}

// TestTerminatedShell: a shell that waits for a line when it is told to end leaves nothing behind.
func TestTerminatedShell(t *testing.T) {
	for _, which := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(fmt.Sprint(which), func(t *testing.T) {
			if signal.Ignored(which) {
				t.Skip("what this process starts is to outlive the terminal")
			}
			terminateShell(t, which)
		})
	}
}

func terminateShell(t *testing.T, which syscall.Signal) {
	dir, temporary := filepath.Join(t.TempDir(), "db"), t.TempDir()
	if code := run(t.Context(), []string{"shell", dir}, strings.NewReader("db.c.insertOne({})"), io.Discard, os.Stderr); code != exitDone {
		t.Fatalf("exit code %d", code)
	}
	keyboard, terminal := openTerminal(t)
	cmd := exec.Command("pando", "shell", dir, "--read-only")
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "TMPDIR="+temporary, historyVariable+"=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // if the test fails before
	if greeting, err := bufio.NewReader(keyboard).ReadString('\n'); err != nil || !strings.HasPrefix(greeting, "Pando shell") {
		t.Fatalf("%q, %v", greeting, err)
	}
	if err := cmd.Process.Signal(which); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// TestShellWithoutAnEditor: statements are carried out as they are typed where the terminal cannot tell the line editor anything, because the
// output goes elsewhere or since it is a dumb one.
func TestShellWithoutAnEditor(t *testing.T) {
	t.Run("output elsewhere", func(t *testing.T) {
		keyboard, terminal := openTerminal(t)
		cmd := shellOn(t, terminal, "TERM=xterm")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		converse(t, cmd, keyboard, terminal, out)
	})
	t.Run("dumb", func(t *testing.T) {
		keyboard, terminal := openTerminal(t)
		cmd := shellOn(t, terminal, "TERM=dumb")
		cmd.Stdout = terminal
		converse(t, cmd, keyboard, terminal, keyboard)
	})
}

// shellOn returns a shell whose keyboard is a terminal.
func shellOn(t *testing.T, terminal *os.File, variable string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // so that a test that fails ends
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "pando", "shell", filepath.Join(t.TempDir(), "db"))
	cmd.Env = append(os.Environ(), variable, historyVariable+"=")
	cmd.Stdin = terminal
	return cmd
}

// converse types a statement, waits for its answer, and has the shell end.
func converse(t *testing.T, cmd *exec.Cmd, keyboard io.Writer, terminal io.Closer, out io.Reader) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := terminal.Close(); err != nil { // it is the shell's now: who reads what it shows reads to an end when that has ended
		t.Fatal(err)
	}
	if _, err := io.WriteString(keyboard, "db.c.countDocuments()\n"); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); ; {
		if !lines.Scan() {
			t.Fatal("there is no answer: ", lines.Err())
		}
		if strings.TrimSpace(lines.Text()) == "0" {
			break
		}
	}
	if _, err := io.WriteString(keyboard, "exit\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestColourOfTheLog: the log of a server has colours on a terminal, but where the environment says that they are not wanted, or not understood.
func TestColourOfTheLog(t *testing.T) {
	for _, c := range []struct {
		term, noColor, format string
		coloured              bool
	}{
		{"xterm", "", "", true}, {"", "", "", true},
		{"xterm", "1", "", false}, {"dumb", "", "", false},
		{"dumb", "1", "colour", true}, {"xterm", "", "text", false},
	} {
		t.Setenv("TERM", c.term)
		t.Setenv("NO_COLOR", c.noColor)
		keyboard, terminal := openTerminal(t)
		log, err := (&settings{logLevel: "info", logFormat: c.format}).log(&app{err: terminal})
		if err != nil {
			t.Fatal(err)
		}
		log.Info("hello")
		line, err := bufio.NewReader(keyboard).ReadString('\n')
		if err != nil || strings.Contains(line, "\x1b[") != c.coloured {
			t.Errorf("%+v: %q, %v", c, line, err)
		}
	}
}

// statementVariable makes TestStatementForEver carry one out, as a process of its own.
const statementVariable = "PANDO_TEST_STATEMENT"

// TestStatementForEver is a shell whose statement does not heed that it is to end.
func TestStatementForEver(t *testing.T) {
	if os.Getenv(statementVariable) == "" {
		t.Skip("only for the process that TestStatementThatHeedsNothing starts")
	}
	w, err := (&session{}).watchSignals()
	if err != nil {
		t.Fatal(err)
	}
	running, _ := w.begin(t.Context())
	fmt.Fprintln(os.Stderr, "begins")
	<-running.Done()
	fmt.Fprintln(os.Stderr, "is told")
	time.Sleep(time.Hour)
}

// TestStatementThatHeedsNothing: as with other commands a second SIGTERM ends a shell that the first does not, for its terminal takes no output
// for instance.
func TestStatementThatHeedsNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, terminal := openTerminal(t)
	cmd := exec.Command(self, "-test.run", "^TestStatementForEver$")
	cmd.Env = append(os.Environ(), statementVariable+"=1")
	cmd.Stdin = terminal
	told, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // if the test fails before
	lines := bufio.NewScanner(told)
	for _, want := range []string{"begins", "is told"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("%q: %v, not %q", lines.Text(), lines.Err(), want)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it was killed
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("it goes on")
	}
}
