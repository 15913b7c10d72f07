//go:build slow

package pando_test

const filledDisk = 12 << 20 // bytes of a disk that a database fills
