//go:build !lmdb

package engines

import "github.com/pandodb/pando/bench/engine"

func lmdbDrivers() []engine.Driver { return nil }
