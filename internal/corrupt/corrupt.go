// Package corrupt defines the one error with which every layer reports bytes that are not what was written.
//
// It promises that errors.Is finds Err, and errors.As the place, through whatever layers wrap it. It repairs nothing, and is
// not for devices that fail: those have errors of their own.
package corrupt

import (
	"errors"
	"fmt"
)

// Err is what errors.Is finds in every error of this package.
var Err = errors.New("data is corrupt")

// Error says where damaged bytes lie. A zero Length means that the extent of the damage is not known.
type Error struct {
	File   string // name of the file, relative to the database directory where it lies inside it
	Offset int64  // first byte of what could not be believed
	Length int64
	Reason string // what was expected and what was found
}

// New returns an *Error; the reason is formatted as by fmt.Sprintf.
func New(file string, offset, length int64, reason string, args ...any) *Error {
	return &Error{File: file, Offset: offset, Length: length, Reason: fmt.Sprintf(reason, args...)}
}

// Error tells where the damage is, and what is wrong there.
func (e *Error) Error() string {
	extent := ""
	if e.Length > 0 {
		extent = fmt.Sprintf(" (%d bytes)", e.Length)
	}
	return fmt.Sprintf("%s: damaged at offset %d%s: %s", e.File, e.Offset, extent, e.Reason)
}

// Is makes errors.Is(err, Err) true.
func (e *Error) Is(target error) bool { return target == Err }

// Twice reads once more what seems to be damaged, before somebody gives it up, or goes on without what lies behind it: what failed once may be
// a fault of the way from the disk.
func Twice(read func() error) error {
	err := read()
	if errors.Is(err, Err) {
		err = read()
	}
	return err
}
