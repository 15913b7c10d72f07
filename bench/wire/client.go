package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/pandodb/pando/bench/measure"
)

// client is the connections to one server, and what it knows to be there.
type client struct {
	server  *server
	sizes   Sizes
	db      *mongo.Client
	records *mongo.Collection // YCSB's
	users   *mongo.Collection
	there   acknowledged // YCSB's records
}

// patience is how long a server may take to become writable.
const patience = time.Minute

// connect opens as many connections as there are threads, and waits until the server takes writes.
func connect(ctx context.Context, s *server, o Options) (*client, error) {
	journal := true
	threads := uint64(o.Sizes.Threads)
	db, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.addr + "/?directConnection=true").
		SetMaxPoolSize(threads).SetMinPoolSize(threads).SetServerSelectionTimeout(patience).
		SetWriteConcern(&writeconcern.WriteConcern{W: 1, Journal: &journal}))
	if err != nil {
		return nil, err
	}
	c := &client{server: s, sizes: o.Sizes, db: db}
	c.records, c.users = db.Database("ycsb").Collection("usertable"), db.Database("ycsb").Collection("users")
	if err := c.ready(ctx, o.Standalone); err != nil {
		return nil, errors.Join(err, db.Disconnect(ctx))
	}
	return c, nil
}

// ready makes mongod the only member of its replica set, and makes the collection of users with its indexes.
func (c *client) ready(ctx context.Context, standalone bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	admin := c.db.Database("admin")
	if !standalone {
		var e mongo.CommandError
		const alreadyInitialized, noSuchCommand, notSupported = 23, 59, 115
		members := bson.A{bson.D{{Key: "_id", Value: 0}, {Key: "host", Value: c.server.addr}}}
		initiate := bson.D{{Key: "replSetInitiate", Value: bson.D{{Key: "_id", Value: "rs0"}, {Key: "members", Value: members}}}}
		err := admin.RunCommand(ctx, initiate).Err()
		if errors.As(err, &e) && (e.Code == alreadyInitialized || e.Code == noSuchCommand || e.Code == notSupported) {
			err = nil // it is one by itself, or never will be
		}
		if err != nil {
			return fmt.Errorf("replSetInitiate: %w", err)
		}
	}
	for {
		var hello struct {
			Writable bool `bson:"isWritablePrimary"`
			Old      bool `bson:"ismaster"`
		}
		if err := admin.RunCommand(ctx, bson.D{{Key: "isMaster", Value: 1}}).Decode(&hello); err != nil {
			return err
		}
		if hello.Writable || hello.Old {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	_, err := c.users.Indexes().CreateMany(ctx, []mongo.IndexModel{
		{Keys: bson.D{{Key: "email", Value: 1}}, Options: options.Index().SetUnique(true)},
		{Keys: bson.D{{Key: "city", Value: 1}}},
	})
	return err
}

func (c *client) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = c.db.Disconnect(ctx) // the server is about to be killed
}

// thread is one of those that send operations.
type thread struct {
	c       *client
	rng     *rand.Rand
	latency *measure.Latency
}

// measure carries out a workload, and charges the server with what it does afterwards because of it.
func (c *client) measure(ctx context.Context, w workload) (cell Cell) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	ops := w.ops(c.sizes)
	do := w.prepare(c, ops)
	pid := c.server.cmd.Process.Pid
	user, system, err := measure.CPUOf(pid)
	if err != nil {
		cell.Failed = err.Error()
		return cell
	}
	before := measure.Now()
	latency, err := c.spread(ctx, ops, do)
	after := measure.Now()
	if err == nil {
		err = c.settle(ctx, pid)
		cell.Wall, cell.Client = int64(after.Wall.Sub(before.Wall)), int64(after.CPU()-before.CPU())
		cell.Ops = int64(ops) * int64(w.documents())
	}
	if err == nil {
		var u, s time.Duration
		u, s, err = measure.CPUOf(pid)
		cell.User, cell.System = int64(u-user), int64(s-system)
	}
	if err == nil && w.check != nil {
		err = w.check(ctx, c)
	}
	if err != nil {
		cell.Failed = err.Error()
		return cell
	}
	cell.P50, cell.P99, cell.P999 = int64(latency.At(50)), int64(latency.At(99)), int64(latency.At(99.9))
	cell.Peak, cell.Disk = measure.PeakOf(pid), measure.DiskBytes(c.server.dir)
	return cell
}

// settle has the server write a checkpoint, and waits until it has little left to do: that belongs to the workload that made it
// necessary. By themselves servers write checkpoints after a pause or from time to time (mongod each minute), and so in the time of another
// workload, or of none. The command fsync asks for one; who does not know it has no files.
func (c *client) settle(ctx context.Context, pid int) error {
	const window = 200 * time.Millisecond
	const noSuchCommand = 59
	var e mongo.CommandError
	err := c.db.Database("admin").RunCommand(ctx, bson.D{{Key: "fsync", Value: 1}}).Err()
	if err != nil && (!errors.As(err, &e) || e.Code != noSuchCommand) {
		return fmt.Errorf("fsync: %w", err)
	}
	time.Sleep(c.sizes.Pause)
	for range 25 {
		u1, s1, err := measure.CPUOf(pid)
		time.Sleep(window)
		u2, s2, err2 := measure.CPUOf(pid)
		if err != nil || err2 != nil || u2+s2-u1-s1 <= window/10 {
			break
		}
	}
	return nil
}

// spread carries out operations 0 to ops by all threads, and stops at the first error.
func (c *client) spread(ctx context.Context, ops int, do func(ctx context.Context, t *thread, i int) error) (*measure.Latency, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	threads := make([]*thread, c.sizes.Threads)
	for n := range threads {
		t := &thread{c: c, rng: rand.New(rand.NewPCG(uint64(n), 7)), latency: measure.NewLatency()}
		threads[n] = t
		wait.Go(func() {
			for i := n; i < ops && ctx.Err() == nil; i += len(threads) {
				begin := time.Now()
				if err := do(ctx, t, i); err != nil {
					cancel(fmt.Errorf("operation %d: %w", i, err))
					return
				}
				t.latency.Record(time.Since(begin))
			}
		})
	}
	wait.Wait()
	for _, t := range threads[1:] {
		threads[0].latency.Merge(t.latency)
	}
	return threads[0].latency, context.Cause(ctx)
}

// acknowledged says how many records are there for certain: all below a number whose inserts have been acknowledged.
type acknowledged struct {
	mu    sync.Mutex
	begun int
	upTo  int
	early map[int]struct{}
}

// next returns the next record to insert.
func (a *acknowledged) next() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun++
	return a.begun - 1
}

// done notes that a record has been acknowledged.
func (a *acknowledged) done(i int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.early == nil {
		a.early = map[int]struct{}{}
	}
	a.early[i] = struct{}{}
	for {
		if _, ok := a.early[a.upTo]; !ok {
			return
		}
		delete(a.early, a.upTo)
		a.upTo++
	}
}

// count returns how many there are.
func (a *acknowledged) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.upTo
}
