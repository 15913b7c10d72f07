//go:build !slow

package server

// idleConnections is how many connections TestIdleConnections opens, fewer than with the build tag slow.
const idleConnections = 300
