package expression

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Call is the call that waits for evaluations at present: the one that parsed the expression, or a later one that goes on with its
// cursor. Evaluations of expressions that were parsed with it end early when the call does. It is used by one goroutine at a time;
// nil is nobody, who waits for ever.
type Call struct {
	Cluster ClusterClock // of $$CLUSTER_TIME; nil: there is none
	ctx     context.Context
	at      uint64 // $$CLUSTER_TIME, once it was asked for
	folded  int    // bytes of long constants that were computed while parsing
	spent   int    // work of computing constants while parsing
}

// What computed constants may take in all that a call parses: a short expression may stand for one of 16 MiB. Those of up to longConstant
// bytes do not count.
const (
	longConstant = 1 << 10
	maxFolded    = 32 << 20
)

// maxFoldedWork is how much work is spent on constants while parsing, as state.charge counts it: that of a thousand functions of decimals. A
// message may have a million of them, and while it is parsed nobody looks whether anybody waits for it.
const maxFoldedWork = 1 << 21

// affords reports whether constants are computed yet; else that is done for each document.
func (c *Call) affords() bool { return c == nil || c.spent < maxFoldedWork }

// spend counts work on constants.
func (c *Call) spend(work int) {
	if c != nil {
		c.spent += work
	}
}

// keeps reports whether a computed constant of n bytes is kept; else it is computed for each document.
func (c *Call) keeps(n int) bool {
	if c == nil || n <= longConstant {
		return true
	}
	if c.folded+n > maxFolded {
		return false
	}
	c.folded += n
	return true
}

// Mark returns how much of what a call may keep is used, for Rewind when what is parsed from now on is needed no more.
func (c *Call) Mark() (mark int) {
	if c != nil {
		mark = c.folded
	}
	return mark
}

// Rewind gives back what was used since a mark, and the work of it.
func (c *Call) Rewind(mark int) {
	if c != nil {
		c.folded, c.spent = min(c.folded, mark), 0
	}
}

// ClusterClock tells the time of the newest write, as a timestamp; 0: it does not know.
type ClusterClock interface{ ClusterTime() uint64 }

// clusterTime returns $$CLUSTER_TIME, which is the same in all that the call parses; false when there is none.
func (c *Call) clusterTime() (bsoncore.Value, bool) {
	if c == nil || c.Cluster == nil {
		return bsoncore.Value{}, false
	}
	if c.at == 0 {
		c.at = c.Cluster.ClusterTime()
	}
	data := bsoncore.AppendTimestamp(nil, uint32(c.at>>32), uint32(c.at))
	return bsoncore.Value{Type: bsoncore.TypeTimestamp, Data: data}, c.at != 0
}

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
