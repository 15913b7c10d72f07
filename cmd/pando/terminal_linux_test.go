package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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
