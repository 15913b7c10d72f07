package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestStatementOfManyLines: a statement of many lines is looked through once, not once for each of its lines, which would take minutes.
func TestStatementOfManyLines(t *testing.T) {
	const lines = 400_000
	script := "db.c.insertOne({a: [\n" + strings.Repeat("1,\n", lines) + "2]})\ndb.c.find({a: 2}).count()\n"
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"shell", filepath.Join(t.TempDir(), "db")}, strings.NewReader(script), &out, &errOut)
	if code != exitDone || !strings.HasSuffix(out.String(), "\n1\n") {
		t.Errorf("exit code %d: %.200s, %.200s", code, out.String(), errOut.String())
	}
}

// TestStatementThatIsTooLong: in one line or in many it is refused, with the line on which it begins.
func TestStatementThatIsTooLong(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	for _, rest := range []string{strings.Repeat("x", maxStatement), strings.Repeat(strings.Repeat("x", 1<<20)+"\n", 33)} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), []string{"shell", dir}, strings.NewReader("db\ndb.c.insertOne({a: '\n"+rest), &out, &errOut)
		if code != exitFailed || !strings.Contains(errOut.String(), "line 2: the statement is longer than") {
			t.Errorf("exit code %d: %.200s, %.200s", code, out.String(), errOut.String())
		}
	}
}

// TestScriptWithAByteOrderMark: what an editor puts in front of a script is no part of it.
func TestScriptWithAByteOrderMark(t *testing.T) {
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"shell", filepath.Join(t.TempDir(), "db")}, strings.NewReader(byteOrderMark+"db\n"), &out, &errOut)
	if code != exitDone || out.String() != "test\n" {
		t.Errorf("exit code %d: %q, %q", code, out.String(), errOut.String())
	}
}
