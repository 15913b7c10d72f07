package expression

import "context"

// Call is the call that waits for evaluations at present: the one that parsed the expression, or a later one that goes on with its
// cursor. Evaluations of expressions that were parsed with it end early when the call does. It is used by one goroutine at a time;
// nil is nobody, who waits for ever.
type Call struct{ ctx context.Context }

// By says who waits from now on.
func (c *Call) By(ctx context.Context) {
	if c != nil {
		c.ctx = ctx
	}
}

// err returns why the call has ended; nil while it waits.
func (c *Call) err() error {
	if c == nil || c.ctx == nil {
		return nil
	}
	return c.ctx.Err()
}
