// Package godriver runs the Go driver against the program pando serve, as it is built from this checkout. It is a module of its
// own because the library must not depend on what the driver needs; it imports nothing of the library either, since it only knows
// the server from outside.
package godriver
