//go:build !slow

package model

const (
	usualShapes   = 13
	usualPrograms = 7
	usualWalks    = 3
)
