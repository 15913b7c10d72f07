package osfs

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/pandodb/pando/vfs"
)

// held is a lock: the lock file and, where directories can be locked, its directory, so that removing the lock file lets
// nobody in.
type held struct {
	file, dir *os.File
	exclusive bool
	orderly   bool // the holder before was
	leave     bool // in order
}

// signature is how many bytes a process number is filled up to: those of the word that takes its place. So one takes the place of the other
// in one write, where cutting the file before would take a file system a hundred times as long.
const signature = len(vfs.InOrder)

// sign writes our process number into the file, or wipes that of a process which was killed; a reader lets the word stand that the
// last holder left in order. The number is for people: a device without a free byte must not keep a database from being opened, so
// failures do not count.
func (l *held) sign() {
	var text [signature + 1]byte
	n, _ := l.file.ReadAt(text[:], 0) // what cannot be read is no word
	l.orderly = string(text[:n]) == vfs.InOrder
	if l.orderly && !l.exclusive {
		return
	}
	if (!l.exclusive || n > signature) && l.file.Truncate(0) != nil {
		return
	}
	if l.exclusive {
		if _, err := l.file.WriteAt(fmt.Appendf(nil, "%-*d\n", signature-1, os.Getpid()), 0); err != nil {
			_ = l.file.Truncate(0) // the word must not stand while we hold the lock
		}
	}
}

// Orderly implements vfs.OrderedLock.
func (l *held) Orderly() bool { return l.orderly && l.exclusive }

// LeaveInOrder implements vfs.OrderedLock.
func (l *held) LeaveInOrder() { l.leave = l.exclusive }

// Close unlocks.
func (l *held) Close() error {
	switch {
	case !l.exclusive:
	case !l.leave:
		_ = l.file.Truncate(0) // see sign; fails when closed already, as release does then
	default:
		if _, err := l.file.WriteAt([]byte(vfs.InOrder), 0); err != nil {
			_ = l.file.Truncate(0)
		}
	}
	return l.release()
}

// release unlocks, and closes the descriptors. Closing alone would do, were it not for a process that is being started just now: it has copies
// of all descriptors until it runs its program, and with them the locks.
func (l *held) release() error {
	unlock(l.file)
	err := l.file.Close()
	if l.dir != nil {
		unlock(l.dir)
		err = both(err, l.dir.Close())
	}
	return err
}

// lockedBy says who holds the lock of a file.
func lockedBy(name string, f *os.File) error {
	pid := readPID(f)
	return &vfs.LockedError{Name: name, PID: pid, Own: pid == os.Getpid()}
}

// readPID is 0 when the file holds no number: the holder may not have come to writing it.
func readPID(f *os.File) int {
	var text [20]byte
	n, err := f.ReadAt(text[:], 0)
	if err != nil && err != io.EOF {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
