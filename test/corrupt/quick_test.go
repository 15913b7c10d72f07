//go:build !slow

package corrupt

const (
	defaultStride = 1600
	usualBeside   = 3 // seeds of writes beside damage
	failureStep   = 8 // behind the n-th call the next one that fails is n/8 further
)
