package mongo

import (
	"context"
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestCommandsShareAContext until something has ended it, or may do so yet: a timer that fires when its command has just ended must
// not end the next one.
func TestCommandsShareAContext(t *testing.T) {
	var x commandContext
	next := func() (context.Context, context.CancelCauseFunc) {
		x.begin(t.Context())
		if err := x.ctx.Err(); err != nil {
			t.Fatalf("a command begins, and has ended: %v", err)
		}
		return x.ctx, x.cancel
	}
	first, _ := next()
	x.end(false)
	second, late := next()
	if second != first {
		t.Error("a context of which nobody has anything is not used again")
	}
	x.end(true)
	third, kill := next()
	if late(errTimeLimit); third.Err() != nil {
		t.Error("the timer of one command ends the next")
	}
	if second.Err() == nil {
		t.Error("a context that is not used again goes on")
	}
	kill(errKilled)
	x.end(false)
	next()
}

// TestTimeoutsOfNoEnd: a client has as long as it likes where the options say the longest time there is, and not less than none.
func TestTimeoutsOfNoEnd(t *testing.T) {
	const never = math.MaxInt64
	c := dial(t, newServer(t, &Options{CursorTimeout: never, TransactionTimeout: never, MessageTimeout: never, WriteTimeout: never}))
	c.must("d", cmd("insert", "c", "documents", bson.A{cmd("a", 1)}))
	c.must("d", cmd("find", "c"))
	if n := c.must("admin", cmd("getParameter", 1, "transactionLifetimeLimitSeconds", 1)).Lookup("transactionLifetimeLimitSeconds").Int32(); n != math.MaxInt32 {
		t.Errorf("transactions have %d seconds", n)
	}
}
