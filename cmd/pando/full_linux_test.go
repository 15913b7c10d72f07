package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutputThatIsFull: what cannot be written is an error, and is told once.
func TestOutputThatIsFull(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	var errOut bytes.Buffer
	if code := run(t.Context(), []string{"put", dir, "key", "value"}, nil, &errOut, &errOut); code != exitDone {
		t.Fatal(errOut.String())
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, command := range [][]string{{"scan", dir}, {"export", dir, "-"}, {"get", dir, "key"}} {
		errOut.Reset()
		code := run(t.Context(), command, nil, full, &errOut)
		if text := errOut.String(); code != exitFailed || strings.Count(text, "no space left") != 1 {
			t.Errorf("%s: exit code %d: %q", command[0], code, text)
		}
	}
}
