package corrupt

import (
	"errors"
	"fmt"
	"testing"
)

func TestErrorTellsWhatIsKnown(t *testing.T) {
	for want, err := range map[string]*Error{
		"a.seg: damaged at offset 7 (3 bytes): 1, want 2": New("a.seg", 7, 3, "%d, want %d", 1, 2),
		"ROOT: damaged at offset 0: the file is missing":  New("ROOT", 0, 0, "the file is missing"),
	} {
		if got := err.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if !errors.Is(fmt.Errorf("open: %w", err), Err) {
			t.Errorf("%q is not found as corrupt.Err", want)
		}
	}
}
