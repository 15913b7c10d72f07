//go:build !cgo_rivals

package engines

import "github.com/pandodb/pando/bench/engine"

func sqliteCDrivers() []engine.Driver { return nil }
