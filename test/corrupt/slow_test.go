//go:build slow

package corrupt

const (
	defaultStride = 150
	usualBeside   = 40
	failureStep   = 20
)
