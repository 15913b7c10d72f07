package root

import "errors"

// ErrVersion is what errors.Is finds in a *VersionError.
var ErrVersion = errors.New("format of a newer version")

// Is makes errors.Is(err, ErrVersion) true.
func (e *VersionError) Is(target error) bool { return target == ErrVersion }
