package pando

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A database stays in the directory that it was opened in, wherever the name of that leads while it is open.
func TestDatabaseKeepsToItsDirectory(t *testing.T) {
	for _, test := range []struct {
		name string
		move func(t *testing.T, root string) (where string)
	}{
		{"the working directory changes", func(t *testing.T, root string) string {
			t.Chdir(t.TempDir())
			return filepath.Join(root, "db")
		}},
		{"the working directory has such a database too", func(t *testing.T, root string) string {
			t.Chdir(t.TempDir())
			openOther(t, "db")
			return filepath.Join(root, "db")
		}},
		{"it is moved", func(t *testing.T, root string) string {
			must(t, os.Rename("db", "moved"))
			return filepath.Join(root, "moved")
		}},
		{"another takes its place", func(t *testing.T, root string) string {
			must(t, os.Rename("db", "moved"))
			openOther(t, "db")
			return filepath.Join(root, "moved")
		}},
		{"it is removed, and another takes its place", func(t *testing.T, _ string) string {
			must(t, os.RemoveAll("db"))
			openOther(t, "db")
			return ""
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && test.name != "the working directory changes" {
				t.Skip("a directory with open files stays where it is")
			}
			root := t.TempDir()
			t.Chdir(root)
			db, err := Open("db", &Options{MemoryBytes: 1 << 20, Profile: Relaxed})
			must(t, err)
			rewriteAll(t, db)
			where := test.move(t, root)
			if where == "" {
				for i := range 20_000 {
					if db.Put(fmt.Append(nil, i), make([]byte, 100)) != nil {
						break
					}
				}
				_ = db.Checkpoint(t.Context()) // what becomes of it is nobody's concern, but for the other one
				_ = db.Close()
				return
			}
			rewriteAll(t, db)
			must(t, db.Put([]byte("long"), incompressible(20<<10)))
			must(t, db.Checkpoint(t.Context()))
			must(t, db.Close())
			after := small(t, where, Options{MustExist: true})
			noDamage(t, after)
			if n, err := after.Count(nil, nil); err != nil || n != 1501 {
				t.Errorf("%d records, %v, want 1501", n, err)
			}
			must(t, after.Close())
		})
	}
}

// openOther makes another database, which is open until the test ends, and has to be whole then.
func openOther(t *testing.T, dir string) {
	t.Helper()
	whole, err := filepath.Abs(dir)
	must(t, err)
	db := small(t, whole, Options{})
	rewriteAll(t, db)
	t.Cleanup(func() {
		noDamage(t, db)
		must(t, db.Close())
		noDamage(t, small(t, whole, Options{}))
	})
}
