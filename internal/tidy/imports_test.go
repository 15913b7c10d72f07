package tidy

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// tiers is the order of the packages: each imports packages of lower tiers only. A new package is added here, as low as its
// job allows; a package that seems to need its own tier or a higher one is in the wrong place. "/..." takes in what lies under
// a directory. Tests may import what they like.
var tiers = [][]string{
	// What knows nothing of the engine: the door to the operating system, and single jobs.
	{"vfs", "internal/cgroup", "internal/clock", "internal/commit", "internal/corrupt", "internal/epoch", "internal/gap", "internal/pageformat", "internal/prefetch", "internal/progress", "internal/record", "internal/train"},
	{"vfs/...", "internal/columns", "internal/command", "internal/importer", "internal/offheap", "internal/parts"},
	// Files and memory: one kind each.
	{"internal/segment", "internal/wal", "internal/spill", "internal/memtable", "internal/page"},
	{"internal/cache", "internal/root", "internal/value"},
	// The settled form of a keyspace: the contract, then those who keep it.
	{"internal/layout"},
	{"internal/layout/..."},
	// What reads memtables and roots as one, and what puts everything together.
	{"internal/view", "internal/salvage"},
	{"internal/engine"},
	// The public package, and what is written against it.
	{"."},
	// Documents, on the public package only: single jobs, the languages, what runs them, and the collections.
	{"document/internal/mongoerror", "document/internal/notation", "document/internal/pcre"},
	{"document/internal/collation", "document/internal/number"},
	{"document/internal/order", "document/internal/path", "document/internal/geo"},
	{"document/internal/keyenc", "document/internal/codec", "document/internal/scratch"},
	{"document/internal/sortkey", "document/internal/expression"},
	{"document/internal/query"},
	{"document/internal/bucket", "document/internal/index", "document/internal/projection"},
	{"document/internal/plan", "document/internal/update"},
	{"document/internal/aggregate", "document/internal/execute"},
	{"document"},
	// What speaks to clients.
	{"server/wire"},
	{"server/mongo"},
	{"server"},
	{"examples/data"},
	{"cmd/...", "examples/...", "test/..."},
	{"internal/tidy"},
}

// tierOf returns the place of a package in tiers. An exact name counts more than a pattern.
func tierOf(dir string) (int, bool) {
	for i, tier := range tiers {
		if slices.Contains(tier, dir) {
			return i, true
		}
	}
	for i, tier := range tiers {
		for _, p := range tier {
			if top, ok := strings.CutSuffix(p, "/..."); ok && under(dir, top) {
				return i, true
			}
		}
	}
	return 0, false
}

func TestImportsPointDownwards(t *testing.T) {
	m := load(t)
	for dir := range m.packages() {
		if _, ok := tierOf(dir); !ok {
			t.Errorf("package %s has no tier: give it one in imports_test.go", dir)
		}
	}
	for _, s := range m.sources {
		from, ok := tierOf(s.dir)
		if !ok || s.isTest() {
			continue
		}
		for _, p := range s.imports() {
			dir, inside := insideModule(p)
			if to, ok := tierOf(dir); inside && ok && to >= from && !sameProgram(s.dir, dir) {
				t.Errorf("%s imports %s, which is not below it", s.name, dir)
			}
		}
	}
}

// sameProgram reports whether both directories belong to one program: what is under cmd/x is for cmd/x to order.
func sameProgram(a, b string) bool {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	return len(x) > 1 && len(y) > 1 && (x[0] == "cmd" || x[0] == "test") && x[0] == y[0] && x[1] == y[1]
}

// insideModule returns the directory of an import path of this module.
func insideModule(p string) (dir string, ok bool) {
	if p == modulePath {
		return ".", true
	}
	return strings.CutPrefix(p, modulePath+"/")
}

// TestImportsAreInSight: the rules go by the names of packages, which a dot hides; and there is no cgo.
func TestImportsAreInSight(t *testing.T) {
	m := load(t)
	for _, s := range m.sources {
		for _, spec := range s.file.Imports {
			switch {
			case spec.Name != nil && spec.Name.Name == ".":
				t.Errorf("%s imports %s with a dot", s.name, spec.Path.Value)
			case spec.Path.Value == `"C"`:
				t.Errorf("%s imports C: everything is built without cgo", s.name)
			}
		}
	}
}

// Package names that say nothing about what is inside.
var bannedNames = []string{
	"base", "common", "core", "helper", "helpers", "misc", "types", "util", "utils",
}

func TestNamesSayWhatIsInside(t *testing.T) {
	m := load(t)
	for _, s := range m.sources {
		stem := strings.TrimSuffix(path.Base(s.name), ".go")
		for _, name := range []string{s.file.Name.Name, path.Base(s.dir), stem} {
			if slices.Contains(bannedNames, name) {
				t.Errorf("%s: the name %q says nothing", s.name, name)
			}
		}
	}
}
