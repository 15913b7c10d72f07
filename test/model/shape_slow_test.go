//go:build slow

package model

const usualShapes = 2000
