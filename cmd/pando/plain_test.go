package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
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

// TestPointersOfOldDatabasesAreJSON: what a client has written into the name of a collection there stays inside of its string.
func TestPointersOfOldDatabasesAreJSON(t *testing.T) {
	dir := t.TempDir()
	store, err := document.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	pointer := bson.DBPointer{DB: "c\"}},\"forged\":true,\"\x1b[2J\n\\\""}
	for _, doc := range []bson.D{{{Key: "a", Value: pointer}}, {{Key: "a", Value: bson.A{1, bson.D{{Key: "b", Value: pointer}}}}}} {
		if _, err := store.Database("test").Lookup("c").Insert(t.Context(), doc); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"find", dir, "c"}, {"find", dir, "c", "--canonical"}, {"shell", dir, "--eval", "db.c.distinct('a')"}} {
		var out, errOut bytes.Buffer
		if code := run(t.Context(), args, nil, &out, &errOut); code != exitDone {
			t.Fatal(errOut.String())
		}
		n := 0
		for line := range strings.Lines(out.String()) {
			n++
			text := strings.TrimSuffix(line, "\n")
			var doc struct{ V bson.RawValue }
			if err := bson.UnmarshalExtJSON([]byte(`{"v":`+text+`}`), false, &doc); err != nil || !json.Valid([]byte(text)) || strings.Contains(text, `"forged"`) {
				t.Errorf("%v: %q", err, line)
			}
		}
		if n < 2 || strings.Contains(out.String(), "\x1b") {
			t.Errorf("%d lines: %q", n, out.String())
		}
	}
}
