package drivers

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write what the shell says into mongosh/expected.txt")

// TestMongosh types at MongoDB's shell, and compares what it says with mongosh/expected.txt. A mongod 6.0.5 says the same.
func TestMongosh(t *testing.T) {
	need(t, "node", "npm")
	t.Parallel()
	dir := copied(t, "mongosh")
	fetched(t, dir, "npm", "ci", "--fetch-retries", "5", "--no-audit", "--no-fund", "--ignore-scripts")
	shell := filepath.Join(dir, "node_modules", ".bin", "mongosh")
	// The shell keeps logs and settings in the home directory.
	env := []string{"HOME=" + t.TempDir(), "MONGOSH_DISABLE_TELEMETRY=1"}
	uri := "mongodb://" + serve(t) + "/travel"
	t.Run("script", func(t *testing.T) {
		got, err := do(t, dir, 6*time.Minute, env, shell, uri, "--quiet", "--file", "script.js")
		if err != nil {
			t.Fatalf("%v\n%s", err, last(got, 4000))
		}
		name := filepath.Join("mongosh", "expected.txt")
		if *rewrite {
			if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sections, wanted := strings.Split(got, "== "), strings.Split(string(want), "== ")
		for i, section := range wanted {
			if i >= len(sections) || sections[i] != section {
				t.Fatalf("the shell says\n%s\nand should say\n%s", strings.Join(sections[min(i, len(sections)-1):min(i+1, len(sections))], ""), section)
			}
		}
		if len(sections) != len(wanted) {
			t.Errorf("the shell says more: %s", last(got, 1000))
		}
	})
	t.Run("prompt", func(t *testing.T) {
		lines := "db.trips.insertOne({_id: 1})\nshow dbs\nshow collections\nshow users\nshow profile\nshow logs\nuse other\n" +
			"rs.printReplicationInfo()\nrs.printSecondaryReplicationInfo()\ndb.commandHelp('find')\n"
		if err := os.WriteFile(filepath.Join(dir, "lines"), []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := do(t, dir, 6*time.Minute, env, "sh", "-ec", shell+" "+uri+" <lines")
		if err != nil {
			t.Fatalf("%v\n%s", err, last(out, 4000))
		}
		for _, words := range []string{"Using MongoDB:\t\t7.0", "rs0 [direct: primary] travel> ", "travel ", "trips", "startupWarnings", "switched to db other",
			"oplog last event time", "help for: find"} {
			if !strings.Contains(out, words) {
				t.Errorf("the shell does not say %q", words)
			}
		}
		if t.Failed() || strings.Contains(out, "MongoServerError") {
			t.Errorf("the shell says\n%s", last(out, 6000))
		}
	})
}
