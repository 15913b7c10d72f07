package wire

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/pandodb/pando/bench/engine"
	data "github.com/pandodb/pando/bench/workload"
)

// grouped is how many users an aggregation reads.
const grouped = 1000

// byEmail returns the users in the order of their emails: those of a range of that index lie scattered over the collection.
func byEmail(s Sizes) []engine.User {
	list := data.Users(0, userCount(s))
	slices.SortFunc(list, func(a, b engine.User) int { return strings.Compare(a.Email, b.Email) })
	return list
}

// anyRange draws a range of users out of a list, or takes the whole list where that is shorter.
func (t *thread) anyRange(list []engine.User, length int) []engine.User {
	length = min(length, len(list))
	from := t.rng.IntN(len(list) - length + 1)
	return list[from : from+length]
}

// share is the part of a list that only the thread of an operation takes: a count is exact only while nobody else deletes in the range.
func share(list []engine.User, threads, at int) []engine.User {
	n := at % threads // as spread deals the operations out
	return list[len(list)*n/threads : len(list)*(n+1)/threads]
}

// emails is the filter for a range of the users in the order of their emails.
func emails(in []engine.User) bson.D {
	return bson.D{{Key: "email", Value: bson.D{{Key: "$gte", Value: in[0].Email}, {Key: "$lte", Value: in[len(in)-1].Email}}}}
}

// visitNow is an update that modifies every document, whatever the time is.
func visitNow() bson.D {
	return bson.D{{Key: "$set", Value: bson.D{{Key: "seen", Value: bson.NewDateTimeFromTime(time.Now())}}},
		{Key: "$inc", Value: bson.D{{Key: "visits", Value: 1}}}}
}

func updateByEmail(c *client, _ int) func(context.Context, *thread, int) error {
	n := userCount(c.sizes)
	return func(ctx context.Context, t *thread, _ int) error {
		list, update := make([]mongo.WriteModel, listed), visitNow()
		for k := range list {
			i := t.rng.IntN(n)
			filter := bson.D{{Key: "email", Value: data.Users(i, i+1)[0].Email}}
			list[k] = mongo.NewUpdateOneModel().SetFilter(filter).SetUpdate(update)
		}
		return t.updateUsers(ctx, list)
	}
}

// updateUsers sends updates of which each modifies one user.
func (t *thread) updateUsers(ctx context.Context, list []mongo.WriteModel) error {
	result, err := t.c.users.BulkWrite(ctx, list)
	if err != nil {
		return err
	}
	return checkUpdated(result.MatchedCount, result.ModifiedCount, len(list))
}

// checkUpdated says what is wrong with the answer to updates that modify what they match.
func checkUpdated(matched, modified int64, want int) error {
	if matched != int64(want) || modified != int64(want) {
		return fmt.Errorf("%d matched and %d modified of %d", matched, modified, want)
	}
	return nil
}

func updateRanges(c *client, _ int) func(context.Context, *thread, int) error {
	list := byEmail(c.sizes)
	return func(ctx context.Context, t *thread, _ int) error {
		in := t.anyRange(list, listed)
		result, err := t.c.users.UpdateMany(ctx, emails(in), visitNow())
		if err != nil {
			return err
		}
		return checkUpdated(result.MatchedCount, result.ModifiedCount, len(in))
	}
}

func replaceRanges(c *client, _ int) func(context.Context, *thread, int) error {
	list := byEmail(c.sizes)
	return func(ctx context.Context, t *thread, at int) error {
		in := t.anyRange(share(list, t.c.sizes.Threads, at), listed)
		deleted, err := t.c.users.DeleteMany(ctx, emails(in))
		if err != nil {
			return err
		}
		if deleted.DeletedCount != int64(len(in)) {
			return fmt.Errorf("%d deleted of %d", deleted.DeletedCount, len(in))
		}
		docs := make([]any, len(in))
		for k := range in {
			docs[k] = in[k].AppendBSON(nil)
		}
		inserted, err := t.c.users.InsertMany(ctx, docs)
		if err == nil && len(inserted.InsertedIDs) != len(in) {
			err = fmt.Errorf("%d inserted of %d", len(inserted.InsertedIDs), len(in))
		}
		return err
	}
}

// group is what an aggregation says of the users of one age.
type group struct {
	Age   int32   `bson:"_id"`
	Users int64   `bson:"users"`
	Score float64 `bson:"score"` // on average
}

func groupRanges(c *client, _ int) func(context.Context, *thread, int) error {
	list := byEmail(c.sizes)
	byAge := bson.D{{Key: "$group", Value: bson.D{
		{Key: "_id", Value: "$age"},
		{Key: "users", Value: bson.D{{Key: "$sum", Value: 1}}},
		{Key: "score", Value: bson.D{{Key: "$avg", Value: "$score"}}},
	}}}
	return func(ctx context.Context, t *thread, _ int) error {
		in := t.anyRange(list, grouped)
		cursor, err := t.c.users.Aggregate(ctx, mongo.Pipeline{{{Key: "$match", Value: emails(in)}}, byAge})
		if err != nil {
			return err
		}
		var groups []group
		if err := cursor.All(ctx, &groups); err != nil {
			return err
		}
		return checkGroups(groups, in)
	}
}

// checkGroups says what is wrong with the groups of some users. Their order is the server's, and so is the order in which it adds scores
// up, on which the last digits of an average depend.
func checkGroups(groups []group, of []engine.User) error {
	const tolerance = 1e-9
	want := map[int32]group{}
	for i := range of {
		g := want[of[i].Age]
		g.Users++
		g.Score += of[i].Score
		want[of[i].Age] = g
	}
	if len(groups) != len(want) {
		return fmt.Errorf("%d groups, want %d", len(groups), len(want))
	}
	for _, g := range groups {
		w, ok := want[g.Age]
		if !ok || g.Users != w.Users || math.Abs(g.Score-w.Score/float64(w.Users)) > tolerance*w.Score {
			return fmt.Errorf("age %d: %d users with the score %v, want %d who have %v together", g.Age, g.Users, g.Score, w.Users, w.Score)
		}
		delete(want, g.Age) // which no second group may have
	}
	return nil
}
