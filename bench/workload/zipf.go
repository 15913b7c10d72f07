package workload

import (
	"math"
	"math/rand/v2"
)

// zipf draws from the Zipfian distribution that YCSB uses (Gray et al., Quickly Generating Billion-Record Synthetic
// Databases, SIGMOD 1994), with its constant 0.99, and scatters the popular records over the key space.
type zipf struct {
	n                        uint64
	theta, alpha, zetaN, eta float64
}

const zipfTheta = 0.99

func newZipf(n int) *zipf {
	z := &zipf{n: uint64(n), theta: zipfTheta, alpha: 1 / (1 - zipfTheta)}
	for i := 1; i <= n; i++ {
		z.zetaN += 1 / math.Pow(float64(i), z.theta)
	}
	zeta2 := 1 + math.Pow(0.5, z.theta)
	z.eta = (1 - math.Pow(2/float64(n), 1-z.theta)) / (1 - zeta2/z.zetaN)
	return z
}

// rank draws a rank, 0 the most popular.
func (z *zipf) rank(r *rand.Rand) uint64 {
	u := r.Float64()
	uz := u * z.zetaN
	switch {
	case uz < 1:
		return 0
	case uz < 1+math.Pow(0.5, z.theta):
		return 1
	}
	return min(uint64(float64(z.n)*math.Pow(z.eta*u-z.eta+1, z.alpha)), z.n-1)
}

// draw makes a sequence of records, so that drawing costs nothing while an engine is measured.
func (z *zipf) draw(r *rand.Rand, count int) []uint32 {
	list := make([]uint32, count)
	for i := range list {
		list[i] = uint32(mix(z.rank(r)+1) % z.n)
	}
	return list
}
