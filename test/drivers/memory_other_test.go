//go:build !linux

package drivers

import "testing"

// scratch returns an empty directory that goes away with the test.
func scratch(t *testing.T) string {
	t.Helper()
	return t.TempDir()
}
