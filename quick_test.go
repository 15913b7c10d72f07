//go:build !slow

package pando

// How much there is of what the tests do again and again, or in data of any size.
const (
	compactableRecords    = 8000 // in the tree of a compactable: enough for three rounds
	compactableTables     = 8    // memtables that are filled while one is compacted
	compactImages         = 3
	dictionaryCompactions = 4
	dictionaryRecords     = 15_000
	disturbances          = 6
	endedPuts             = 1200 // beside contexts that have ended
	gapSeeds              = 4
)

// roundsCodecs is what TestCompactInRoundsIsAsSmallAsInOne compacts with: the codec with most to it.
var roundsCodecs = []Compression{Zstd}
