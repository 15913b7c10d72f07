//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestUnreadOutput: a command whose output nobody reads any more, as before "| head", says nothing, ends as shells expect it, and leaves
// no temporary files behind.
func TestUnreadOutput(t *testing.T) {
	dir, temporary := filepath.Join(t.TempDir(), "db"), t.TempDir()
	var out, errOut bytes.Buffer
	in := bytes.NewReader([]byte(`{"_id": 1}`))
	if code := run(t.Context(), []string{"import", dir, "-", "--format", "jsonl", "--collection", "c"}, in, &out, &errOut); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	for _, args := range [][]string{{"find", dir, "c"}, {"scan", dir, "-k", "documents"}, {"stats", dir}, {"export", dir, "-", "-k", "documents"}, {"demo"}, {"version"}} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		errOut.Reset()
		cmd := exec.Command("pando", args...)
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "TMPDIR="+temporary)
		cmd.Stdout, cmd.Stderr = writer, &errOut
		err = errors.Join(cmd.Run(), writer.Close())
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitUnread || errOut.Len() > 0 {
			t.Errorf("%s: %v, %q", args[0], err, errOut.String())
		}
		if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
			t.Errorf("%s leaves %v, %v", args[0], left, err)
		}
	}
}

// unread is an output whose reader has gone.
type unread struct{}

func (unread) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestUnreadReportOfDamage: that nobody reads a long report to its end, as before "| head", does not hide that there is damage.
func TestUnreadReportOfDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	var lines bytes.Buffer
	random := rand.NewChaCha8([32]byte{1})
	value := make([]byte, 64)
	for i := range 90_000 {
		_, _ = random.Read(value) // never fails
		fmt.Fprintf(&lines, "key%d\t%x\n", i, value)
	}
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"load", dir, "-"}, &lines, &out, &errOut); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	segments, err := filepath.Glob(filepath.Join(dir, "segments", "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range segments {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := 8 << 10; i < len(text)-(64<<10); i += 1000 {
			text[i] ^= 0xff
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out.Reset()
	if run(t.Context(), []string{"check", dir}, nil, &out, &errOut); out.Len() < outputBuffer {
		t.Errorf("the report has %d bytes only", out.Len())
	}
	for _, args := range [][]string{{"check", dir}, {"check", dir, "--json"}, {"salvage", dir, dir + "-saved"}} {
		errOut.Reset()
		code := run(t.Context(), args, nil, unread{}, &errOut)
		if text := errOut.String(); code != exitDamage || !strings.HasPrefix(text, "pando: damage was found") || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: exit code %d: %q", args, code, text)
		}
	}
}
