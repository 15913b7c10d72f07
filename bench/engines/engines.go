// Package engines holds one adapter per engine, each in a file of its own that says which options it sets and why.
package engines

import (
	"runtime/debug"
	"slices"

	"github.com/pandodb/pando/bench/engine"
)

// All returns every engine of this build, Pando first. Engines in C are there when their build tags are set: cgo_rivals
// (SQLite in C), lmdb and rocksdb (Debian's libraries).
func All() []engine.Driver {
	list := []engine.Driver{pandoDriver(), pandoHashDriver(), pebbleDriver(), bboltDriver(), badgerDriver(), goleveldbDriver(), nutsdbDriver(), sqliteDriver(), sqliteJSONDriver()}
	list = slices.Concat(list, sqliteCDrivers(), lmdbDrivers(), rocksdbDrivers(), []engine.Driver{rawDriver()})
	versions := moduleVersions()
	for i := range list {
		if v := versions[list[i].Module]; v != "" {
			list[i].Version = v
		}
	}
	return list
}

// Find returns the engine of that name.
func Find(name string) (engine.Driver, bool) {
	for _, d := range All() {
		if d.Name == name {
			return d, true
		}
	}
	return engine.Driver{}, false
}

// moduleVersions maps the modules in this binary to their versions.
func moduleVersions() map[string]string {
	m := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return m
	}
	for _, dep := range info.Deps {
		if dep.Replace == nil {
			m[dep.Path] = dep.Version
		}
	}
	return m
}
