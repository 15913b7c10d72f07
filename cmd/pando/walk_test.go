package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pandodb/pando/examples/data"
)

var rewrite = flag.Bool("rewrite", false, "put what the commands print into docs/documents.md")

// walkText is where the commands are.
var walkText = filepath.FromSlash("../../docs/documents.md")

// What differs from run to run.
var (
	durations = regexp.MustCompile(`in [0-9.]+ s \([0-9,]+ documents/s\)|[0-9]+ ms`)
	madeIDs   = regexp.MustCompile(`"\$oid":"[0-9a-f]{24}"`)
)

// settle makes the output of two runs equal.
func settle(text string) string {
	text = durations.ReplaceAllStringFunc(text, func(s string) string {
		if strings.HasSuffix(s, "ms") {
			return "1 ms"
		}
		return "in 0.01 s (1 documents/s)"
	})
	return madeIDs.ReplaceAllString(text, `"$$oid":"0"`)
}

// TestWalkThrough runs the commands of docs/documents.md on the extract and compares what they print.
func TestWalkThrough(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, data.Files()); err != nil {
		t.Fatal(err)
	}
	walkThrough(t, dir, "console")
}

// walkThrough runs the console blocks in dir and compares the output of those of one kind.
func walkThrough(t *testing.T, dir, compared string) {
	raw, err := os.ReadFile(walkText)
	if err != nil {
		t.Fatal(err)
	}
	name, err := filepath.Abs(walkText)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	parts := strings.Split(string(raw), "```")
	for i := 1; i < len(parts); i += 2 {
		kind, body, _ := strings.Cut(parts[i], "\n")
		if kind != "console" && kind != compared {
			continue
		}
		got := runBlock(t, body)
		if kind != compared {
			continue
		}
		if diff := cmp.Diff(settle(body), settle(got)); diff != "" && !*rewrite {
			t.Errorf("docs/documents.md: %s", diff)
		} else if diff != "" {
			parts[i] = kind + "\n" + got
		}
	}
	if *rewrite {
		if err := os.WriteFile(name, []byte(strings.Join(parts, "```")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// runBlock runs the commands of a block, and returns it with what they print.
func runBlock(t *testing.T, body string) string {
	t.Helper()
	var block strings.Builder
	lines := strings.SplitAfter(body, "\n")
	for i := 0; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], "$ ") {
			continue
		}
		command := lines[i]
		for strings.Count(command, "'")%2 == 1 && i+1 < len(lines) {
			i++
			command += lines[i]
		}
		args := shellWords(command)
		if len(args) < 2 || args[0] != "$" || args[1] != "pando" {
			t.Fatalf("not a command of pando: %s", command)
		}
		var out, errOut bytes.Buffer
		if code := run(t.Context(), args[2:], strings.NewReader(""), &out, &errOut); code != exitDone {
			t.Errorf("%sexit code %d: %s", command, code, errOut.String())
		}
		block.WriteString(command)
		block.Write(out.Bytes())
	}
	return block.String()
}

// shellWords splits a command into words; single quotes keep what is between them together.
func shellWords(command string) (words []string) {
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}
