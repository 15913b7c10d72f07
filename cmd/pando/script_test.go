package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pando": main})
}

// TestScripts runs testdata/script: one script for each command, one for errors, and the main job on the extract.
func TestScripts(t *testing.T) {
	t.Parallel() // beside TestShutdown, which waits
	extract, err := filepath.Abs("../../examples/data")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXTRACT", extract)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else the race detector holds every process up for a second
			env.Setenv("LONG", strings.Repeat("x", 50))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits},
	})
}

// exits runs a command and wants an exit code: "exits 3 pando get db nothing". It wants one line on the standard error too,
// unless the code is 0.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	if text := ts.ReadFile("stderr"); want != 0 && !isOneLine(text) {
		ts.Fatalf("the standard error is not one line: %q", text)
	}
}

// isOneLine reports whether text is a single line, as errors of this program are.
func isOneLine(text string) bool {
	for i, c := range text {
		if c == '\n' {
			return i > 0 && i == len(text)-1
		}
	}
	return false
}
