package geo

import (
	"cmp"
	"slices"

	"github.com/golang/geo/s1"
	"github.com/golang/geo/s2"
)

// How finely geometries are covered by cells: more cells are more keys in an index, and fewer false hits.
const (
	finestLevel = 23 // about a metre
	mostCells   = 20
)

// Range is a range of cells, both ends included.
type Range struct{ Low, High int64 }

// Cells returns the ids of cells that cover the geometry, for the keys of an index: a cell of the finest level for each point, larger ones
// for lines and areas. ok is false when the geometry is not on the sphere.
func (g *Geometry) Cells() (ids []int64, ok bool) {
	if !g.spherical() {
		return nil, false
	}
	var cells s2.CellUnion
	for _, p := range g.points {
		cells = append(cells, s2.CellFromPoint(p).ID().Parent(finestLevel))
	}
	for _, r := range g.regions() {
		cells = append(cells, cover(r)...)
	}
	for _, c := range cells {
		ids = append(ids, int64(c))
	}
	slices.Sort(ids)
	return slices.Compact(ids), true
}

// regions returns the lines and areas.
func (g *Geometry) regions() []s2.Region {
	var regions []s2.Region
	for _, l := range g.lines {
		regions = append(regions, l)
	}
	for _, a := range g.polygons {
		regions = append(regions, a.polygon)
	}
	return regions
}

func cover(r s2.Region) s2.CellUnion {
	c := s2.RegionCoverer{MaxLevel: finestLevel, LevelMod: 1, MaxCells: mostCells}
	return c.Covering(r)
}

// Ranges returns where an index has the cells of all geometries that may intersect this one: within its cells, and around them. The ranges
// are in ascending order and do not overlap.
func (g *Geometry) Ranges() (ranges []Range, ok bool) {
	ids, ok := g.Cells()
	return rangesOf(ids), ok
}

// Ranges returns where an index has the cells of all geometries that may lie in the region. ok is false for regions of the plane.
func (r *Region) Ranges() (ranges []Range, ok bool) {
	switch {
	case r.geometry != nil:
		return r.geometry.Ranges()
	case r.cap != nil:
		return rangesOf(idsOf(cover(*r.cap))), true
	}
	return nil, false
}

// RangesWithin returns where an index has the cells of all geometries that may be within a distance, in radians, of a point.
func RangesWithin(center Point, radians float64) []Range {
	return rangesOf(idsOf(cover(s2.CapFromCenterAngle(center.s2(), s1.Angle(radians)))))
}

func idsOf(cells s2.CellUnion) []int64 {
	ids := make([]int64, len(cells))
	for i, c := range cells {
		ids[i] = int64(c)
	}
	return ids
}

// rangesOf returns the ranges of all cells within the given ones, and all cells that have one of them within.
func rangesOf(ids []int64) []Range {
	var ranges []Range
	for _, id := range ids {
		cell := s2.CellID(id)
		ranges = append(ranges, Range{int64(cell.RangeMin()), int64(cell.RangeMax())})
		for level := range cell.Level() {
			parent := int64(cell.Parent(level))
			ranges = append(ranges, Range{parent, parent})
		}
	}
	slices.SortFunc(ranges, func(a, b Range) int { return cmp.Or(cmp.Compare(a.Low, b.Low), cmp.Compare(b.High, a.High)) })
	out := ranges[:0]
	for _, r := range ranges {
		if n := len(out); n > 0 && r.Low <= out[n-1].High {
			out[n-1].High = max(out[n-1].High, r.High)
			continue
		}
		out = append(out, r)
	}
	return out
}
