//go:build slow

package server

// idleConnections is how many connections TestIdleConnections opens.
const idleConnections = 10_000
