package race

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// accounts is the state of all: balances in two collections, and slots of which each has one owner at most, by a unique index.
type accounts struct {
	balance [4]int // the even ones are in one collection, the odd ones in the other
	slot    [2]int // 0: free
}

// ask is a call on the accounts.
type ask struct {
	op   string
	a, b int // accounts, or a slot
	v, w int
}

// told is what came back.
type told struct {
	seen    accounts // of balances those that were read
	n       int
	refused bool // a conflict, or the slot is taken
}

var bank = porcupine.Model{
	Init: func() any { return accounts{balance: [4]int{5, 5, 5, 5}} },
	Step: func(state, input, output any) (bool, any) {
		s, i, o := state.(accounts), input.(ask), output.(told)
		switch i.op {
		case "get", "find by owner":
			return s.balance[i.a] == o.seen.balance[i.a], s
		case "find by value", "find by element":
			n := 0
			for a := i.a % 2; a < len(s.balance); a += 2 {
				if s.balance[a] == i.v {
					n |= 1 << a
				}
			}
			return n == o.n, s
		case "read all", "read all by index":
			return s.balance == o.seen.balance && s.slot == o.seen.slot, s
		case "add":
			s.balance[i.a] += i.v
			return s.balance[i.a] == o.seen.balance[i.a], s
		case "swap":
			if s.balance[i.a] != i.v {
				return o.n == 0, s
			}
			s.balance[i.a] = i.w
			return o.n == 1, s
		case "add to all":
			s.balance[i.a%2]++
			s.balance[i.a%2+2]++
			return o.n == 2, s
		case "claim":
			if s.slot[i.a%2] != 0 {
				return o.refused, s
			}
			s.slot[i.a%2] = i.v
			return !o.refused, s
		case "release":
			if s.slot[i.a%2] == 0 {
				return o.n == 0, s
			}
			s.slot[i.a%2] = 0
			return o.n == 1, s
		default: // transfer
			if o.refused {
				return true, s
			}
			ok := s.balance[i.a] == o.seen.balance[i.a] && s.balance[i.b] == o.seen.balance[i.b]
			s.balance[i.a], s.balance[i.b] = s.balance[i.a]-i.v, s.balance[i.b]+i.v
			return ok, s
		}
	},
	DescribeOperation: func(i, o any) string { return fmt.Sprintf("%+v -> %+v", i, o) },
}

var kinds = []string{"get", "find by owner", "find by value", "find by element", "read all", "read all by index", "add", "swap", "add to all", "claim",
	"release", "transfer", "transfer once", "transfer of a snapshot"}

// TestDocumentsAreLinearizable: reads by _id and by indexes of all kinds, writes of one document, and transactions over two collections,
// while indexes are made and dropped and the store is settled.
func TestDocumentsAreLinearizable(t *testing.T) {
	for profile := pando.Durable; profile <= pando.Bench; profile++ {
		t.Run(profile.String(), func(t *testing.T) {
			for seed := range uint64(2) {
				documentHistory(t, profile, seed)
			}
		})
	}
}

func documentHistory(t *testing.T, profile pando.Profile, seed uint64) {
	b := newBank(t, profile)
	stream := b.watch()
	defer func() { b.fail(stream.Close()) }()
	defer func() { b.fail(b.s.Close()) }()
	stop := make(chan struct{})
	var beside, clients sync.WaitGroup
	beside.Go(func() { b.beside(stop) })
	var h recorder
	for c := range 8 {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(c)))
			for n := range 60 {
				i := ask{op: kinds[rng.IntN(len(kinds))], a: rng.IntN(4), v: rng.IntN(5) + 3, w: rng.IntN(5) + 3}
				switch i.b = (i.a + 1) % 4; i.op {
				case "claim":
					i.v = c*1000 + n + 1
				case "add", "transfer", "transfer once", "transfer of a snapshot":
					i.v -= 5
				}
				if err := h.note(c, i, func() (any, error) { return b.carry(i) }); err != nil {
					t.Errorf("%+v: %v", i, err)
					return
				}
			}
		})
	}
	clients.Wait()
	close(stop)
	beside.Wait()
	h.check(t, bank, seed)
	if profile != pando.Bench { // which keeps no log
		b.follow(stream)
	}
	for _, c := range append(b.balances[:], b.slots) {
		if err := validated(context.Background(), c); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// books is where the accounts are.
type books struct {
	t        *testing.T
	s        *document.Store
	balances [2]*document.Collection
	slots    *document.Collection
}

func (b *books) fail(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Error(err)
	}
}

func newBank(t *testing.T, profile pando.Profile) *books {
	s, err := document.Open("db", &document.Options{Storage: pando.Options{FS: memfs.New(), Profile: profile, MemoryBytes: 1 << 20}, TTLInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	d := s.Database("test")
	b := &books{t: t, s: s, balances: [2]*document.Collection{d.Lookup("even"), d.Lookup("odd")}, slots: d.Lookup("slots")}
	ctx := context.Background()
	_, err = b.slots.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"slot": 1}`), Unique: true})
	b.fail(err)
	b.fail(b.slots.Modify(ctx, document.JSON(`{"changeStreamPreAndPostImages": {"enabled": true}}`)))
	for a := range 4 {
		_, err := b.balances[a%2].Insert(ctx, bson.D{{Key: "_id", Value: a}, {Key: "owner", Value: fmt.Sprint("o", a)}, {Key: "v", Value: 5}, {Key: "l", Value: bson.A{5, 5 + far}}})
		b.fail(err)
	}
	for _, c := range b.balances {
		b.fail(c.Modify(ctx, document.JSON(`{"changeStreamPreAndPostImages": {"enabled": true}}`)))
		for _, keys := range []string{`{"owner": 1}`, `{"v": 1, "owner": -1}`, `{"l": 1}`, `{"v": "hashed"}`} {
			_, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(keys)})
			b.fail(err)
		}
	}
	return b
}

// beside makes and drops indexes and settles the store.
func (b *books) beside(stop chan struct{}) {
	ctx := context.Background()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		c := b.balances[i%2]
		_, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"v": 1}`)})
		b.fail(err)
		b.fail(c.DropIndex(ctx, "v_1"))
		if i%8 == 0 {
			b.fail(b.s.DB().Checkpoint(ctx))
		}
	}
}

// far is how far the second element of the array beside a balance is from it.
const far = 1 << 20

// change is an update of a balance that keeps the array beside it right.
func change(v any) []bson.D {
	return []bson.D{{{Key: "$set", Value: bson.D{{Key: "v", Value: v}}}}, {{Key: "$set", Value: bson.D{{Key: "l", Value: bson.A{"$v", bson.D{{Key: "$add", Value: bson.A{"$v", far}}}}}}}}}
}

func plus(n int) []bson.D { return change(bson.D{{Key: "$add", Value: bson.A{"$v", n}}}) }

func (b *books) carry(i ask) (o told, err error) {
	ctx := context.Background()
	c := b.balances[i.a%2]
	id := bson.D{{Key: "_id", Value: i.a}}
	switch i.op {
	case "get":
		o.seen.balance[i.a], err = balance(c.Get(ctx, i.a))
	case "find by owner":
		o.seen.balance[i.a], err = balance(c.FindOne(ctx, bson.D{{Key: "owner", Value: fmt.Sprint("o", i.a)}}, nil))
	case "find by value":
		o.n, err = found(c, bson.D{{Key: "v", Value: i.v}})
	case "find by element":
		o.n, err = found(c, bson.D{{Key: "l", Value: i.v + far}})
	case "read all", "read all by index":
		return b.all(i.op == "read all by index")
	case "add":
		d, _, e := c.FindAndModify(ctx, id, plus(i.v), &document.ModifyOptions{New: true})
		o.seen.balance[i.a], err = balance(d, e)
	case "swap":
		var r *document.UpdateResult
		if r, err = c.Apply(ctx, append(id, bson.E{Key: "v", Value: i.v}), change(i.w), nil); err == nil {
			o.n = int(r.Matched)
		}
	case "add to all":
		err = b.s.Transaction(ctx, func(tx *document.Tx) error {
			r, err := tx.In(c).Apply(ctx, bson.D{{Key: "v", Value: bson.D{{Key: "$gte", Value: -1_000_000}}}}, plus(1), &document.UpdateOptions{Many: true})
			if err == nil {
				o.n = int(r.Matched)
			}
			return err
		})
	case "claim":
		_, err = b.slots.Insert(ctx, bson.D{{Key: "_id", Value: i.v}, {Key: "slot", Value: i.a % 2}})
		if o.refused = errors.Is(err, document.DuplicateKey); o.refused {
			err = nil
		}
	case "release":
		var n int64
		n, err = b.slots.Delete(ctx, bson.D{{Key: "slot", Value: i.a % 2}}, nil)
		o.n = int(n)
	default:
		err = b.transfer(i, &o)
		if o.refused = errors.Is(err, document.WriteConflict); o.refused {
			err = nil
		}
	}
	return o, err
}

// transfer moves money between the collections. It reads by an index and by _id.
func (b *books) transfer(i ask, o *told) error {
	ctx := context.Background()
	from, to := b.balances[i.a%2], b.balances[i.b%2]
	do := func(tx *document.Tx) (err error) {
		if o.seen.balance[i.a], err = balance(tx.In(from).FindOne(ctx, bson.D{{Key: "owner", Value: fmt.Sprint("o", i.a)}}, nil)); err != nil {
			return err
		}
		if o.seen.balance[i.b], err = balance(tx.In(to).Get(ctx, i.b)); err != nil {
			return err
		}
		// A transaction that says what it wants to be, and so writes nothing when it is that already, holds what it read all the same.
		_, err = tx.In(from).Apply(ctx, bson.D{{Key: "_id", Value: i.a}}, change(o.seen.balance[i.a]-i.v), nil)
		if err == nil {
			_, err = tx.In(to).Apply(ctx, bson.D{{Key: "_id", Value: i.b}}, plus(i.v), nil)
		}
		return err
	}
	begin := b.s.Begin
	switch i.op {
	case "transfer":
		return b.s.Transaction(ctx, do)
	case "transfer of a snapshot":
		begin = b.s.BeginSnapshot
	}
	tx, err := begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Abort()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// all reads everything at one moment.
func (b *books) all(byIndex bool) (o told, err error) {
	ctx := context.Background()
	snap, err := b.s.Snapshot(ctx)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	for n, c := range append(b.balances[:], b.slots) {
		f := &document.FindOptions{}
		if byIndex && n < 2 {
			f.Hint = "v_1_owner_-1"
		}
		for d, err := range snap.In(c).Find(ctx, nil, f) {
			if err != nil {
				return o, err
			}
			id := int(d.Lookup("_id").AsInt64())
			if n < 2 {
				o.seen.balance[id] = int(d.Lookup("v").AsInt64())
			} else {
				o.seen.slot[d.Lookup("slot").AsInt64()] = id
			}
		}
	}
	return o, nil
}

func balance(d bson.Raw, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return int(d.Lookup("v").AsInt64()), nil
}

// found is the set of those that match.
func found(c *document.Collection, filter bson.D) (set int, err error) {
	for d, err := range c.Find(context.Background(), filter, nil) {
		if err != nil {
			return 0, err
		}
		set |= 1 << d.Lookup("_id").AsInt64()
	}
	return set, nil
}

// watch opens a stream with the documents before and after each change.
func (b *books) watch() *document.Cursor {
	c, err := b.s.OpenWatch(context.Background(), nil, &document.WatchOptions{FullDocument: "required", FullDocumentBeforeChange: "required"})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// follow looks whether a stream tells of each document one state after the other, and of none that is not there in the end.
func (b *books) follow(stream *document.Cursor) {
	ctx := context.Background()
	state := map[string]bson.Raw{}
	const last = -1
	_, err := b.slots.Insert(ctx, bson.D{{Key: "_id", Value: last}, {Key: "slot", Value: last}})
	b.fail(err)
	for ended := false; !ended && stream.Next(ctx); {
		e := slices.Clone(stream.Current())
		ended = e.Lookup("documentKey", "_id").AsInt64() == last
		id := fmt.Sprint(e.Lookup("ns", "coll").StringValue(), e.Lookup("documentKey", "_id"))
		before, _ := e.Lookup("fullDocumentBeforeChange").DocumentOK()
		after, _ := e.Lookup("fullDocument").DocumentOK()
		if is := state[id]; is != nil && !slices.Equal(is, before) {
			b.t.Errorf("%s: it was %s", e, is)
		}
		state[id] = after
	}
	b.fail(stream.Err())
	for _, c := range append(b.balances[:], b.slots) {
		for d, err := range c.Find(ctx, nil, nil) {
			b.fail(err)
			id := fmt.Sprint(c.Name(), d.Lookup("_id"))
			if told, ok := state[id]; ok && !slices.Equal(told, d) {
				b.t.Errorf("the last that was told of %s is %s", d, told)
			}
			delete(state, id)
		}
	}
	for id, d := range state {
		if d != nil {
			b.t.Errorf("nothing was told of the end of %s: %s", id, d)
		}
	}
}
