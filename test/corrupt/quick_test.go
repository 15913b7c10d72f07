//go:build !slow

package corrupt

const defaultStride = 1000
