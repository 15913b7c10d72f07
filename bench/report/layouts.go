package report

import (
	"fmt"
	"strings"
)

// Subject is the engine that the others are compared with: Pando with its default layout.
const Subject = "pando"

// hashSubject is Pando with a hash table.
const hashSubject = "pando-hash"

// layout is a way in which Pando keeps a keyspace. In a measurement each is an engine of its own.
type layout struct{ engine, name string }

// layouts returns those of Pando, the default one first.
func layouts() []layout { return []layout{{Subject, "tree"}, {hashSubject, "hash"}} }

// isSubject reports whether an engine is Pando, which is no rival of itself.
func isSubject(engine string) bool {
	for _, l := range layouts() {
		if l.engine == engine {
			return true
		}
	}
	return false
}

// Mine returns the layout of Pando that decides the row: the best one of those that did all of the work. Where none did, it is the first
// that did some; where Pando has no number, the first that failed, if one did.
func (r *Row) Mine() (engine string, e *Entry) {
	for _, l := range layouts() {
		x := r.Engines[l.engine]
		if x == nil || r.Judged(x).Rounds == 0 {
			continue
		}
		switch {
		case e == nil, e.Cut != "" && x.Cut == "",
			e.Cut == "" && x.Cut == "" && r.better(r.Judged(x).Median, r.Judged(e).Median):
			engine, e = l.engine, x
		}
	}
	for _, l := range layouts() {
		if x := r.Engines[l.engine]; e == nil && x != nil && isFailure(x.Failed) {
			engine, e = l.engine, x
		}
	}
	return engine, e
}

// layoutMark names the layout behind a number of Pando. A number stands for itself where the default layout is the only one measured.
func (r *Row) layoutMark(engine string) string {
	measured, name := 0, ""
	for _, l := range layouts() {
		if e := r.Engines[l.engine]; e != nil && r.Judged(e).Rounds > 0 {
			measured++
		}
		if l.engine == engine {
			name = l.name
		}
	}
	if name == "" || measured <= 1 && engine == Subject {
		return ""
	}
	return " (" + name + ")"
}

// ratioCell is the ratio with the layout that it is of.
func ratioCell(row *Row) string {
	text := ratioText(row.Ratio())
	if text == "" {
		return ""
	}
	engine, _ := row.Mine()
	return text + row.layoutMark(engine)
}

// severalLayouts reports whether there are rows of more than one layout of Pando.
func severalLayouts(rows []*Row) bool {
	seen := map[string]bool{}
	for _, row := range rows {
		for name := range row.Engines {
			if isSubject(name) {
				seen[name] = true
			}
		}
	}
	return len(seen) > 1
}

// withOneLayout counts what would be behind if one layout had to do for all of the rows, as it does for a keyspace; nothing where there
// is one only.
func withOneLayout(rows []*Row) string {
	if !severalLayouts(rows) {
		return ""
	}
	var list []string
	for _, l := range layouts() {
		behind, compared := 0, 0
		for _, row := range rows {
			if x := row.RatioOf(l.engine); x > 0 {
				compared++
				if x > 1 {
					behind++
				}
			}
		}
		list = append(list, fmt.Sprintf("%s in %d of %d", l.name, behind, compared))
	}
	return "With one layout throughout Pando is behind with " + strings.Join(list, ", with ") + "; of cells that need an order there are none with hash."
}

// layoutsText is the rule, for the method.
func layoutsText(rows []*Row) string {
	if !severalLayouts(rows) {
		return ""
	}
	return `
- Pando is measured with two layouts of a keyspace, as engines of their own: "pando" is a tree, "pando-hash" a hash table, which keeps no
  order. Pando's number of a cell is the better one of the layouts that were measured in it, and the cell names it: "(tree)" or "(hash)";
  where none is named, only the tree was measured. Pando is never compared with itself. A layout with "(part)" does not count beside one
  that did everything.
- Who uses a keyspace picks one layout for it, and cells of one workload may be of different ones: the numbers of both are in all tables
  and charts below, and under each list is what one layout alone comes to. Where the two hardly differ, taking the better one favours
  Pando by part of the spread.
- An engine without order is not asked for scans, seeks, queues and YCSB E, and has no such cells. Where the others scan it gets every record
  once, unmeasured, within the limit of time that reads have, so that memory and disk are those after as many reads.`
}

// layoutsIntroduction is the rule in short, for the beginning of the page.
const layoutsIntroduction = `Pando has two layouts of a keyspace, tree and hash. A ratio is that of the better one of those measured in the cell, which it names:
cells of one workload may be of different layouts, although a keyspace has one. The tables of all cells have both.

`
