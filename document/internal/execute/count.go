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
	st := &plan.Stats{Stage: root, Done: true}
	var n int64
	var err error
	switch in := root.Input.(type) {
	case nil:
		n, err = r.Count(c.Records, nil, nil)
	case *plan.CountScan:
		below := &plan.Stats{Stage: in, Done: true}
		n, err = countScan(r, c, in.Scan)
		below.Advanced, below.Keys, below.Works = n, n, n+1
		st.Inputs = append(st.Inputs, below)
	default:
		x := newRun(ctx, r, c, p, o)
		from, below := x.build(root.Input)
		st.Inputs = append(st.Inputs, below)
		n, err = x.count(from, root)
	}
	st.Works = n + 1
	n = max(0, n-root.Skip)
	if root.Limit > 0 {
		n = min(n, root.Limit)
	}
	return n, st, err
}

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
