package wire

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// payment is what a transaction moves from one user's balance to another's. The balances begin at 0, and may be below.
const payment = 1

func transferPayments(c *client, _ int) func(context.Context, *thread, int) error {
	n := userCount(c.sizes)
	return func(ctx context.Context, t *thread, _ int) error {
		from := t.rng.IntN(n)
		to := (from + 1 + t.rng.IntN(n-1)) % n // somebody else
		session, err := t.c.db.StartSession()
		if err != nil {
			return err
		}
		defer session.EndSession(ctx)
		// It begins anew when the server aborts it because of another one, which a server is free to do: the aborts are not counted.
		_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) { return nil, t.transfer(ctx, from, to) })
		return err
	}
}

// transfer moves a payment. What is written of the payer follows from what was read: of two transfers that would not see each other's
// writes, one would be lost, and the balances no longer add up to 0.
func (t *thread) transfer(ctx context.Context, from, to int) error {
	var payer struct {
		ID      int64 `bson:"_id"`
		Balance int64 `bson:"balance"`
	}
	byID := func(i int) bson.D { return bson.D{{Key: "_id", Value: int64(i)}} }
	if err := t.c.users.FindOne(ctx, byID(from)).Decode(&payer); err != nil {
		return err
	}
	if payer.ID != int64(from) {
		return fmt.Errorf("user %d: _id %d", from, payer.ID)
	}
	for _, u := range []struct {
		user   int
		update bson.D
	}{
		{from, bson.D{{Key: "$set", Value: bson.D{{Key: "balance", Value: payer.Balance - payment}}}, {Key: "$inc", Value: bson.D{{Key: "paid", Value: 1}}}}},
		{to, bson.D{{Key: "$inc", Value: bson.D{{Key: "balance", Value: int64(payment)}}}}},
	} {
		result, err := t.c.users.UpdateOne(ctx, byID(u.user), u.update)
		if err == nil {
			err = checkUpdated(result.MatchedCount, result.ModifiedCount, 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkBalances checks that every transfer is there once, and whole.
func checkBalances(ctx context.Context, c *client) error {
	cursor, err := c.users.Aggregate(ctx, mongo.Pipeline{{{Key: "$group", Value: bson.D{
		{Key: "_id", Value: nil},
		{Key: "balance", Value: bson.D{{Key: "$sum", Value: "$balance"}}},
		{Key: "paid", Value: bson.D{{Key: "$sum", Value: "$paid"}}},
	}}}})
	if err != nil {
		return err
	}
	var sums []struct{ Balance, Paid int64 }
	if err := cursor.All(ctx, &sums); err != nil {
		return err
	}
	if len(sums) != 1 || sums[0].Balance != 0 || sums[0].Paid != int64(c.sizes.Ops) {
		return fmt.Errorf("the balances and the payments are %v together, want 0 and %d", sums, c.sizes.Ops)
	}
	return nil
}
