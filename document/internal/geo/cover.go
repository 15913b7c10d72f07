package geo

import (
	"slices"

	"github.com/golang/geo/s2"
)

// How finely geometries are covered by cells: a document has at most so many keys for one, and cells of the finest level are about a metre
// wide.
const (
	FinestLevel = 23
	MostCells   = 20
)

// Cells returns cells that cover the geometry, for the keys of an index: one of the finest level for each point, larger ones for lines and
// areas. ok is false when the geometry is not on the sphere.
func (g *Geometry) Cells() (cells []s2.CellID, ok bool) {
	if !g.spherical() {
		return nil, false
	}
	for _, p := range g.points {
		cells = append(cells, s2.CellFromPoint(p).ID().Parent(FinestLevel))
	}
	for _, l := range g.lines {
		cells = append(cells, Cover(l)...)
	}
	for _, a := range g.polygons {
		cells = append(cells, Cover(a.polygon)...)
	}
	slices.Sort(cells)
	return slices.Compact(cells), true
}

// Cover returns cells that cover a region.
func Cover(r s2.Region) []s2.CellID {
	return (&s2.RegionCoverer{MaxLevel: FinestLevel, LevelMod: 1, MaxCells: MostCells}).Covering(r)
}
