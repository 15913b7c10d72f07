//go:build !rocksdb

package engines

import "github.com/pandodb/pando/bench/engine"

func rocksdbDrivers() []engine.Driver { return nil }
