package tree

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
)

func config() layouttest.Config {
	return layouttest.Config{New: func() layout.Layout { return New() }, Ordered: true, Thorough: thorough}
}

func TestLayout(t *testing.T) { layouttest.Run(t, config()) }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
