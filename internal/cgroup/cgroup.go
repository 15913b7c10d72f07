// Package cgroup tells which control groups of Linux a process is in, as cgroups(7) describes them: those of version 2 form
// one hierarchy, those of version 1 a hierarchy for each controller, and a system may have both.
//
// It only reads text, and leaves it to its callers where the hierarchies are mounted. It never fails: a line that makes no
// sense is passed over.
package cgroup

import (
	"slices"
	"strings"
)

// Groups are the control groups of a process that may limit its memory, as paths that begin at the root of their hierarchy.
// A path is empty where the process is in no such group.
type Groups struct {
	Unified string // of version 2
	Memory  string // of version 1: of the memory controller
}

// Parse reads the groups of a process out of what /proc/PID/cgroup says: "number:controllers:path" lines, with the number 0
// and no controllers for version 2.
func Parse(text string) (g Groups) {
	for line := range strings.Lines(text) {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case number == "0" && controllers == "":
			g.Unified = path
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			g.Memory = path
		}
	}
	return g
}
