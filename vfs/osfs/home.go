package osfs

import (
	"os"
	"path/filepath"
	"strings"
)

// home is a directory that a file system keeps to: names in it are looked up from where it is, not from where its name leads.
type home struct {
	name, prefix string // as it was given, but clean; and what names in it begin with
	place
}

// newHome returns the home of a name, which is to be found yet.
func newHome(dir string) *home {
	h := &home{name: filepath.Clean(dir)}
	if h.prefix = h.name; !os.IsPathSeparator(h.name[len(h.name)-1]) {
		h.prefix += string(filepath.Separator)
	}
	return h
}

// within returns what is left of a name in the directory. Without a home, and for names elsewhere, ok is false.
func (h *home) within(name string) (rest string, ok bool) {
	if h == nil {
		return "", false
	}
	name = filepath.Clean(name)
	switch h.name {
	case name:
		return ".", true
	case ".":
		return name, filepath.IsLocal(name)
	}
	return strings.CutPrefix(name, h.prefix)
}
