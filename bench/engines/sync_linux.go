package engines

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes what was written durable.
func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
