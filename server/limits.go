package server

import "github.com/pandodb/pando/vfs"

const (
	// filesShare is the part of the files that the process may have open which connections may take. The store takes up to half of them for its
	// segments, and has to find one for its log whoever connects.
	filesShare       = 3 // in eighths
	leastConnections = 8
)

// connections is how many connections a server takes that is to take so many, as far as there are files for them.
func connections(wanted int, fsys vfs.FS) int {
	limited, ok := fsys.(vfs.HandleLimiter)
	if !ok {
		return wanted
	}
	files := limited.MostHandles()
	if files <= 0 {
		return wanted
	}
	return min(wanted, max(files/8*filesShare, leastConnections))
}
