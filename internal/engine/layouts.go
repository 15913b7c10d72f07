package engine

import (
	"fmt"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/layout/hash"
	"github.com/pandodb/pando/internal/layout/tree"
	"github.com/pandodb/pando/internal/segment"
)

// layouts is what makes the settled form of keyspaces, by the number of their layout; nil where this version cannot make it. What is known
// of a keyspace, in the catalogue or in the log, is refused before it gets to one that is nil.
type layouts [Hash + 1]layout.Layout

func newLayouts() layouts { return layouts{Tree: tree.New(), Hash: hash.New()} }

// makes reports whether this version can make keyspaces of a layout.
func (l *layouts) makes(n Layout) bool { return int(n) < len(l) && l[n] != nil }

// checkCreation refuses a keyspace that the log creates and that a newer version has made.
func (e *Engine) checkCreation(c *command.Command) error {
	o, _, err := decodeOptions(c.Value)
	if err == nil && !e.layouts.makes(o.Layout) {
		return fmt.Errorf("keyspace %q: %v: %w", c.Key, o.Layout, ErrLayout)
	}
	return nil
}

// abort removes the segments of a writer, and from memory what layouts have made with it.
func (e *Engine) abort(w *segment.Writer) error {
	for _, l := range e.layouts {
		if l != nil {
			l.Aborted(&e.env, w)
		}
	}
	return w.Abort()
}

// layoutOf returns the layout of a keyspace that has a root, be it one that was dropped in this run.
func (e *Engine) layoutOf(id uint32) layout.Layout {
	return e.layouts[e.keyspaces.known(id).Layout]
}

// ordered reports whether the keys of the keyspace have an order to be read, and deleted, by.
func (ks *Keyspace) ordered() bool { return ks.Layout != Hash }

// CheckOrder refuses what needs an order of keys in a keyspace that keeps none: everything that does not take in all of it. what says, up
// to the word keyspace, what was attempted. An empty lower bound leaves nothing out.
func (ks *Keyspace) CheckOrder(what string, lo, hi []byte) error {
	if ks.ordered() || len(lo) == 0 && hi == nil {
		return nil
	}
	return ks.noOrder(what)
}

// noOrder is the error of what cannot be done without an order.
func (ks *Keyspace) noOrder(what string) error {
	return fmt.Errorf("%s keyspace %q, whose layout is %v: %w", what, ks.Name, ks.Layout, ErrNoOrder)
}
