package document

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/pandodb/pando"
)

// A record of a session that nobody but a forger makes, with a run of statements up to the last number that there is, was gone over for ever.
func TestARunOfStatementsEnds(t *testing.T) {
	for _, last := range []int64{math.MaxInt64, math.MaxInt32 + 1} {
		for _, first := range []int64{math.MinInt64, 0, math.MaxInt64 - 1} {
			for _, n := range []int{0, 1, 3} {
				entry := binary.AppendVarint(binary.AppendVarint([]byte{entryInserts}, first), last)
				if list, err := newestStatements(entry, n); !errors.Is(err, pando.ErrCorrupt) || len(list) > 0 {
					t.Errorf("%d of %d to %d: %v, %v", n, first, last, list, err)
				}
			}
		}
	}
	entry := appendRun(nil, math.MaxInt32-5, math.MaxInt32)
	if list, err := newestStatements(entry, 3); len(list) != 3 || list[2] != math.MaxInt32 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}
