package godriver

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	rounds     = 3
	writers    = 4
	perRound   = 150 // acknowledged writes before each kill
	pairStride = 1_000_000
)

// load is what the writers were told is there.
type load struct {
	singles, pairs *mongo.Collection
	acknowledged   sync.Map // of singles
	committed      sync.Map // first halves of pairs
	next, done     atomic.Int64
	stop           atomic.Bool
}

// write goes on until it is told to stop, and lets what it began end: a single document, then a transaction of two.
func (l *load) write(ctx context.Context) {
	session, err := l.singles.Database().Client().StartSession()
	if err != nil {
		return
	}
	defer session.EndSession(context.Background())
	for ctx.Err() == nil && !l.stop.Load() {
		id := l.next.Add(1)
		if _, err := l.singles.InsertOne(ctx, bson.M{"_id": id}); err == nil {
			l.acknowledged.Store(id, true)
			l.done.Add(1)
		}
		_, err := session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
			for _, half := range []int64{id, id + pairStride} {
				// Done twice, as when the answer to a commit is lost and nobody knows of it any more, it shows.
				once := bson.M{"$inc": bson.M{"times": 1}}
				if _, err := l.pairs.UpdateOne(ctx, bson.M{"_id": half}, once, options.UpdateOne().SetUpsert(true)); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
		if err == nil {
			l.committed.Store(id, true)
			l.done.Add(1)
		}
	}
}

// TestKill kills the server under load, again and again, while clients retry and a change stream resumes by itself. Then every
// acknowledged write is there, each transaction is whole or absent, and was carried out once, and the stream has told of each document once.
func TestKill(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "db"), lasting(t))
	client := s.connect()
	db := client.Database("kill")
	l := &load{singles: db.Collection("singles"), pairs: db.Collection("pairs")}
	for _, name := range []string{"singles", "pairs"} {
		check(t, db.CreateCollection(t.Context(), name))
	}
	stream, err := l.singles.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetBatchSize(10))
	check(t, err)
	ctx := t.Context()
	defer l.stop.Store(true)
	var writing, reading sync.WaitGroup
	for range writers {
		writing.Go(func() { l.write(ctx) })
	}
	told := make(chan []int, 1)
	const last = -1
	reading.Go(func() { told <- follow(ctx, stream, last) })
	for range rounds {
		for target := l.done.Load() + perRound; l.done.Load() < target; {
			// Each look costs the server a command more, which is part of the load.
			_ = client.Ping(ctx, nil)
		}
		s.kill()
		s = start(t, s.dir, s.addr)
	}
	l.stop.Store(true)
	writing.Wait()
	_, err = l.singles.InsertOne(ctx, bson.M{"_id": last})
	check(t, err)
	events := <-told
	reading.Wait()
	verify(t, l, events)
}

// TestCommitIsSentAgainAfterAKill: the driver sends a commit again when it does not hear of it, and the server that has carried it out may not
// be there any more.
func TestCommitIsSentAgainAfterAKill(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "db"), lasting(t))
	client := s.connect()
	c := client.Database("kill").Collection("again")
	check(t, client.Database("kill").CreateCollection(t.Context(), "again"))
	session, err := client.StartSession()
	check(t, err)
	defer session.EndSession(context.Background())
	check(t, session.StartTransaction())
	ctx := mongo.NewSessionContext(t.Context(), session)
	_, err = c.InsertOne(ctx, bson.M{})
	check(t, err)
	check(t, session.CommitTransaction(ctx))
	s.kill()
	start(t, s.dir, s.addr)
	check(t, session.CommitTransaction(ctx))
	n, err := c.CountDocuments(t.Context(), bson.M{})
	check(t, err)
	want(t, "documents", n, 1)
}

// follow returns the documents that a stream tells of, up to the one named last.
func follow(ctx context.Context, stream *mongo.ChangeStream, last int) (ids []int) {
	defer func() { _ = stream.Close(context.Background()) }()
	for stream.Next(ctx) {
		var got change
		if err := stream.Decode(&got); err != nil || got.Operation != "insert" {
			return ids
		}
		if ids = append(ids, got.Key.ID); got.Key.ID == last {
			return ids
		}
	}
	return ids
}

// verify compares what the clients were told with what is there.
func verify(t *testing.T, l *load, events []int) {
	singles, pairs := ids(t, l.singles), ids(t, l.pairs)
	var acknowledged, committed int
	l.acknowledged.Range(func(id, _ any) bool {
		if acknowledged++; !singles[id.(int64)] {
			t.Errorf("document %d was acknowledged and is not there", id)
		}
		return true
	})
	l.committed.Range(func(id, _ any) bool {
		if committed++; !pairs[id.(int64)] {
			t.Errorf("the transaction of %d was committed and is not there", id)
		}
		return true
	})
	for id := range pairs {
		if other := (id + pairStride) % (2 * pairStride); !pairs[other] {
			t.Errorf("half of a transaction is there: %d without %d", id, other)
		}
	}
	twice, err := l.pairs.CountDocuments(t.Context(), bson.M{"times": bson.M{"$ne": 1}})
	check(t, err)
	want(t, "halves of transactions that were carried out more than once", twice, 0)
	seen := map[int64]bool{}
	for _, id := range events {
		if seen[int64(id)] {
			t.Errorf("the change stream tells of %d twice", id)
		}
		seen[int64(id)] = true
	}
	for id := range singles {
		if !seen[id] {
			t.Errorf("the change stream does not tell of %d", id)
		}
	}
	want(t, "documents that the stream tells of", len(seen), len(singles))
	t.Logf("%d writes and %d transactions acknowledged over %d kills", acknowledged, committed, rounds)
}

func ids(t *testing.T, c *mongo.Collection) map[int64]bool {
	t.Helper()
	cursor, err := c.Find(t.Context(), bson.M{})
	check(t, err)
	there := map[int64]bool{}
	for cursor.Next(t.Context()) {
		there[cursor.Current.Lookup("_id").AsInt64()] = true
	}
	check(t, cursor.Err())
	return there
}
