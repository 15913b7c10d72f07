package hash

import (
	"testing"

	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/layouttest"
)

func config() layouttest.Config {
	return layouttest.Config{New: func() layout.Layout { return New() }, Thorough: thorough}
}

// Everything that every layout promises.
func TestLayout(t *testing.T) { layouttest.Run(t, config()) }

// The same with pages so small that there are many of them, which are split and joined all the time.
func TestLayoutOfManyPages(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	c := config()
	c.New = func() layout.Layout { return &Hash{most: 4, least: 2} }
	layouttest.Run(t, c)
}
