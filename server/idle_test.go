//go:build !slow

package server

// idleConnections is how many connections TestIdleConnections opens: a tenth of what it does with the build tag slow.
const idleConnections = 1000
