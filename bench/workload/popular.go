package workload

import "math/rand/v2"

// Popular draws count of n records with YCSB's Zipfian distribution, the popular ones scattered over all. The same seed draws the
// same records.
func Popular(n, count int, seed uint64) []uint32 {
	return newZipf(n).draw(rand.New(rand.NewPCG(seed, golden)), count)
}

// Ranks draws as Popular does, but the most popular is 0, the next 1: how far back the reads of the latest records go.
func Ranks(n, count int, seed uint64) []uint32 {
	z, r := newZipf(n), rand.New(rand.NewPCG(seed, golden))
	list := make([]uint32, count)
	for i := range list {
		list[i] = uint32(z.rank(r))
	}
	return list
}
