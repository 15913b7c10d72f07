//go:build slow

package model

const usualShapes = 1000
