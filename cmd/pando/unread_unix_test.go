//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
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
