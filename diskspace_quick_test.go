//go:build !slow

package pando_test

const filledDisk = 6 << 20 // bytes of a disk that a database fills
