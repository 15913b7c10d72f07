package document

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document/internal/execute"
	"github.com/pandodb/pando/document/internal/mongoerror"
	"github.com/pandodb/pando/document/internal/plan"
)

// Explain returns how a query would be carried out, or, with a Verbosity above queryPlanner, how it was, in the shape of MongoDB's
// explain.
func (c *Collection) Explain(ctx context.Context, filter any, o *FindOptions) (bson.Raw, error) {
	q, err := c.parseFind(ctx, filter, o)
	if err != nil {
		return nil, err
	}
	x, err := c.use()
	if err != nil {
		return nil, err
	}
	return c.explain(ctx, x, q)
}

// ExplainCount is Explain for Count.
func (c *Collection) ExplainCount(ctx context.Context, filter any, o *FindOptions) (bson.Raw, error) {
	q, err := c.parseCount(ctx, filter, o)
	if err != nil {
		return nil, err
	}
	q.Goal, q.Projection, q.Sort = plan.Counting, nil, nil
	x, err := c.use()
	if err != nil {
		return nil, err
	}
	return c.explain(ctx, x, q)
}

// ExplainDistinct is Explain for Distinct.
func (c *Collection) ExplainDistinct(ctx context.Context, field string, filter any, o *FindOptions) (bson.Raw, error) {
	q, err := c.parseDistinct(ctx, field, filter, o)
	if err != nil {
		return nil, err
	}
	x, err := c.use()
	if err != nil {
		return nil, err
	}
	return c.explain(ctx, x, q)
}

// ExplainStatement is Explain for an update or delete: how it would find its documents. Nothing is written.
func (c *Collection) ExplainStatement(ctx context.Context, s *Statement, verbosity string) (bson.Raw, error) {
	ch, err := c.parseStatement(ctx, s)
	if err != nil {
		return nil, err
	}
	return ch.explain(ctx, verbosity)
}

// ExplainModify is Explain for FindAndModify: how it would find its document. Nothing is written.
func (c *Collection) ExplainModify(ctx context.Context, filter, u any, o *ModifyOptions, verbosity string) (bson.Raw, error) {
	if o == nil {
		o = new(ModifyOptions)
	}
	ch, err := c.parseModify(ctx, filter, u, o)
	if err != nil {
		return nil, err
	}
	return ch.explain(ctx, verbosity)
}

// explain explains the query of a change.
func (ch *change) explain(ctx context.Context, verbosity string) (bson.Raw, error) {
	if err := ch.parseFilter(); err != nil {
		return nil, err
	}
	x, err := ch.c.use()
	if err != nil {
		return nil, err
	}
	ch.query.options.Verbosity = verbosity
	return ch.c.explain(ctx, x, ch.query)
}

// explain is explainPlan for those who do not ask for its stages.
func (c *Collection) explain(ctx context.Context, x *collection, q *findQuery) (bson.Raw, error) {
	raw, _, err := c.explainPlan(ctx, x, q)
	return raw, err
}

// explainPlan plans a query, and runs it when its statistics are wanted. It returns the plan's stages, too.
func (c *Collection) explainPlan(ctx context.Context, x *collection, q *findQuery) (raw bson.Raw, root plan.Stage, err error) {
	verbosity, err := parseVerbosity(q.options.Verbosity)
	if err != nil {
		return nil, nil, err
	}
	at := c.moment()
	defer func() { err = errors.Join(x.orDropped(err), at.close()) }()
	if x == nil {
		p := plan.Nothing(&q.Query, c.ns.String())
		nothing := &plan.Run{Root: &plan.Stats{Stage: p.Root, Works: 1, Done: true}}
		return bson.Raw(plan.Explain(p, verbosity, nothing)), p.Root, nil
	}
	src := x.source(at.seq)
	p, err := plan.Choose(&q.Query, execute.Planning(at.reader, src))
	if err != nil {
		return nil, nil, err
	}
	if verbosity == plan.QueryPlanner {
		return bson.Raw(plan.Explain(p, verbosity, nil)), p.Root, nil
	}
	var trials []*plan.Run
	if verbosity == plan.AllPlansExecution {
		if trials, err = at.try(ctx, src, p, q); err != nil {
			return nil, nil, err
		}
	}
	run, err := at.run(ctx, src, p, c.store.queryOptions(q), 0)
	if err != nil {
		return nil, nil, err
	}
	run.Trials = trials
	return bson.Raw(plan.Explain(p, verbosity, run)), p.Root, nil
}

// run runs a plan for what its stages count, up to a number of documents; 0: all.
func (m *moment) run(ctx context.Context, src *execute.Collection, p *plan.Plan, o *execute.Options, limit int64) (*plan.Run, error) {
	start := m.store.clock.Now()
	cursor, err := execute.Open(ctx, m.reader, src, p, o)
	if err != nil {
		return nil, err
	}
	run := &plan.Run{}
	for (limit == 0 || run.Returned < limit) && cursor.Next() {
		run.Returned++
	}
	run.Duration, run.Root, run.Err = m.store.clock.Now().Sub(start), cursor.Stats(), cursor.Err()
	if errors.Is(run.Err, execute.ErrSteps) {
		run.Err = nil
		_ = cursor.Close() // it says the same again
		return run, nil
	}
	return run, cursor.Close()
}

// How far plans are tried, as MongoDB does it: up to so many documents or steps.
const (
	trialDocuments = 101
	trialSteps     = 10_000
)

// try runs the plans among which there was a choice for a while: the one that was chosen first, the others for as many steps.
func (m *moment) try(ctx context.Context, src *execute.Collection, p *plan.Plan, q *findQuery) ([]*plan.Run, error) {
	var out []*plan.Run
	o := m.store.queryOptions(q)
	o.Steps = trialSteps
	for _, one := range p.Candidates() {
		run, err := m.run(ctx, src, one, o, trialDocuments)
		if err != nil {
			return nil, err
		}
		if len(out) == 0 {
			o.Steps = max(1, run.Root.Steps())
		}
		out = append(out, run)
	}
	return out, nil
}

func parseVerbosity(v string) (plan.Verbosity, error) {
	switch v {
	case "", "queryPlanner":
		return plan.QueryPlanner, nil
	case "executionStats":
		return plan.ExecutionStats, nil
	case "allPlansExecution":
		return plan.AllPlansExecution, nil
	}
	return 0, mongoerror.New(mongoerror.BadValue, "verbosity string must be one of {'queryPlanner', 'executionStats', 'allPlansExecution'}")
}
