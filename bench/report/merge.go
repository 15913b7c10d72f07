package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pandodb/pando/bench/workload"
)

// part is what one process after the other does for one engine: a workload at one scale.
type part struct{ workload, scale, class, engine string }

func partOf(c workload.Cell) part { return part{c.Workload, c.Scale, c.Class, c.Engine} }

// Merge joins measurements on one machine into one: where two of them have the same workload at the same scale, the later one's are
// further rounds. Engines and workloads that only some of them have come behind those of the first.
func Merge(runs ...*Result) (*Result, error) {
	all := *runs[0]
	all.Engines, all.Workloads, all.Cells = slices.Clone(all.Engines), slices.Clone(all.Workloads), slices.Clone(all.Cells)
	for _, r := range runs[1:] {
		if !r.Machine.same(all.Machine) {
			return nil, fmt.Errorf("measurements of two machines cannot be joined: %+v and %+v", all.Machine, r.Machine)
		}
		if err := all.sameVersions(r.Engines); err != nil {
			return nil, err
		}
		all.addCommand(r.Command)
		all.Seconds += r.Seconds
		all.addEngines(r.Engines)
		all.addWorkloads(r.Workloads)
		all.addRounds(r.Cells)
	}
	return &all, nil
}

// same reports whether two measurements come from machines that are alike in what matters.
func (m Machine) same(o Machine) bool {
	return m.OS == o.OS && m.Arch == o.Arch && m.Go == o.Go && m.Cores == o.Cores && m.Processor == o.Processor
}

// sameVersions refuses further rounds of an engine that has become another one since.
func (r *Result) sameVersions(more []Engine) error {
	for _, e := range more {
		for _, x := range r.Engines {
			if x.Name == e.Name && x.Version != e.Version {
				return fmt.Errorf("measurements of two versions of %s cannot be joined: %s and %s", e.Name, x.Version, e.Version)
			}
		}
	}
	return nil
}

// commandGap stands between the commands of a measurement, as the report shows them.
const commandGap = "\n    "

func (r *Result) addCommand(command string) {
	for c := range strings.SplitSeq(command, commandGap) {
		if !slices.Contains(strings.Split(r.Command, commandGap), c) {
			r.Command += commandGap + c
		}
	}
}

func (r *Result) addEngines(more []Engine) {
	for _, e := range more {
		if !slices.ContainsFunc(r.Engines, func(x Engine) bool { return x.Name == e.Name }) {
			r.Engines = append(r.Engines, e)
		}
	}
}

func (r *Result) addWorkloads(more []Family) {
	for _, w := range more {
		if !slices.ContainsFunc(r.Workloads, func(x Family) bool { return x.Name == w.Name }) {
			r.Workloads = append(r.Workloads, w)
		}
	}
}

// addRounds numbers the rounds of the cells on from those that are there.
func (r *Result) addRounds(cells []workload.Cell) {
	next := map[part]int{}
	for _, c := range r.Cells {
		next[partOf(c)] = max(next[partOf(c)], c.Round+1)
	}
	for _, c := range cells {
		c.Round += next[partOf(c)]
		r.Cells = append(r.Cells, c)
	}
}

// Continue takes over what an earlier measurement with the same file has.
func (r *Result) Continue(earlier *Result) error {
	all, err := Merge(earlier, r)
	if err != nil {
		return err
	}
	*r = *all
	return nil
}

// Has reports whether the engine has had this round of a workload in a class, with lines up to so many records; 0: it has no lines. One that
// failed has to be measured again. So does one whose lines end earlier, unless the engine could not get any further.
func (r *Result) Has(workload, scale, class, engine string, round, largest int) bool {
	had := false
	for _, c := range r.Cells {
		if partOf(c) != (part{workload, scale, class, engine}) || c.Round != round {
			continue
		}
		if isFailure(c.Failed) {
			return false
		}
		had = had || c.Size >= int64(largest) || c.Cut != "" || c.Failed != ""
	}
	return had
}

// Add takes the cells of one engine's round of a workload in, instead of those that an attempt which failed has left.
func (r *Result) Add(cells []workload.Cell) {
	if len(cells) == 0 {
		return
	}
	r.Cells = slices.DeleteFunc(r.Cells, func(c workload.Cell) bool { return partOf(c) == partOf(cells[0]) && c.Round == cells[0].Round })
	r.Cells = append(r.Cells, cells...)
}
