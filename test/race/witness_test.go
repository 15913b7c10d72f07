package race

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
)

// kept is the database that only witnesses write to.
const kept = "kept"

// counter is the _id of the counters that all of them raise.
const counter = "counter"

// tally is how often something was raised.
type tally struct {
	sure  atomic.Int64
	maybe atomic.Int64 // besides
}

func (t *tally) add(sure bool) {
	if sure {
		t.sure.Add(1)
	} else {
		t.maybe.Add(1)
	}
}

// witness raises documents of its own, and the counters, and remembers what it was told of that.
type witness struct {
	n      int
	own    [10]tally
	number int64 // of its newest numbered write
}

func (w *witness) id(i int) int32 { return int32(w.n*len(w.own) + i) }

// raise raises the n of a document.
func raise(ctx context.Context, c *document.Collection, id any) error {
	return second(c.Update(ctx, bson.D{{Key: "_id", Value: id}}, increment(), &document.UpdateOptions{Upsert: true}))
}

// callStore raises until the store is closed.
func (w *witness) callStore(r *faultyRun, s *document.Store, rng *rand.Rand) {
	ctx, db := context.Background(), s.Database(kept)
	for {
		i := rng.IntN(len(w.own))
		own := func(ctx context.Context) error { return raise(ctx, db.Lookup("own"), w.id(i)) }
		counters := false
		var err error
		switch rng.IntN(6) {
		case 0:
			err = s.SyncOnce(ctx, 2, func(ctx context.Context) error { return errors.Join(raise(ctx, db.Lookup("other"), w.id(i)), own(ctx)) })
		case 1, 2:
			err = w.once(r, s, own)
		case 3:
			counters = true
			err = s.Transaction(ctx, func(tx *document.Tx) error {
				return errors.Join(raise(ctx, tx.In(db.Lookup("left")), counter), raise(ctx, tx.In(db.Lookup("own")), w.id(i)), raise(ctx, tx.In(db.Lookup("right")), counter))
			})
		default:
			err = own(ctx)
		}
		if code := document.CodeOf(err); code == document.WriteConflict || code == document.DuplicateKey {
			continue // somebody else was quicker, and nothing was written
		}
		w.own[i].add(err == nil)
		if counters {
			r.raised.add(err == nil)
		}
		if errors.Is(err, document.ErrClosed) || err != nil && !r.excuses("", err) {
			return
		}
	}
}

// once writes, and once more where that fails, unless it was carried out.
func (w *witness) once(r *faultyRun, s *document.Store, write func(ctx context.Context) error) error {
	w.number++
	session := fmt.Sprint("witness ", w.n)
	ctx := document.WithStatements(context.Background(), session, w.number, 0)
	err := write(ctx)
	if err == nil || errors.Is(err, document.ErrClosed) || errors.Is(err, pando.ErrFailed) || !r.excuses("", err) {
		return err
	}
	time.Sleep(5 * time.Millisecond)
	done, failed := s.Outcome(session, w.number, 0)
	if done != nil || failed != nil {
		return failed
	}
	return write(ctx)
}

// callServer raises by a command. It reports false when the server has closed.
func (w *witness) callServer(r *faultyRun, c *serverCall) bool {
	i := c.rng.IntN(len(w.own))
	w.number++
	lsid := make([]byte, 16)
	copy(lsid, fmt.Sprint("w", w.n, " ", r.opened))
	session := bson.D{{Key: "lsid", Value: bson.D{{Key: "id", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: lsid}}}}, {Key: "txnNumber", Value: w.number}}
	own := raising("own", w.id(i))
	counters, sent := false, true
	var reply bson.Raw
	switch c.rng.IntN(4) {
	case 0:
		reply = c.send(kept, own)
	case 1:
		counters = true
		reply, sent = w.transaction(c, session, raising("left", counter), own, raising("right", counter))
	default: // as drivers send it
		for again := range 3 {
			time.Sleep(time.Duration(again) * 3 * time.Millisecond)
			if reply = c.send(kept, append(own[:2:2], session...)); c.gone || refusal(reply) == "" {
				break
			}
		}
	}
	text := refusal(reply)
	if sent {
		w.own[i].add(!c.gone && text == "")
	}
	if counters && sent {
		r.raised.add(!c.gone && text == "")
	}
	return !c.gone && (text == "" || passing(reply) || r.excuses(text, nil))
}

func raising(collection string, id any) bson.D {
	one := bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: id}}}, {Key: "u", Value: increment()}, {Key: "upsert", Value: true}}
	return bson.D{{Key: "update", Value: collection}, {Key: "updates", Value: bson.A{one}}}
}

// transaction sends commands in a transaction, and its end, twice where that fails. It reports false where the end was not sent.
func (w *witness) transaction(c *serverCall, session bson.D, commands ...bson.D) (reply bson.Raw, sent bool) {
	session = append(session, bson.E{Key: "autocommit", Value: false})
	for i, command := range commands {
		command = append(command, session...)
		if i == 0 {
			command = append(command, bson.E{Key: "startTransaction", Value: true})
		}
		if reply = c.send(kept, command); c.gone {
			return reply, false
		}
		if refusal(reply) != "" {
			c.send("admin", append(bson.D{{Key: "abortTransaction", Value: 1}}, session...))
			return reply, false
		}
	}
	commit := append(bson.D{{Key: "commitTransaction", Value: 1}}, session...)
	if reply = c.send("admin", commit); c.gone || refusal(reply) == "" {
		return reply, true
	}
	if again := c.send("admin", commit); !c.gone && refusal(again) == "" {
		reply = again
	}
	return reply, true
}

// refusal returns what of a reply says that the command failed; empty: nothing.
func refusal(reply bson.Raw) string {
	if reply == nil {
		return ""
	}
	if ok, _ := reply.Lookup("ok").DoubleOK(); ok != 1 {
		return reply.Lookup("errmsg").StringValue()
	}
	for _, key := range []string{"writeErrors", "writeConcernError"} {
		if v := reply.Lookup(key); v.Type != 0 {
			return v.String()
		}
	}
	return ""
}

// passing reports whether a reply says that somebody else was quicker, or ended what the command was about.
func passing(reply bson.Raw) bool {
	code, _ := reply.Lookup("code").AsInt64OK()
	if v := reply.Lookup("writeErrors", "0", "code"); v.Type != 0 {
		code = v.AsInt64()
	}
	switch document.Code(code) {
	case document.WriteConflict, document.DuplicateKey, document.Code(251), document.Code(11601):
		return true
	}
	return false
}
