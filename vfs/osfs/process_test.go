package osfs_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/osfs"
)

// childLock is the variable that makes this test binary a process which takes the lock named in it.
const childLock = "PANDO_TEST_LOCK"

func TestMain(m *testing.M) {
	name := os.Getenv(childLock)
	if name == "" {
		os.Exit(m.Run())
	}
	_, err := osfs.New().Lock(name, vfs.Exclusive)
	fmt.Println("locked:", err)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes the pipe or kills us
}

// child starts a process that takes the lock, and returns what it said.
func child(t *testing.T, name string) (cmd *exec.Cmd, said string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childLock+"="+name)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = stdin.Close(), cmd.Wait() })
	said, err = bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(said)
}

func TestLockBetweenProcesses(t *testing.T) {
	fsys, name := osfs.New(), filepath.Join(t.TempDir(), "LOCK")
	owner, said := child(t, name)
	if said != "locked: <nil>" {
		t.Fatalf("the child could not lock: %s", said)
	}
	var locked *vfs.LockedError
	for _, mode := range []vfs.LockMode{vfs.Shared, vfs.Exclusive} {
		_, err := fsys.Lock(name, mode)
		if !errors.As(err, &locked) || locked.PID != owner.Process.Pid {
			t.Fatalf("%v, want a lock held by %d", err, owner.Process.Pid)
		}
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // "killed" is what we asked for

	// The lock is free at once, and the dead owner's number does not mislead anybody.
	shared, err := fsys.Lock(name, vfs.Shared)
	if err != nil {
		t.Fatal(err)
	}
	if _, said := child(t, name); !strings.HasSuffix(said, "locked by somebody else") {
		t.Errorf("beside a shared holder: %s", said)
	}
	if err := shared.Close(); err != nil {
		t.Fatal(err)
	}
	own, err := fsys.Lock(name, vfs.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if _, said := child(t, name); !strings.HasSuffix(said, fmt.Sprintf("locked by process %d", os.Getpid())) {
		t.Errorf("beside this process: %s", said)
	}
}

func TestReadsDoNotAllocate(t *testing.T) {
	f, err := osfs.New().Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := make([]byte, 4096)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := f.WriteAt(p, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAt(p, 0); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a write and a read allocate %v times", n)
	}
}
