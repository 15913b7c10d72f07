package server

import "github.com/pandodb/pando/vfs"

const (
	// storeFiles is the most that a store has open of its segments; where there are few files in all it has half of them.
	storeFiles = 4096
	// otherShare is the part of all files that is left for the rest: the log, what queries spill, backups.
	otherShare       = 8
	leastConnections = 8
)

// connections is how many connections a server takes that is to take so many, as far as the process may have files open for them: whoever
// connects, the store has to find one for its log.
func connections(wanted int, fsys vfs.FS) int {
	files := vfs.MostHandles(fsys)
	if files <= 0 {
		return wanted
	}
	return min(wanted, max(files-min(files/2, storeFiles)-files/otherShare, leastConnections))
}
