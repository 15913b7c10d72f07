package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Sizes of the bar charts.
const (
	barHeight  = 14
	barLabel   = 90  // room for the engines' names
	barWidth   = 380 // of the longest bar
	barNumber  = 130 // room for the numbers
	blockTitle = 26
	blockGap   = 10
	chartTop   = 34
)

// bar is one engine's part of a block.
type bar struct {
	engine string
	value  float64
}

// barChart draws a block of bars for every row, the best on top; bars of a block are to one scale.
func barChart(title string, rows []*Row) string {
	height := chartTop
	blocks := make([][]bar, len(rows))
	for i, row := range rows {
		blocks[i] = barsOf(row)
		height += blockTitle + blockGap + barHeight*len(blocks[i])
	}
	s := newSVG(barLabel+barWidth+barNumber, height, title)
	s.text(10, 20, "start", `font-size="15" font-weight="bold"`, title)
	y := float64(chartTop)
	for i, row := range rows {
		s.text(10, y+16, "start", `font-weight="bold" fill="#333333"`, row.Cell+", "+judgedUnit(row))
		y += blockTitle
		longest := 0.0
		for _, b := range blocks[i] {
			longest = max(longest, b.value)
		}
		for _, b := range blocks[i] {
			weight := ""
			if isSubject(b.engine) {
				weight = `font-weight="bold"`
			}
			s.text(barLabel-6, y+barHeight-3, "end", weight, b.engine)
			w := 1.0
			if longest > 0 {
				w = max(1, b.value/longest*barWidth)
			}
			s.rect(barLabel, y+1, w, barHeight-2, colour(b.engine))
			s.text(barLabel+w+5, y+barHeight-3, "start", weight, number(b.value))
			y += barHeight
		}
		y += blockGap
	}
	return s.String()
}

func barsOf(row *Row) []bar {
	var list []bar
	for name, e := range row.Engines {
		if v := row.Judged(e); v.Rounds > 0 && e.Cut == "" {
			list = append(list, bar{name, v.Median})
		}
	}
	slices.SortFunc(list, func(a, b bar) int {
		if a.value != b.value && row.better(a.value, b.value) {
			return -1
		}
		return cmp.Or(cmp.Compare(a.value, b.value)*row.sign(), cmp.Compare(a.engine, b.engine))
	})
	return list
}

// sign is 1 where less is better.
func (r *Row) sign() int {
	if r.better(1, 2) {
		return 1
	}
	return -1
}

// judgedUnit says what the bars show.
func judgedUnit(row *Row) string {
	switch {
	case row.Unit != "":
		return row.Unit
	case row.ByWall():
		return "ns of wall time per operation"
	}
	return "ns of processor time per operation"
}

// Sizes of the line charts.
const (
	plotLeft, plotTop     = 70.0, 40.0
	plotWidth, plotHeight = 430.0, 300.0
	plotRight             = 100.0
	plotBottom            = 45.0
)

// lineChart draws cost against the number of records, both on logarithmic scales.
func lineChart(title string, rows []*Row) string {
	lowX, highX, lowY, highY := bounds(rows)
	s := newSVG(int(plotLeft+plotWidth+plotRight), int(plotTop+plotHeight+plotBottom), title)
	s.text(10, 20, "start", `font-size="15" font-weight="bold"`, title)
	x := func(v float64) float64 { return plotLeft + (math.Log10(v)-lowX)/(highX-lowX)*plotWidth }
	y := func(v float64) float64 { return plotTop + (highY-math.Log10(v))/(highY-lowY)*plotHeight }
	for e := lowX; e <= highX; e++ {
		at := x(math.Pow(10, e))
		s.line(at, plotTop, at, plotTop+plotHeight, "#dddddd", 1)
		s.text(at, plotTop+plotHeight+16, "middle", "", fmt.Sprintf("10^%g", e))
	}
	for e := lowY; e <= highY; e++ {
		at := y(math.Pow(10, e))
		s.line(plotLeft, at, plotLeft+plotWidth, at, "#dddddd", 1)
		s.text(plotLeft-6, at+4, "end", "", number(math.Pow(10, e)))
	}
	s.text(plotLeft+plotWidth/2, plotTop+plotHeight+36, "middle", "", "records")
	s.text(plotLeft, plotTop-6, "start", `fill="#555555"`, judgedUnit(rows[0]))
	var ends []bar
	lines := linesOf(rows)
	for _, name := range sortedKeys(lines) {
		var points [][2]float64
		for _, p := range lines[name] {
			points = append(points, [2]float64{x(p[0]), y(p[1])})
		}
		width := 1.5
		if isSubject(name) {
			width = 3
		}
		s.polyline(points, colour(name), width)
		for _, p := range points {
			s.dot(p[0], p[1], 1+width, colour(name))
		}
		ends = append(ends, bar{name, points[len(points)-1][1]})
	}
	labels(s, ends)
	return s.String()
}

// labels writes the engines' names at the ends of their lines, none over another.
func labels(s *svg, ends []bar) {
	slices.SortFunc(ends, func(a, b bar) int { return cmp.Compare(a.value, b.value) })
	at := plotTop - barHeight
	for _, e := range ends {
		at = max(at+barHeight, e.value)
		s.text(plotLeft+plotWidth+6, at+4, "start", fmt.Sprintf(`fill="%s" font-weight="bold"`, colour(e.engine)), e.engine)
	}
}

// linesOf gathers {records, cost} for every engine, by growing size.
func linesOf(rows []*Row) map[string][][2]float64 {
	lines := map[string][][2]float64{}
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b *Row) int { return cmp.Compare(a.Size, b.Size) })
	for _, row := range sorted {
		for name, e := range row.Engines {
			if v := row.Judged(e); v.Median > 0 && e.Cut == "" {
				lines[name] = append(lines[name], [2]float64{float64(row.Size), v.Median})
			}
		}
	}
	return lines
}

// bounds are the powers of ten that enclose all points.
func bounds(rows []*Row) (lowX, highX, lowY, highY float64) {
	lowX, lowY, highX, highY = math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, line := range linesOf(rows) {
		for _, p := range line {
			lowX, highX = min(lowX, math.Log10(p[0])), max(highX, math.Log10(p[0]))
			lowY, highY = min(lowY, math.Log10(p[1])), max(highY, math.Log10(p[1]))
		}
	}
	lowX, lowY, highX, highY = math.Floor(lowX), math.Floor(lowY), math.Ceil(highX), math.Ceil(highY)
	return lowX, max(highX, lowX+1), lowY, max(highY, lowY+1)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
