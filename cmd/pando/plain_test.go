package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
)

// odd is text that would give a terminal commands: an escape, its shorter form, and a line of its own.
const odd = "a\x1b]0;b\a\u009b1m\r\u007f"

// TestNoCommandsToTheTerminal: what documents, their fields, collections and indexes are called, and what is in them, is printed without
// control characters, in errors too.
func TestNoCommandsToTheTerminal(t *testing.T) {
	dir := t.TempDir()
	quoted := `'a\u001b]0;b\u0007\u009b1m\r\u007f'`
	collection := "db.getCollection(" + quoted + ")"
	for _, statement := range []string{
		collection + ".createIndex({a: 1}, {unique: true, name: " + quoted + "})",
		collection + ".insertOne({_id: 1, a: " + quoted + ", " + quoted + ": 1})",
		collection + ".insertOne({_id: 2, a: " + quoted + "})",
		collection + ".find()",
		collection + ".find().pretty()",
		collection + ".distinct('a')",
		collection + ".find({a: 1}).explain()",
		collection + ".getIndexes()",
		collection + ".aggregate([{$project: {n: {$toInt: '$a'}}}])",
		"show collections",
		"use " + odd,
		"show " + odd,
	} {
		for _, flags := range [][]string{nil, {"--json"}} {
			var out, errOut bytes.Buffer
			_ = run(t.Context(), append([]string{"shell", dir, "--eval", statement}, flags...), nil, &out, &errOut)
			for name, text := range map[string]string{"output": out.String(), "error": errOut.String()} {
				if strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), unicode.IsControl) {
					t.Errorf("%s: the %s has control characters: %q", statement, name, text)
				}
			}
			if strings.Count(errOut.String(), "\n") > 1 {
				t.Errorf("%s: %q", statement, errOut.String())
			}
		}
	}
	for _, args := range [][]string{
		{"find", dir, odd}, {"find", dir, odd + "b"}, {"explain", dir, odd, "{a: 1}"}, {"index", "list", dir, odd}, {"index", "list", dir, odd, "--json"},
		{"keyspaces", dir}, {"keyspaces", dir, "--json"}, {"put", dir, "k", odd, "-k", odd}, {"scan", dir, "-k", odd, "--json"}, {"get", dir, "k", "-k", odd, "--json"},
		{"export", dir, "-", "-k", odd}, {"changes", dir}, {odd}, {"import", dir, odd},
	} {
		var out, errOut bytes.Buffer
		_ = run(t.Context(), args, nil, &out, &errOut)
		for name, text := range map[string]string{"output": out.String(), "error": errOut.String()} {
			if strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), unicode.IsControl) {
				t.Errorf("%q: the %s has control characters: %q", args, name, text)
			}
		}
	}
}
