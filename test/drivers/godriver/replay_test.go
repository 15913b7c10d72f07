package godriver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	replayIDs     = 12
	replayWriters = 5
	replayKills   = 3
	replayPerKill = 400    // changes
	replayDone    = "done" // the collection whose first document ends the streams
)

func replayed() []string { return []string{"a", "b", "c"} }

// event is what a copy that follows a change stream needs.
type event struct {
	Token     bson.Raw `bson:"_id"`
	Operation string   `bson:"operationType"`
	NS        struct {
		Coll string `bson:"coll"`
	} `bson:"ns"`
	To struct {
		Coll string `bson:"coll"`
	} `bson:"to"`
	Key struct {
		ID int32 `bson:"_id"`
	} `bson:"documentKey"`
	Full   bson.D `bson:"fullDocument"`
	Update struct {
		Set       bson.D   `bson:"updatedFields"`
		Unset     []string `bson:"removedFields"`
		Truncated []struct {
			Field string `bson:"field"`
			Size  int    `bson:"newSize"`
		} `bson:"truncatedArrays"`
	} `bson:"updateDescription"`
}

// copyOf is a copy of collections, by name and _id.
type copyOf map[string]map[int32]bson.D

// apply carries an event out, and says what cannot be true of it.
func (c copyOf) apply(e *event) error {
	docs := c[e.NS.Coll]
	if docs == nil {
		docs = map[int32]bson.D{}
		c[e.NS.Coll] = docs
	}
	before, there := docs[e.Key.ID]
	switch e.Operation {
	case "insert":
		if there {
			return fmt.Errorf("inserted twice: %v into %s", e.Full, e.NS.Coll)
		}
		docs[e.Key.ID] = e.Full
	case "replace":
		if !there {
			return fmt.Errorf("replaced, and not there: %v in %s", e.Full, e.NS.Coll)
		}
		docs[e.Key.ID] = e.Full
	case "update":
		if !there {
			return fmt.Errorf("updated, and not there: %d in %s", e.Key.ID, e.NS.Coll)
		}
		var doc any = before
		for _, cut := range e.Update.Truncated {
			doc = changeAt(doc, strings.Split(cut.Field, "."), func(v any) (any, bool) { return v.(bson.A)[:cut.Size], true })
		}
		for _, set := range e.Update.Set {
			doc = changeAt(doc, strings.Split(set.Key, "."), func(any) (any, bool) { return set.Value, true })
		}
		for _, gone := range e.Update.Unset {
			doc = changeAt(doc, strings.Split(gone, "."), func(any) (any, bool) { return nil, false })
		}
		docs[e.Key.ID] = doc.(bson.D)
	case "delete":
		if !there {
			return fmt.Errorf("deleted, and not there: %d in %s", e.Key.ID, e.NS.Coll)
		}
		delete(docs, e.Key.ID)
	case "drop":
		delete(c, e.NS.Coll)
	case "rename":
		c[e.To.Coll] = docs
		delete(c, e.NS.Coll)
	}
	return nil
}

// changeAt returns v with what lies at a path changed, or without it.
func changeAt(v any, path []string, change func(any) (any, bool)) any {
	if len(path) == 0 {
		changed, _ := change(v)
		return changed
	}
	if array, isArray := v.(bson.A); isArray {
		n, _ := strconv.Atoi(path[0])
		array = slices.Clone(array)
		for len(array) <= n {
			array = append(array, nil)
		}
		array[n] = changeAt(array[n], path[1:], change)
		return array
	}
	doc := slices.Clone(v.(bson.D))
	i := slices.IndexFunc(doc, func(e bson.E) bool { return e.Key == path[0] })
	if len(path) > 1 {
		doc[i].Value = changeAt(doc[i].Value, path[1:], change)
		return doc
	}
	var old any
	if i >= 0 {
		old = doc[i].Value
	}
	switch changed, stays := change(old); {
	case !stays:
		return slices.Delete(doc, i, i+1)
	case i < 0:
		return append(doc, bson.E{Key: path[0], Value: changed})
	default:
		doc[i].Value = changed
	}
	return doc
}

// text is a document as text, its fields in the order of their names: new ones may come in any order.
func text(v any) string {
	switch v := v.(type) {
	case bson.D:
		v = slices.Clone(v)
		slices.SortFunc(v, func(a, b bson.E) int { return strings.Compare(a.Key, b.Key) })
		var b strings.Builder
		for _, e := range v {
			fmt.Fprintf(&b, "%s: %s, ", e.Key, text(e.Value))
		}
		return "{" + b.String() + "}"
	case bson.A:
		var b strings.Builder
		for _, e := range v {
			b.WriteString(text(e) + ", ")
		}
		return "[" + b.String() + "]"
	}
	return fmt.Sprint(v)
}

// changer makes changes of all kinds to collections that others change as well. What is refused is nothing to it.
type changer struct {
	*rand.Rand
	db   *mongo.Database
	made *atomic.Int64
}

func (c *changer) id() bson.M { return bson.M{"_id": int32(c.IntN(replayIDs))} }

func (c *changer) collection() *mongo.Collection {
	return c.db.Collection(replayed()[c.IntN(3)])
}

func (c *changer) value() any {
	switch c.IntN(5) {
	case 0:
		return strings.Repeat("x", c.IntN(300))
	case 1:
		return bson.A{1, bson.D{{Key: "k", Value: c.IntN(5)}}, "x"}
	case 2:
		return bson.D{{Key: "k", Value: c.IntN(5)}, {Key: "l", Value: bson.A{1, 2, 3}}}
	}
	return int32(c.IntN(100))
}

// update returns one of the things that may happen to a document.
func (c *changer) update() any {
	switch c.IntN(10) {
	case 0:
		return bson.M{"$set": bson.M{"v": c.value(), "w.x": c.IntN(9)}}
	case 1:
		return bson.M{"$push": bson.M{"list": bson.M{"$each": bson.A{c.value(), 1}, "$position": c.IntN(3), "$slice": 6}}}
	case 2:
		return bson.M{"$pull": bson.M{"list": 1}}
	case 3:
		return bson.M{"$unset": bson.M{"v": "", "w": ""}}
	case 4:
		return bson.A{bson.M{"$set": bson.M{"n": bson.M{"$add": bson.A{bson.M{"$ifNull": bson.A{"$n", 0}}, 1}}, "w": bson.M{"y": "$v"}}}}
	case 5:
		return bson.A{bson.M{"$unset": "list"}, bson.M{"$set": bson.M{"v": bson.A{}}}}
	case 6:
		return bson.M{"$pop": bson.M{"list": 1}, "$inc": bson.M{"n": 1}}
	case 7:
		return bson.M{"$rename": bson.M{"v": "old"}}
	}
	return bson.M{"$inc": bson.M{"n": 1}}
}

// change makes one change.
func (c *changer) change(ctx context.Context) (err error) {
	coll := c.collection()
	switch c.IntN(14) {
	case 0, 1:
		_, err = coll.InsertOne(ctx, bson.M{"_id": c.id()["_id"], "v": c.value()})
	case 2:
		_, err = coll.DeleteOne(ctx, c.id())
	case 3:
		_, err = coll.ReplaceOne(ctx, c.id(), bson.M{"r": c.value(), "list": bson.A{1, 2}}, options.Replace().SetUpsert(true))
	case 4:
		_, err = coll.UpdateMany(ctx, bson.M{"n": bson.M{"$gt": c.IntN(5)}}, c.update())
	case 5:
		_, err = coll.DeleteMany(ctx, bson.M{"n": bson.M{"$gt": 5 + c.IntN(20)}})
	case 6:
		err = coll.FindOneAndUpdate(ctx, c.id(), c.update(), options.FindOneAndUpdate().SetUpsert(true)).Err()
	case 7:
		err = coll.FindOneAndDelete(ctx, bson.M{"v": bson.M{"$type": "string"}}, options.FindOneAndDelete().SetSort(bson.M{"n": 1})).Err()
	case 8:
		_, err = coll.BulkWrite(ctx, []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(bson.M{"_id": c.id()["_id"]}),
			mongo.NewUpdateOneModel().SetFilter(c.id()).SetUpdate(c.update()).SetUpsert(true),
			mongo.NewDeleteOneModel().SetFilter(c.id()),
		}, options.BulkWrite().SetOrdered(c.IntN(2) == 0))
	default:
		_, err = coll.UpdateOne(ctx, c.id(), c.update(), options.UpdateOne().SetUpsert(c.IntN(2) == 0))
	}
	return err
}

// run goes on until it is told to stop.
func (c *changer) run(ctx context.Context, stop *atomic.Bool) {
	for ctx.Err() == nil && !stop.Load() {
		switch n := c.IntN(60); {
		case n == 0:
			_ = c.collection().Drop(ctx)
		case n == 1:
			from, to := c.collection().Name(), c.collection().Name()
			_ = c.db.Client().Database("admin").RunCommand(ctx, bson.D{{Key: "renameCollection", Value: c.db.Name() + "." + from},
				{Key: "to", Value: c.db.Name() + "." + to}, {Key: "dropTarget", Value: true}}).Err()
		case n == 2:
			_ = c.db.Client().Database("admin").RunCommand(ctx, bson.D{{Key: "killAllSessions", Value: bson.A{}}}).Err()
		case n < 15:
			_ = c.db.Client().UseSession(ctx, func(ctx context.Context) error {
				_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) {
					for range 1 + c.IntN(4) {
						if err := c.change(ctx); err != nil {
							return nil, err
						}
					}
					if c.IntN(5) == 0 {
						return nil, errors.New("given up")
					}
					return nil, nil
				})
				return err
			})
		default:
			_ = c.change(ctx)
		}
		c.made.Add(1)
	}
}

// record reads a stream to the end, and anew from where it stands every so often. It returns all events.
func record(ctx context.Context, db *mongo.Database, o *options.ChangeStreamOptionsBuilder, begun chan<- error, r *rand.Rand) (events []event, err error) {
	stream, err := db.Watch(ctx, mongo.Pipeline{}, o)
	begun <- err
	for err == nil {
		for stream.Next(ctx) {
			var e event
			if err := stream.Decode(&e); err != nil {
				return events, err
			}
			e.Token = bytes.Clone(e.Token)
			if events = append(events, e); e.NS.Coll == replayDone && e.Operation == "insert" {
				return events, stream.Close(ctx)
			}
			if r.IntN(50) == 0 {
				break
			}
		}
		if err = stream.Err(); err != nil && !passing(err) {
			return events, err
		}
		token := stream.ResumeToken()
		_ = stream.Close(ctx)
		for { // the server may be away
			stream, err = db.Watch(ctx, mongo.Pipeline{}, o.SetResumeAfter(token))
			if err == nil || ctx.Err() != nil || !passing(err) {
				break
			}
		}
	}
	return events, err
}

// passing reports whether an error is one of a server that went away, or of a session that was killed.
func passing(err error) bool {
	const interrupted, cursorKilled = 11601, 237
	var failed mongo.CommandError
	return !errors.As(err, &failed) || failed.Code == 0 || failed.HasErrorLabel("ResumableChangeStreamError") ||
		failed.HasErrorCode(interrupted) || failed.HasErrorCode(cursorKilled)
}

// TestReplay: who applies all that a change stream tells has what the server has, although the server is killed, and ended, again and again,
// sessions are killed under their transactions, and collections are dropped and renamed. It is so whatever the size of batches is, and
// wherever the stream is resumed.
func TestReplay(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := start(t, filepath.Join(t.TempDir(), "db"), lasting(t))
	db := s.connect().Database("replay")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, name := range replayed() {
		check(t, db.CreateCollection(ctx, name))
	}
	recordings := make([]chan recording, 3)
	for i := range recordings {
		recordings[i] = make(chan recording, 1)
		begun := make(chan error, 1)
		o := options.ChangeStream().SetBatchSize(int32(1 + 9*i))
		go func() {
			events, err := record(ctx, db, o, begun, rand.New(rand.NewPCG(seed, uint64(100+i))))
			recordings[i] <- recording{events, err}
		}()
		check(t, <-begun)
	}
	made := changeAndKill(ctx, t, s, db, seed)
	_, err := db.Collection(replayDone).InsertOne(ctx, bson.M{"_id": int32(1)})
	check(t, err)
	var first []event
	for i := range recordings {
		r := <-recordings[i]
		if r.err != nil {
			t.Fatalf("stream %d after %d events: %v", i, len(r.events), r.err)
		}
		if i == 0 {
			first = r.events
			t.Logf("%d changes, %d events", made, len(first))
		}
		for j := range min(len(first), len(r.events)) {
			if !bytes.Equal(first[j].Token, r.events[j].Token) {
				t.Fatalf("event %d of stream %d: %v, and %v", j, i, first[j], r.events[j])
			}
		}
		want(t, "events", len(r.events), len(first))
	}
	sameAs(ctx, t, db, first)
	check(t, db.Client().Disconnect(ctx)) // while there is a server
}

// recording is what one stream has told.
type recording struct {
	events []event
	err    error
}

// changeAndKill lets many make changes while the server ends and comes again, and returns how many they were.
func changeAndKill(ctx context.Context, t *testing.T, s *server, db *mongo.Database, seed uint64) int64 {
	t.Helper()
	var stop atomic.Bool
	var made atomic.Int64
	var writing sync.WaitGroup
	defer writing.Wait()
	defer stop.Store(true)
	for i := range replayWriters {
		c := &changer{Rand: rand.New(rand.NewPCG(seed, uint64(i))), db: db, made: &made}
		writing.Go(func() { c.run(ctx, &stop) })
	}
	for kills := range replayKills {
		for target := made.Load() + replayPerKill; made.Load() < target && ctx.Err() == nil; {
			time.Sleep(10 * time.Millisecond)
		}
		if kills%2 == 0 {
			s.kill()
		} else {
			check(t, s.cmd.Process.Signal(syscall.SIGTERM))
			<-s.over
			if err := s.cmd.Wait(); err != nil {
				t.Errorf("SIGTERM: %v: %v", err, s.tail)
			}
		}
		s = start(t, s.dir, s.addr)
	}
	return made.Load()
}

// sameAs compares what is there with what events tell.
func sameAs(ctx context.Context, t *testing.T, db *mongo.Database, events []event) {
	copied := copyOf{}
	for i := range events {
		if err := copied.apply(&events[i]); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	for _, name := range replayed() {
		cursor, err := db.Collection(name).Find(ctx, bson.M{})
		check(t, err)
		var docs []bson.D
		check(t, cursor.All(ctx, &docs))
		for _, doc := range docs {
			id := doc[0].Value.(int32)
			if got := text(copied[name][id]); got != text(doc) {
				t.Errorf("%s: %s, and the events make it %s", name, text(doc), got)
			}
			delete(copied[name], id)
		}
		for _, doc := range copied[name] {
			t.Errorf("%s has %s, by the events", name, text(doc))
		}
	}
}
