package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/engine"
)

// TestOutputThatCannotGetItsName: nothing is left of a file that cannot be put into its place.
func TestOutputThatCannotGetItsName(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.jsonl")
	a := &app{}
	o, err := a.createOutput(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := o.finish(); err == nil {
		t.Error("a file took the place of a directory")
	}
	if entries, err := os.ReadDir(filepath.Dir(name)); err != nil || len(entries) != 1 {
		t.Errorf("the unfinished file is still there: %v, %v", entries, err)
	}
}

// TestOutputReplacesWhatALinkLeadsTo: the link stays, and no more people may read the file than before.
func TestOutputReplacesWhatALinkLeadsTo(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(t.TempDir(), "link")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	o, err := (&app{}).createOutput(t.Context(), link)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if err := o.finish(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil || string(text) != "new" {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link: %v, %v", info, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
}

// TestDiscardSparesOthers: a restore that fails takes away what it has made, and no database that somebody else has made in its place.
func TestDiscardSparesOthers(t *testing.T) {
	for _, there := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "db")
		db, err := pando.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Put([]byte("k"), []byte("v")); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := discard(dir, there); err != nil {
			t.Fatal(err)
		}
		if db, err = pando.Open(dir, &pando.Options{MustExist: true}); err != nil {
			t.Errorf("there before: %v: the database is gone: %v", there, err)
			continue
		}
		if v, err := db.Get([]byte("k")); err != nil || string(v) != "v" {
			t.Errorf("there before: %v: %q, %v", there, v, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDiscardOwn: it takes the unfinished one away.
func TestDiscardOwn(t *testing.T) {
	for _, was := range []struct {
		name  string
		files []string
	}{
		{"begun", []string{"segments/", "LOCK", "UNFINISHED"}},
		{"hardly begun, before it could say that it is unfinished", []string{engine.LockName, engine.UnfinishedName + ".tmp"}},
	} {
		for _, there := range []bool{false, true} {
			dir := filepath.Join(t.TempDir(), "db")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, name := range was.files {
				make := func(path string) error { return os.WriteFile(path, []byte("the copy was interrupted\n"), 0o644) }
				if strings.HasSuffix(name, "/") {
					make = func(path string) error { return os.Mkdir(path, 0o755) }
				}
				if err := make(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := discard(dir, there); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(dir)
			if len(entries) > 0 || (err == nil) != there {
				t.Errorf("%s, there before: %v: %v, %v", was.name, there, entries, err)
			}
		}
	}
}

// TestFailedRestoreSparesALink: a link that leads nowhere is somebody's, and stays when nothing can be restored to it.
func TestFailedRestoreSparesALink(t *testing.T) {
	dir := t.TempDir()
	source, link := filepath.Join(dir, "db"), filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), link); err != nil {
		t.Skip(err)
	}
	db, err := pando.Open(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if code := run(t.Context(), []string{"restore", source, link}, strings.NewReader(""), io.Discard, io.Discard); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link: %v, %v", info, err)
	}
}

// TestTableOfOddNames: each row of a table is one line, whatever a name has in it.
func TestTableOfOddNames(t *testing.T) {
	out := &strings.Builder{}
	a := &app{out: bufio.NewWriter(out)}
	if err := errors.Join(a.table([][]string{{"NAME", "N"}, {"a\nb", "1"}, {"a\tb", "2"}, {"\x1b[2J", "3"}, {"a b", "4"}}), a.out.Flush()); err != nil {
		t.Fatal(err)
	}
	const want = `NAME       N
"a\nb"     1
"a\tb"     2
"\x1b[2J"  3
a b        4
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestReportThatIsTruncated: who reads a check is told that there is more than is listed.
func TestReportThatIsTruncated(t *testing.T) {
	out := &strings.Builder{}
	a := &app{out: bufio.NewWriter(out)}
	r := &pando.Report{Damage: []pando.Damage{{Err: pando.ErrCorrupt}}, Truncated: true}
	if err := a.printReport(r); err == nil {
		t.Error("no damage")
	}
	if err := a.out.Flush(); err != nil || !strings.Contains(out.String(), "\nand more: only the first 10,000 damages are listed\nchecked ") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// TestOutputsAtOnce: of two commands that write to one file the last one has it, whole.
func TestOutputsAtOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out")
	first, err := (&app{}).createOutput(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	second, err := (&app{}).createOutput(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []struct {
		*output
		text string
	}{{first, strings.Repeat("1", 3*outputBuffer)}, {second, strings.Repeat("2", 2*outputBuffer)}} {
		if _, err := io.WriteString(o, o.text); err != nil {
			t.Fatal(err)
		}
		if err := o.finish(); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(name); err != nil || string(text) != o.text {
			t.Errorf("%d bytes, %v: want %d", len(text), err, len(o.text))
		}
	}
}

// TestOutputSparesItsNeighbours: what has the name that an unfinished file might have is not written to, nor is what it leads to.
func TestOutputSparesItsNeighbours(t *testing.T) {
	dir := t.TempDir()
	name, notes := filepath.Join(dir, "out"), filepath.Join(t.TempDir(), "notes")
	if err := os.WriteFile(notes, []byte("notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(notes, name+partial); err != nil {
		t.Skip(err)
	}
	o, err := (&app{}).createOutput(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(o, "new"); err != nil {
		t.Fatal(err)
	}
	if err := o.finish(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(notes); err != nil || string(text) != "notes" {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the file: %v, %v", info, err)
	}
}

// TestDiscardSparesOtherFiles: it takes no files away that somebody else has put into the directory before anything could be restored to it.
func TestDiscardSparesOtherFiles(t *testing.T) {
	for _, there := range []bool{false, true} {
		dir := t.TempDir()
		for _, name := range []string{"notes", engine.LockName} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := discard(dir, there); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "notes")); err != nil {
			t.Errorf("there before: %v: %v", there, err)
		}
	}
}
