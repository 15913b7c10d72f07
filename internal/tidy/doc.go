// Package tidy holds no code: its tests read the sources and documents of the whole module and enforce the house rules that a
// compiler does not know. Each rule is one small test; run them with
//
//	go test ./internal/tidy
//
// The rules: packages import downwards only, by their names and without cgo; the operating system, the clock and the process are
// touched in one place each; no init functions and no state in package variables; no panics, no recovery from them and no
// printing; everything public is documented; files and functions stay short; decoders of bytes have fuzz targets; the
// documents name constants, tests, files and programs that exist.
//
// A rule is never weakened silently: what has to be excepted stands in an allow list beside the rule, with its reason, and an
// entry that nothing needs any more fails the test too.
//
// The tests only read. They parse every file of the module once and take about a second.
package tidy
