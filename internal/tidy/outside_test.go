package tidy

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rule forbids names of other packages in every file outside of some places.
type rule struct {
	name   string
	home   []string            // directories in which everything is allowed
	banned map[string][]string // import path to names; "*" is all of them
	allow  allowList           // "directory path.Name"
	remedy string
}

// rules are the doors to the world outside: each is in one place, so that tests can stand in its way.
var rules = []rule{
	{
		name: "operating system",
		home: []string{"vfs/osfs"},
		banned: map[string][]string{
			"os": {"*"}, "os/exec": {"*"}, "os/signal": {"*"}, "os/user": {"*"}, "io/ioutil": {"*"}, "syscall": {"*"},
			"golang.org/x/sys/unix": {"*"}, "golang.org/x/sys/windows": {"*"},
			"path/filepath": {"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"}, // these look at files
		},
		allow: allowList{
			"internal/offheap os.Getpagesize":           "memory is mapped in whole pages",
			"internal/offheap golang.org/x/sys/unix":    "memory outside of the heap comes from the system",
			"internal/offheap golang.org/x/sys/windows": "memory outside of the heap comes from the system",
			"server syscall.ECONNREFUSED":               "of the errors of connecting to a socket only this one tells that nobody listens",
		},
		remedy: "files are reached through package vfs",
	},
	{
		name: "clock",
		home: []string{"internal/clock"},
		banned: map[string][]string{
			"time":    {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
			"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
		},
		remedy: "time comes from package clock",
	},
	{
		name: "process",
		banned: map[string][]string{
			"os": {"Exit"}, "log": {"*"}, "runtime": {"Goexit", "GC"},
			"runtime/debug": {"SetGCPercent", "SetMemoryLimit", "SetMaxThreads", "SetMaxStack", "FreeOSMemory"},
			"fmt":           {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
			"log/slog":      {"Default", "SetDefault", "Debug", "Info", "Warn", "Error"},
			"plugin":        {"*"}, "net/http/pprof": {"*"}, "expvar": {"*"},
		},
		remedy: "a library returns errors, and leaves the process and its output alone",
	},
}

func TestTheWorldOutsideHasDoors(t *testing.T) {
	m := load(t)
	for _, r := range rules {
		t.Run(strings.ReplaceAll(r.name, " ", "_"), func(t *testing.T) {
			used := map[string]bool{}
			for _, s := range m.sources {
				if s.isSupport() || s.isCommand() || slices.Contains(r.home, s.dir) {
					continue
				}
				r.check(t, m, s, used)
			}
			r.allow.unused(t, used)
		})
	}
}

// check looks for uses of the banned names in a file.
func (r *rule) check(t *testing.T, m *module, s *source, used map[string]bool) {
	local := map[string]string{} // the name of an import in this file, to its path
	for _, spec := range s.file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil || r.banned[p] == nil {
			continue
		}
		local[path.Base(p)] = p
		if spec.Name != nil {
			local[spec.Name.Name] = p
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok || local[x.Name] == "" {
			return true
		}
		p := local[x.Name]
		if !slices.Contains(r.banned[p], "*") && !slices.Contains(r.banned[p], sel.Sel.Name) {
			return true
		}
		for _, key := range []string{s.dir + " " + p, s.dir + " " + p + "." + sel.Sel.Name} {
			if r.allow[key] != "" {
				used[key] = true
				return true
			}
		}
		t.Errorf("%s:%d uses %s.%s: %s", s.name, m.line(n.Pos()), p, sel.Sel.Name, r.remedy)
		return true
	})
}

// panics are the places that may panic: on the caller's programming errors, never on input or I/O.
var panics = allowList{
	"internal/memtable.reserve": "the caller has to ask Fits first: going on would write beyond the arena",
	"internal/page.entry":       "an index out of range, as with a slice",
	"vfs.Fault":                 "passes on a panic that is not a memory fault of this mapping",
}

func TestNoPanics(t *testing.T) {
	m := load(t)
	used := map[string]bool{}
	for _, s := range m.sources {
		if s.isSupport() || s.isCommand() {
			continue
		}
		for _, d := range s.file.Decls {
			name := s.dir
			if f, ok := d.(*ast.FuncDecl); ok {
				name += "." + f.Name.Name
			}
			ast.Inspect(d, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch f, _ := call.Fun.(*ast.Ident); {
				case f == nil:
				case f.Name == "panic" && panics[name] != "":
					used[name] = true
				case f.Name == "panic" || f.Name == "print" || f.Name == "println":
					t.Errorf("%s:%d: %s in %s: errors are returned", s.name, m.line(n.Pos()), f.Name, name)
				}
				return true
			})
		}
	}
	panics.unused(t, used)
}

// TestOnlyFaultsAreRecoveredFrom: a panic is a bug, and is not hidden. A fault of mapped memory is no bug, and comes as a panic;
// vfs.Fault passes on any other.
func TestOnlyFaultsAreRecoveredFrom(t *testing.T) {
	m := load(t)
	for _, s := range m.sources {
		if s.isSupport() || s.isCommand() {
			continue
		}
		for _, d := range s.file.Decls {
			var recovers, passes bool
			ast.Inspect(d, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					switch f := call.Fun.(type) {
					case *ast.Ident:
						recovers = recovers || f.Name == "recover"
					case *ast.SelectorExpr:
						x, ok := f.X.(*ast.Ident)
						passes = passes || ok && x.Name == "vfs" && f.Sel.Name == "Fault"
					}
				}
				return true
			})
			if recovers && !passes {
				t.Errorf("%s:%d recovers from panics that are not vfs.Fault's", s.name, m.line(d.Pos()))
			}
		}
	}
}
