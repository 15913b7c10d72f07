package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// slowLines gives lines of key and value for ever, and calls after when enough for a few batches were read.
type slowLines struct {
	given int
	after func()
}

func (s *slowLines) Read(p []byte) (int, error) {
	n := 0
	for n+64 < len(p) {
		n += copy(p[n:], fmt.Sprintf("key%09d\t%s\n", s.given, strings.Repeat("v", 40)))
		s.given++
	}
	if s.given > 200_000 {
		s.after()
	}
	return n, nil
}

// TestInterrupted: an import that is interrupted says so, and what it had committed is there and undamaged.
func TestInterrupted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	ctx, cancel := context.WithCancel(t.Context())
	var out, errOut bytes.Buffer
	code := run(ctx, []string{"load", dir, "-", "--profile", "relaxed"}, &slowLines{after: cancel}, &out, &errOut)
	if code != exitFailed || !strings.Contains(errOut.String(), "interrupted") || strings.Count(errOut.String(), "\n") != 1 {
		t.Fatalf("exit code %d: %q", code, errOut.String())
	}
	wantPrefix(t, dir)
}

// slowDocuments is slowLines with JSON.
type slowDocuments struct {
	given int
	after func()
}

func (s *slowDocuments) Read(p []byte) (int, error) {
	n := 0
	for n+64 < len(p) {
		n += copy(p[n:], fmt.Sprintf("{\"_id\":%d,\"v\":\"%s\"}\n", s.given, strings.Repeat("v", 20)))
		s.given++
	}
	if s.given > 100_000 {
		s.after()
	}
	return n, nil
}

// TestInterruptedCollection is TestInterrupted for documents.
func TestInterruptedCollection(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	ctx, cancel := context.WithCancel(t.Context())
	var out, errOut bytes.Buffer
	args := []string{"import", dir, "-", "--format", "jsonl", "--collection", "c", "--profile", "relaxed"}
	code := run(ctx, args, &slowDocuments{after: cancel}, &out, &errOut)
	if code != exitFailed || !strings.Contains(errOut.String(), "interrupted") || strings.Count(errOut.String(), "\n") != 1 {
		t.Fatalf("exit code %d: %q", code, errOut.String())
	}
	_, stored, _ := strings.Cut(strings.TrimSuffix(errOut.String(), " documents)\n"), "(stored before: ")
	out.Reset()
	if code := run(t.Context(), []string{"find", dir, "c", "--count"}, strings.NewReader(""), &out, &errOut); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	if want := strings.ReplaceAll(stored, ",", "") + "\n"; out.String() != want || stored == "0" {
		t.Fatalf("%s documents are there, want %s", out.String(), want)
	}
}

// TestSilentInput: an interrupt ends an import that waits for input, and makes nothing.
func TestSilentInput(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	interruptSilent(t, "import", dir, "-", "--format", "csv")
	if _, err := os.Stat(dir); err == nil {
		t.Error("a database was made")
	}
}

// TestSilentValue: an interrupt ends a put that waits for its value, and stores nothing.
func TestSilentValue(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	interruptSilent(t, "put", dir, "k", "--file", "-")
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"get", dir, "k"}, nil, &out, &errOut); code != exitNotFound {
		t.Errorf("exit code %d: %q%q", code, out.String(), errOut.String())
	}
}

// TestSilentScript: an interrupt ends a shell that waits for its next statement.
func TestSilentScript(t *testing.T) {
	interruptSilent(t, "shell", filepath.Join(t.TempDir(), "db"))
}

// silentInput never comes, and calls asked when somebody waits for it.
type silentInput struct {
	asked func()
	over  <-chan struct{}
}

func (s silentInput) Read([]byte) (int, error) {
	s.asked()
	<-s.over
	return 0, io.EOF
}

// interruptSilent interrupts a command whose input never comes, and wants it to say so.
func interruptSilent(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var out, errOut bytes.Buffer
	code := run(ctx, args, silentInput{cancel, t.Context().Done()}, &out, &errOut)
	if code != exitFailed || !strings.HasSuffix(errOut.String(), "interrupted\n") {
		t.Fatalf("exit code %d: %q", code, errOut.String())
	}
}

// TestInterruptedRestore: who interrupts a restore while it checks the copy is told that the copy is there.
func TestInterruptedRestore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"put", dir, "k", "v"}, nil, &out, &errOut); code != exitDone {
		t.Fatalf("exit code %d: %q", code, errOut.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := (&app{err: &errOut}).checkRestored(ctx, dir)
	if err == nil || !strings.Contains(message(ctx, "pando restore", err), "is restored, but was not checked to its end: ") {
		t.Errorf("%v", err)
	}
}

// TestKilled: a process that is killed while it loads leaves a database that reads, and whose batches are whole.
func TestKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "db")
	cmd := exec.Command(self, "-test.run", "^TestLoadForEver$")
	cmd.Env = append(os.Environ(), loadVariable+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // if the test fails before
	const fewBatchesLater = "00000005.seg"
	until(t, "a few batches are stored", func() bool {
		entries, err := os.ReadDir(filepath.Join(dir, "segments"))
		return err == nil && len(entries) > 0 && entries[len(entries)-1].Name() >= fewBatchesLater
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	wantPrefix(t, dir)
	var out, errOut bytes.Buffer
	target := dir + "-backup"
	if code := run(t.Context(), []string{"backup", dir, target}, nil, &out, &errOut); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	wantPrefix(t, target)
}

// loadVariable makes TestLoadForEver load into the directory that it names, as a process of its own.
const loadVariable = "PANDO_TEST_LOAD"

func TestLoadForEver(t *testing.T) {
	dir := os.Getenv(loadVariable)
	if dir == "" {
		t.Skip("only for the process that TestKilled starts")
	}
	args := []string{"load", dir, "-", "--profile", "relaxed", "--memory", "8MiB"}
	run(t.Context(), args, &slowLines{after: func() {}}, io.Discard, io.Discard)
}

// until waits until something holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: still not so", what)
		}
	}
}

// wantPrefix checks that a database holds the first n of the lines that slowLines gives, and is undamaged.
func wantPrefix(t *testing.T, dir string) {
	t.Helper()
	var keys, errOut bytes.Buffer
	if code := run(t.Context(), []string{"scan", dir, "--keys"}, nil, &keys, &errOut); code != exitDone {
		t.Fatalf("scan: exit code %d: %s", code, errOut.String())
	}
	n := 0
	for key := range strings.Lines(keys.String()) {
		if key != fmt.Sprintf("key%09d\n", n) {
			t.Fatalf("record %d is %q", n, key)
		}
		n++
	}
	if n == 0 {
		t.Error("nothing was stored")
	}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"check", dir}, nil, &out, &errOut); code != exitDone {
		t.Fatalf("check: exit code %d: %s%s", code, out.String(), errOut.String())
	}
}
