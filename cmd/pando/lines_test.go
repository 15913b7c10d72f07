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
