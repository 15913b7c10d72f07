//go:build !linux

package confine

import (
	"errors"
	"os/exec"
)

// Group limits nothing: this system has no control groups.
type Group struct{}

var errNoGroups = errors.New("this system has no control groups")

// New fails.
func New() (*Group, error) { return nil, errNoGroups }

// Confine fails.
func (*Group) Confine(*exec.Cmd, int64) error { return errNoGroups }

// Killed reports nothing.
func (*Group) Killed() bool { return false }

// Close does nothing.
func (*Group) Close() error { return nil }
