package document

import (
	"slices"
	"strings"

	"github.com/pandodb/pando/document/internal/mongoerror"
)

// viewGraph walks over the views that views read: the one that they stand on, and those that their stages join. One that reads itself,
// by whatever way, would be read without end.
type viewGraph struct {
	views   map[string]*view
	heights map[string]int // how many views stand on each other, from here down; of those that were walked over
	path    []string       // the views that are being walked over
}

// checkGraph refuses a view that reads itself, and one below which too many views stand on each other.
func (c *catalogue) checkGraph(v *view) error {
	g := viewGraph{views: c.views, heights: map[string]int{}}
	height, err := g.walk(v.ns)
	if err == nil && height > maxViewDepth {
		err = tooDeep()
	}
	return err
}

// breakCycles keeps stored views that read themselves from being read: earlier versions let them be made.
func (s *Store) breakCycles(c *catalogue) {
	g := viewGraph{views: c.views, heights: map[string]int{}}
	for name, v := range c.views {
		g.path = g.path[:0]
		if _, err := g.walk(v.ns); err != nil {
			s.log.Warn("a stored view cannot be carried out", "view", name, "error", err)
			v.broken = err
		}
	}
}

// walk returns how many views stand on each other from a name down, 0 for a collection.
func (g *viewGraph) walk(ns namespace) (int, error) {
	name := ns.String()
	v := g.views[name]
	if v == nil || v.broken != nil {
		return 0, nil
	}
	if height, ok := g.heights[name]; ok {
		return height, nil
	}
	g.path = append(g.path, name)
	if at := slices.Index(g.path, name); at < len(g.path)-1 {
		return 0, mongoerror.New(mongoerror.GraphContainsCycle, "View cycle detected: %s", strings.Join(g.path[at:], " => "))
	}
	height := 0
	for _, below := range joined([]string{v.settings.viewOn}, v.stages) {
		h, err := g.walk(namespace{ns.database, below})
		if err != nil {
			return 0, err
		}
		height = max(height, h)
	}
	g.path = g.path[:len(g.path)-1]
	g.heights[name] = height + 1
	return height + 1, nil
}

func tooDeep() error {
	return mongoerror.New(mongoerror.ViewDepthLimitExceeded, "View depth too deep or view cycle detected; maximum depth is %d", maxViewDepth)
}
