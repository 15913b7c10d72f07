//go:build slow

package model

const (
	usualShapes   = 1000
	usualPrograms = 12
	usualWalks    = 5
)
