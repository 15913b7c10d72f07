package osfs

import (
	"os"
	"path/filepath"

	"github.com/pandodb/pando/vfs"
)

// place is a whole path: a directory with open files cannot be moved, but the working directory may change.
type place struct{ path string }

// HoldDir implements vfs.DirHolder.
func (s system) HoldDir(dir string) (vfs.HeldFS, error) {
	path, err := filepath.Abs(s.whole(dir))
	if err != nil {
		return nil, pathError("open", dir, err)
	}
	h := newHome(dir)
	h.path = path
	return system{h}, nil
}

// Close implements vfs.HeldFS.
func (s system) Close() error { return nil }

// whole returns the path of a name.
func (s system) whole(name string) string {
	if rest, ok := s.home.within(name); ok {
		return filepath.Join(s.home.path, rest)
	}
	return name
}

func (s system) openFile(name string, flag int) (*os.File, error) {
	return os.OpenFile(s.whole(name), flag, fileMode)
}

func (s system) remove(name string) error { return os.Remove(s.whole(name)) }

func (s system) rename(oldName, newName string) error {
	return os.Rename(s.whole(oldName), s.whole(newName))
}

func (s system) link(oldName, newName string) error {
	return os.Link(s.whole(oldName), s.whole(newName))
}

func (s system) mkdirAll(dir string) error { return os.MkdirAll(s.whole(dir), dirMode) }

func (s system) stat(name string) (vfs.Info, error) {
	info, err := os.Stat(s.whole(name))
	if err != nil {
		return vfs.Info{}, err
	}
	return vfs.Info{Size: info.Size(), Dir: info.IsDir()}, nil
}
