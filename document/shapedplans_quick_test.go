//go:build !slow

package document_test

const shapedSeeds = 3
