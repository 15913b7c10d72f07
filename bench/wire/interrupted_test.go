package wire

import (
	"context"
	"errors"
	"testing"
)

// TestInterruptedRoundsAreLeftOut: what a server has by an interruption is no whole round, and no failure of it.
func TestInterruptedRoundsAreLeftOut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := Options{Sizes: Quick(), Rounds: 2, Servers: []string{pandoName}, Pando: "/nothing/there", Dir: t.TempDir(),
		Progress: func(string, ...any) { cancel() }, Save: func(r *Result) error { t.Errorf("%d cells are kept", len(r.Cells)); return nil }}
	r, err := Run(ctx, o)
	if !errors.Is(err, context.Canceled) || r == nil || len(r.Cells) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
