//go:build slow

package pando_test

const usualFillings = 3
