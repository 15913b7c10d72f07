//go:build !slow

package corrupt

const (
	defaultStride = 1000
	usualBeside   = 6 // seeds of writes beside damage
)
