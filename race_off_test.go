//go:build !race

package pando

const raceEnabled = false
