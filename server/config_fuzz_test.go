package server

import (
	"errors"
	"testing"
)

// FuzzParseConfig reads hostile configuration files: they are configurations, or say what is wrong.
func FuzzParseConfig(f *testing.F) {
	f.Add([]byte("dir = \"db\"\nauth = true\n"))
	f.Add([]byte("memory = -1"))
	f.Add([]byte("nothing = 1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c Config
		if err := c.ParseConfig(text); err != nil && !errors.Is(err, ErrConfig) {
			t.Fatal(err)
		}
	})
}
