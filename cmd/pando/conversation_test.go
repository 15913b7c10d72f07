package main

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"testing"
)

// TestConversation: a program that runs the shell has the answer to a statement before it writes the next one.
func TestConversation(t *testing.T) {
	statements, in := io.Pipe()
	out, answers := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{"shell", filepath.Join(t.TempDir(), "db")}, statements, answers, io.Discard)
	}()
	lines := bufio.NewReader(out)
	for i := range 3 {
		fmt.Fprintf(in, "use db%d\ndb\n", i)
		if got, err := lines.ReadString('\n'); err != nil || got != fmt.Sprintf("db%d\n", i) {
			t.Fatalf("%q, %v", got, err)
		}
	}
	in.Close()
	if code := <-ended; code != exitDone {
		t.Errorf("exit code %d", code)
	}
}
