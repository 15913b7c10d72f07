package engines

import "os"

// renameOver replaces a file by another one.
func renameOver(from, to string) error { return os.Rename(from, to) }
