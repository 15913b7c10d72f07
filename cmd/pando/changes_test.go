package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pandodb/pando"
)

// TestChangesThatExpireLate: changes goes past a key that expires when nobody counts years any more.
func TestChangesThatExpireLate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	db, err := pando.Open(dir, &pando.Options{KeepChanges: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for key, at := range map[string]time.Time{"soon": time.Date(2100, 1, 2, 3, 4, 5, 6e6, time.UTC), "late": time.Unix(1<<60, 0)} {
		if err := db.Default().PutExpiring([]byte(key), nil, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"changes", dir}, nil, &out, &errOut); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	seen := map[string]string{}
	for line := range strings.Lines(out.String()) {
		var row struct{ Key, Expires string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		seen[row.Key] = row.Expires
	}
	soon, err := time.Parse(time.RFC3339Nano, seen["soon"])
	if err != nil || soon.UnixMilli() != 4102542245006 || !strings.HasPrefix(seen["late"], "292278994-08-") {
		t.Errorf("%v, %v", seen, err)
	}
}

// TestBackupKeepsChanges: to back up what a crash has left, which is settled for it, forgets nothing of what was kept of the log.
func TestBackupKeepsChanges(t *testing.T) {
	dir, crashed := filepath.Join(t.TempDir(), "db"), filepath.Join(t.TempDir(), "crashed")
	var out, errOut bytes.Buffer
	command := func(args ...string) string {
		t.Helper()
		out.Reset()
		if code := run(t.Context(), args, nil, &out, &errOut); code != exitDone {
			t.Fatalf("%v: exit code %d: %s", args, code, errOut.String())
		}
		return out.String()
	}
	command("put", dir, "a", "1", "--keep-changes", "1MiB")
	db, err := pando.Open(dir, &pando.Options{KeepChanges: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Put([]byte("b"), []byte("2")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	command("backup", crashed, crashed+"-backup")
	if got := command("changes", crashed); strings.Count(got, "\n") != 2 || !strings.HasPrefix(got, `{"seq":1,`) {
		t.Errorf("%s", got)
	}
}
