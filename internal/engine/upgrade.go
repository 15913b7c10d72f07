package engine

import (
	"errors"
	"fmt"

	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/vfs"
)

// upgrade is one step in the history of the format.
type upgrade struct {
	from uint32
	// run brings the database in dir from format from to the next one. Its last act puts a root file of the new format in
	// the place of the old one (vfs.WriteFile); until then a crash leaves a database of the old format, and the step is run
	// again.
	run func(fsys vfs.FS, dir string) error
}

// upgrades are the steps from the first format to that of this code, in order. A released step never changes. A new format is
// a higher root.Version, a step here, and a golden database in test/compat; formats without a step to the next one cannot be
// opened any more.
func upgrades() []upgrade { return nil }

// upgradeFrom brings a database of an older format to that of this code. cause is what opening it said; it is returned where
// there is no way.
func upgradeFrom(fsys vfs.FS, dir string, cause error, steps []upgrade, readOnly bool) error {
	var version *root.VersionError
	if !errors.As(cause, &version) || version.Found >= version.Supported {
		return cause
	}
	format := version.Found
	var way []upgrade
	for _, s := range steps {
		if s.from == format {
			way = append(way, s)
			format++
		}
	}
	switch {
	case format != version.Supported:
		return fmt.Errorf("format %d is too old to be brought to format %d by this version of Pando: %w", version.Found, version.Supported, cause)
	case readOnly:
		return fmt.Errorf("format %d has to be brought to format %d first: open it once for writing: %w", version.Found, version.Supported, cause)
	}
	for _, s := range way {
		if err := s.run(fsys, dir); err != nil {
			return fmt.Errorf("bring the database from format %d to format %d: %w", s.from, s.from+1, err)
		}
	}
	return nil
}
