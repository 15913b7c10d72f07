//go:build slow

package pando

// How much there is of what the tests do again and again, or in data of any size.
const (
	compactableRecords    = 12_000 // in the tree of a compactable
	compactableTables     = 1000   // memtables that are filled while one is compacted, which are fewer
	compactImages         = 5
	dictionaryCompactions = 6
	dictionaryRecords     = 30_000
	disturbances          = 20
	endedPuts             = 4000 // beside contexts that have ended
	gapSeeds              = 8
)

// roundsCodecs are all of them here.
var roundsCodecs = []Compression{None, S2, Zstd}
