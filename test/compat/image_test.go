package compat

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

const rowBytes = 32

// dump writes all files below dir as text.
func dump(t *testing.T, fsys vfs.FS, dir string) string {
	var out strings.Builder
	names, err := fsys.List(dir)
	must(t, err)
	for _, n := range names {
		name := path.Join(dir, n)
		info, err := fsys.Stat(name)
		must(t, err)
		if info.Dir {
			out.WriteString(dump(t, fsys, name))
			continue
		}
		b, err := vfs.ReadFile(fsys, name, 1<<30)
		must(t, err)
		fmt.Fprintf(&out, "file %s %d\n", name, len(b))
		for at := 0; at < len(b); at += rowBytes {
			row := b[at:min(at+rowBytes, len(b))]
			if strings.Trim(string(row), "\x00") != "" {
				fmt.Fprintf(&out, "%06x %x\n", at, row)
			}
		}
	}
	return out.String()
}

// restore makes the files of a dump.
func restore(t *testing.T, text string) *memfs.FS {
	fsys := memfs.New()
	var f vfs.File
	finish := func() {
		if f != nil {
			must(t, f.Sync())
			must(t, f.Close())
		}
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		var name string
		var n int64
		if _, err := fmt.Sscanf(lines.Text(), "file %s %d", &name, &n); err == nil {
			finish()
			must(t, vfs.MkdirAllSync(fsys, path.Dir(name)))
			f, err = fsys.Create(name)
			must(t, err)
			must(t, f.Truncate(n))
			continue
		}
		var row string
		_, err := fmt.Sscanf(lines.Text(), "%x %s", &n, &row)
		must(t, err)
		b, err := hex.DecodeString(row)
		must(t, err)
		_, err = f.WriteAt(b, n)
		must(t, err)
	}
	must(t, lines.Err())
	finish()
	return fsys
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
