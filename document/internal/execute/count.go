package execute

import (
	"context"

	"github.com/pandodb/pando/document/internal/plan"
)

// maxCountRanges is more than any plan makes of bounds that it means to be counted.
const maxCountRanges = 1 << 12

// Count returns the number of documents of a plan that was made for counting.
func Count(ctx context.Context, r Reader, c *Collection, p *plan.Plan, o *Options) (int64, error) {
	n, _, err := CountStats(ctx, r, c, p, o)
	return n, err
}

// CountStats is Count, and returns what the stages have counted, for explain.
func CountStats(ctx context.Context, r Reader, c *Collection, p *plan.Plan, o *Options) (int64, *plan.Stats, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	root, ok := p.Root.(*plan.Count)
	if !ok {
		root = &plan.Count{Input: p.Root}
	}
	n := &counter{x: newRun(ctx, r, c, p, o), s: root, st: &plan.Stats{Stage: root}}
	n.next(nil)
	return n.n, n.st, n.x.err
}

// counter counts what its input gives. It gives no rows.
type counter struct {
	x  *run
	s  *plan.Count
	st *plan.Stats
	n  int64
}

func (c *counter) next(*row) bool {
	if c.st.Done {
		return false
	}
	c.st.Done = true
	var n int64
	var err error
	switch in := c.s.Input.(type) {
	case nil:
		n, err = c.x.r.Count(c.x.c.Records, nil, nil)
	case *plan.CountScan:
		n, err = countScan(c.x.r, c.x.c, in.Scan)
		c.st.Inputs = append(c.st.Inputs, &plan.Stats{Stage: in, Done: true, Advanced: n, Keys: n, Works: n + 1})
	default:
		from, below := c.x.build(c.s.Input)
		c.st.Inputs = append(c.st.Inputs, below)
		n, err = c.x.count(from, c.s)
	}
	if err != nil {
		return c.x.fail(err)
	}
	c.st.Works = n + 1
	if c.n = max(0, n-c.s.Skip); c.s.Limit > 0 {
		c.n = min(c.n, c.s.Limit)
	}
	return false
}

func (c *counter) close() {}

// count counts rows, no more than are asked for.
func (x *run) count(from node, c *plan.Count) (n int64, err error) {
	var r row
	for from.next(&r) {
		if n++; c.Limit > 0 && n-c.Skip >= c.Limit {
			break
		}
	}
	from.close()
	return n, x.err
}

// countScan counts entries without looking at them.
func countScan(r Reader, c *Collection, s *plan.IndexScan) (n int64, err error) {
	list, _ := s.Bounds.Cover(maxCountRanges)
	for _, one := range list {
		m, err := r.Count(c.keyspace(s.Index), one.Lo, one.Hi)
		if err != nil {
			return 0, err
		}
		n += m
	}
	return n, nil
}
