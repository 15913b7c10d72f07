package report

import (
	"fmt"
	"html"
	"strings"
)

// svg builds a drawing element by element. Coordinates are pixels.
type svg struct {
	b             strings.Builder
	width, height int
}

func newSVG(width, height int, title string) *svg {
	s := &svg{width: width, height: height}
	fmt.Fprintf(&s.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" role="img">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&s.b, "<title>%s</title>\n", html.EscapeString(title))
	fmt.Fprintf(&s.b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	return s
}

func (s *svg) text(x, y float64, anchor, style, text string) {
	fmt.Fprintf(&s.b, `<text x="%.1f" y="%.1f" text-anchor="%s" %s>%s</text>`+"\n", x, y, anchor, style, html.EscapeString(text))
}

func (s *svg) rect(x, y, w, h float64, colour string) {
	fmt.Fprintf(&s.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, w, h, colour)
}

func (s *svg) line(x1, y1, x2, y2 float64, colour string, width float64) {
	fmt.Fprintf(&s.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f"/>`+"\n", x1, y1, x2, y2, colour, width)
}

func (s *svg) dot(x, y, radius float64, colour string) {
	fmt.Fprintf(&s.b, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"/>`+"\n", x, y, radius, colour)
}

func (s *svg) polyline(points [][2]float64, colour string, width float64) {
	s.b.WriteString(`<polyline fill="none" points="`)
	for _, p := range points {
		fmt.Fprintf(&s.b, "%.1f,%.1f ", p[0], p[1])
	}
	fmt.Fprintf(&s.b, `" stroke="%s" stroke-width="%.1f"/>`+"\n", colour, width)
}

// String ends the drawing.
func (s *svg) String() string { return s.b.String() + "</svg>\n" }

// colour of an engine: Pando's layouts stand out, and each other one keeps its own in all charts.
func colour(engine string) string {
	known := map[string]string{
		Subject: "#d1495b", hashSubject: "#7b1e3a", "pebble": "#30638e", "bbolt": "#edae49", "badger": "#66a182", "goleveldb": "#8d96a3",
		"nutsdb": "#9c6644", "sqlite": "#b8b8d1", "sqlite-c": "#5b5f97", "lmdb": "#00798c", "rocksdb": "#2e4057",
		floorEngine: "#cccccc",
	}
	if c, ok := known[engine]; ok {
		return c
	}
	return "#777777"
}
