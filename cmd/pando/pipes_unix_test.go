//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPipeWithoutAnotherEnd: an interrupt ends a command that waits for somebody at the other end of a pipe.
func TestPipeWithoutAnotherEnd(t *testing.T) {
	dir, pipe := filepath.Join(t.TempDir(), "db"), filepath.Join(t.TempDir(), "pipe")
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"put", dir, "k", "v"}, nil, &out, &errOut); code != exitDone {
		t.Fatalf("exit code %d: %q", code, errOut.String())
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{
		{"load", dir, pipe}, {"import", dir, pipe, "--format", "jsonl", "--collection", "c"}, {"put", dir, "k", "--file", pipe}, {"export", dir, pipe},
		{"serve", "--config", pipe},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		errOut.Reset()
		ended := make(chan int, 1)
		go func() { ended <- run(ctx, args, nil, &out, &errOut) }()
		select {
		case code := <-ended:
			if code != exitFailed || !strings.HasSuffix(errOut.String(), "interrupted\n") {
				t.Errorf("%s: exit code %d: %q", args[0], code, errOut.String())
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s waits on", args[0])
			f, err := os.OpenFile(pipe, os.O_RDWR, 0) // is both ends
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			<-ended
		}
	}
}

// TestExportToTheOutputByItsName: /dev/stdout is the standard output, like -, wherever that leads: what a file had before it stays, and there is
// nothing in it but records.
func TestExportToTheOutputByItsName(t *testing.T) {
	dir, name := filepath.Join(t.TempDir(), "db"), filepath.Join(t.TempDir(), "all.jsonl")
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"put", dir, "k", "v"}, nil, &out, &errOut); code != exitDone {
		t.Fatalf("exit code %d: %q", code, errOut.String())
	}
	for range 2 {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("pando", "export", dir, "/dev/stdout")
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
		cmd.Stdout, cmd.Stderr = f, os.Stderr
		if err := errors.Join(cmd.Run(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	const line = `{"key":"k","value":"v"}` + "\n"
	if text, err := os.ReadFile(name); err != nil || string(text) != line+line {
		t.Errorf("a file: %q, %v", text, err)
	}
	cmd := exec.Command("pando", "export", dir, "/dev/stdout")
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	if text, err := cmd.Output(); err != nil || string(text) != line {
		t.Errorf("a pipe: %q, %v", text, err)
	}
}
