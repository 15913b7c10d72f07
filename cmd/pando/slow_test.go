//go:build slow

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// job runs command lines as the program would, and wants each to succeed.
type job struct{ t *testing.T }

func (j job) run(args ...string) string {
	j.t.Helper()
	var out, errOut bytes.Buffer
	if code := run(j.t.Context(), args, strings.NewReader(""), &out, &errOut); code != exitDone {
		j.t.Fatalf("pando %s: exit code %d: %s%s", strings.Join(args, " "), code, out.String(), errOut.String())
	}
	if text := strings.TrimSpace(out.String()); len(text) < 500 {
		j.t.Logf("pando %s: %s", args[0], text)
	}
	return out.String()
}

// TestMainJobOnFullData is the script main_job on the complete files, which lie in the directory that PANDO_DATA names.
func TestMainJobOnFullData(t *testing.T) {
	fullData := os.Getenv("PANDO_DATA")
	if fullData == "" {
		t.Skip("PANDO_DATA is not set: it names the directory of debian-packages.jsonl.zst and flights.csv.zst")
	}
	packages, flights := filepath.Join(fullData, "debian-packages.jsonl.zst"), filepath.Join(fullData, "flights.csv.zst")
	for _, name := range []string{packages, flights} {
		if _, err := os.Stat(name); err != nil {
			t.Fatalf("PANDO_DATA: the complete data is not there: %v", err)
		}
	}
	j := job{t}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	var sum loaded
	for _, load := range []struct {
		file, keyspace, key string
		records             int64
	}{
		{packages, "packages", "_id", 63_665},
		{flights, "flights", "year,month,day,carrier,flight,origin", 336_776},
	} {
		out := j.run("import", in("db"), load.file, "-k", load.keyspace, "--key", load.key, "--json")
		if err := json.Unmarshal([]byte(out), &sum); err != nil {
			t.Fatal(err)
		}
		if sum.Records != load.records || sum.Holds != load.records {
			t.Fatalf("%s: %+v, want %d records", load.file, sum, load.records)
		}
	}
	if got := j.run("count", in("db"), "-k", "flights", "--prefix", "2013/7/"); got != "29425\n" {
		t.Errorf("%s flights in July, want 29425", got)
	}
	if got := j.run("get", in("db"), "bash", "-k", "packages"); !strings.Contains(got, `"summary":"GNU Bourne Again SHell"`) {
		t.Errorf("bash is %s", got)
	}
	j.run("export", in("db"), in("flights.jsonl.zst"), "-k", "flights")
	j.run("import", in("copy"), in("flights.jsonl.zst"), "-k", "flights", "--format", "pairs")
	j.run("backup", in("db"), in("backup"))
	j.run("delete", in("db"), "--prefix", "2013/", "-k", "flights")
	if got := j.run("count", in("db"), "-k", "flights"); got != "0\n" {
		t.Errorf("%s flights after all were deleted", got)
	}
	j.run("restore", in("backup"), in("restored"))
	j.run("compact", in("restored"), "--zstd")
	j.run("check", in("restored"))
	want := j.run("scan", in("restored"), "-k", "flights")
	if strings.Count(want, "\n") != 336_776 {
		t.Errorf("the restored database holds %d flights", strings.Count(want, "\n"))
	}
	if got := j.run("scan", in("copy"), "-k", "flights"); got != want {
		t.Error("the restored database and the imported export differ")
	}
}

// TestWalkThroughFullData runs the commands of docs/documents.md on the complete data, and compares what the blocks for it print.
func TestWalkThroughFullData(t *testing.T) {
	fullData := os.Getenv("PANDO_DATA")
	if fullData == "" {
		t.Skip("PANDO_DATA is not set: it names the directory of the complete data")
	}
	dir := t.TempDir()
	for name, from := range map[string]string{
		"debian-packages.jsonl": "debian-packages.jsonl.zst", "flights.csv": "flights.csv.zst",
		"airlines.csv": "airlines.csv", "airports.csv": "airports.csv", "planes.csv": "planes.csv",
	} {
		content, err := os.ReadFile(filepath.Join(fullData, from))
		if err != nil {
			t.Fatalf("PANDO_DATA: the complete data is not there: %v", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil { // what is compressed is recognised by its bytes
			t.Fatal(err)
		}
	}
	walkThrough(t, dir, "console full")
}
