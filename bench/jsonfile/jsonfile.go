// Package jsonfile keeps the numbers of a benchmark in files of JSON. A file that cannot be written or read, or holds something else, is
// an error that names it.
package jsonfile

import (
	"encoding/json"
	"fmt"
	"os"
)

// Save puts v into a file, in place of what it held, at once.
func Save(name string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	// Beside it and then over it: whoever is interrupted while writing leaves the earlier numbers as they were.
	if err := os.WriteFile(name+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// Load is the inverse of Save.
func Load[T any](name string) (v T, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}
