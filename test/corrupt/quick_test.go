//go:build !slow

package corrupt

const (
	defaultStride = 1700
	usualBeside   = 6 // seeds of writes beside damage
)
