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
