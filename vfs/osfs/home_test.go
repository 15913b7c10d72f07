package osfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/osfs"
	"github.com/pandodb/pando/vfs/vfstest"
)

// hold keeps to a directory until the test ends.
func hold(t *testing.T, dir string) vfs.HeldFS {
	t.Helper()
	held, err := osfs.New().(vfs.DirHolder).HoldDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	return held
}

// A directory that is held is as good as any, however it was named, and although the working directory is another one by now.
func TestConformanceOfAHeldDirectory(t *testing.T) {
	for name, held := range map[string]func(root string) string{
		"whole":    func(root string) string { return filepath.Join(root, "d") },
		"relative": func(string) string { return "d" },
		"unclean":  func(string) string { return "./x/../d/" },
		"here":     func(root string) string { t.Chdir(filepath.Join(root, "d")); return "." },
	} {
		t.Run(name, func(t *testing.T) {
			vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
				root := t.TempDir()
				for _, dir := range []string{"d", "x"} {
					if err := os.Mkdir(filepath.Join(root, dir), 0o750); err != nil {
						t.Fatal(err)
					}
				}
				t.Chdir(root)
				dir := held(root)
				fsys := hold(t, dir)
				t.Chdir(t.TempDir())
				return fsys, dir
			})
		})
	}
}

// Names in a held directory lead into it wherever it is, other names to where they always did, and nowhere when it is given up.
func TestHeldDirectoryThatIsReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a directory with open files stays where it is")
	}
	root := t.TempDir()
	t.Chdir(root)
	system := osfs.New()
	write := func(fsys vfs.FS, name, text string) {
		t.Helper()
		if err := vfs.WriteFile(fsys, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(name, want string) {
		t.Helper()
		if got, err := vfs.ReadFile(system, name, 100); string(got) != want {
			t.Errorf("%s holds %q, %v, want %q", name, got, err, want)
		}
	}
	for _, dir := range []string{"d", "elsewhere"} {
		if err := system.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	held := hold(t, "d")
	write(held, "d/first", "1")
	if err := errors.Join(system.Rename("d", "moved"), system.MkdirAll("d")); err != nil {
		t.Fatal(err)
	}
	write(system, "d/first", "another")
	write(held, "d/second", "2")
	write(held, "elsewhere/third", "3")
	if err := errors.Join(held.MkdirAll("d/below/it"), held.Link("d/second", "elsewhere/fourth"), held.Rename("d/second", "d/below/it/fifth")); err != nil {
		t.Fatal(err)
	}
	holds("d/first", "another")
	holds("moved/first", "1")
	holds("elsewhere/third", "3")
	holds("elsewhere/fourth", "2")
	holds("moved/below/it/fifth", "2")
	if err := held.Remove("d/first"); err != nil {
		t.Fatal(err)
	}
	holds("d/first", "another")
	if _, err := system.Stat("moved/first"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file in the held directory is there: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := held.Open("d/below/it/fifth"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a name in a directory that was given up: %v", err)
	}
}
