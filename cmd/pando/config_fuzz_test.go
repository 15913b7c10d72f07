package main

import (
	"testing"
)

// FuzzConfig reads hostile configuration files: they are configurations, or say what is wrong.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("dir = \"db\"\nauth = true\n"))
	f.Add([]byte("memory = -1"))
	f.Add([]byte("nothing = 1"))
	f.Add([]byte("a.b = 1\n[t]\nx = [1, {a = 2}]\n[[t]]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := newSettings()
		_ = applyConfig(s.flags(), text, "config") // whether there is an error is not the question
	})
}
