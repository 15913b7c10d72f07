package document_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// Whatever moment the power fails at: acknowledged documents are there, transactions are whole or absent, and known to have been committed
// when they are there, every index that is ready says what the documents say, an index that was being built is gone, and all can be
// decoded.
func TestPowerCutsLeaveAWholeStore(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	c := collection(t, s, "c", nil)
	_, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "u", Value: 1}}, Unique: true})
	must(t, err)
	w := crashWriters{stop: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() { w.run(t, func(i int) error { return w.insert(c, i) }) })
	wg.Go(func() { w.run(t, func(i int) error { return w.insertPair(s, i) }) })
	wg.Go(func() { w.run(t, func(int) error { return w.makeIndex(c) }) })
	rng := rand.New(rand.NewPCG(1, 2))
	for range powerCuts {
		for before := w.acknowledged.Load(); w.acknowledged.Load() < before+50 && !t.Failed(); {
			time.Sleep(100 * time.Microsecond) // some more writes between two crashes
		}
		least := w.acknowledged.Load()
		image := fs.CrashImage(memfs.Policy{Unsynced: memfs.Unsynced(rng.IntN(3)), Seed: rng.Uint64(), Reordered: rng.IntN(2) == 0, Stale: rng.IntN(2) == 0})
		func() {
			w.steps.Lock()
			defer w.steps.Unlock()
			checkImage(t, image, least)
		}()
	}
	close(w.stop)
	wg.Wait()
}

// crashWriters are those that write while the power fails.
type crashWriters struct {
	stop         chan struct{}
	steps        sync.RWMutex // shared for each step: who looks at an image keeps them waiting, else each would be larger than the last
	acknowledged atomic.Int64 // documents that insert has inserted
}

// run takes steps until it is stopped.
func (w *crashWriters) run(t *testing.T, step func(i int) error) {
	for i := 0; ; i++ {
		select {
		case <-w.stop:
			return
		default:
		}
		w.steps.RLock()
		err := step(i)
		w.steps.RUnlock()
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// insert inserts documents one by one, of many shapes, so that templates and dictionaries are made meanwhile.
func (w *crashWriters) insert(c *document.Collection, i int) error {
	doc := bson.D{{Key: "_id", Value: i}, {Key: "u", Value: fmt.Sprintf("user%d@example.com", i)}, {Key: "v", Value: i % 7}}
	if i%3 == 0 {
		doc = append(doc, bson.E{Key: fmt.Sprintf("f%d", i%9), Value: bson.A{i, "x"}})
	}
	_, err := c.Insert(ctx, doc)
	if err == nil {
		w.acknowledged.Store(int64(i + 1))
	}
	return err
}

// pairs is the session of the transactions that insertPair makes.
const pairs = "pairs"

// insertPair inserts documents that are there together or not at all.
func (w *crashWriters) insertPair(s *document.Store, i int) error {
	a, b := s.Database("test").Lookup("a"), s.Database("test").Lookup("b")
	return s.Transaction(document.WithStatements(ctx, pairs, int64(i)), func(tx *document.Tx) error {
		for _, x := range []*document.Collection{a, b} {
			if _, err := tx.In(x).Insert(ctx, bson.D{{Key: "_id", Value: i}}); err != nil {
				return err
			}
		}
		return nil
	})
}

// makeIndex makes an index that comes and goes.
func (w *crashWriters) makeIndex(c *document.Collection) error {
	if _, err := c.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "v", Value: 1}}}); err != nil {
		return err
	}
	return c.DropIndex(ctx, "v_1")
}

// checkImage opens what a crash has left and looks at all of it.
func checkImage(t *testing.T, fs *memfs.FS, least int64) {
	t.Helper()
	s, err := document.Open("db", &document.Options{Storage: pando.Options{FS: fs, MemoryBytes: 4 << 20}, TTLInterval: -1})
	if err != nil {
		t.Fatalf("with %d acknowledged: %v", least, err)
	}
	defer func() { must(t, s.Close()) }()
	d := s.Database("test")
	c := d.Lookup("c")
	n, err := c.Count(ctx, nil, nil)
	must(t, err)
	if n < least {
		t.Fatalf("%d documents, %d were acknowledged", n, least)
	}
	natural := find(t, c, `{}`, &document.FindOptions{Sort: document.JSON(`{"_id": 1}`)})
	indexes, err := c.Indexes(ctx)
	must(t, err)
	for _, x := range indexes {
		got := find(t, c, `{}`, &document.FindOptions{Sort: document.JSON(`{"_id": 1}`), Hint: x.Name})
		if got != natural {
			t.Fatalf("index %s says otherwise than the documents", x.Name)
		}
	}
	if a, b := find(t, d.Lookup("a"), `{}`, nil), find(t, d.Lookup("b"), `{}`, nil); a != b {
		t.Fatalf("half a transaction:\n%s\nand\n%s", a, b)
	}
	n, err = d.Lookup("a").Count(ctx, nil, nil)
	must(t, err)
	if number, is, err := s.NewestNumber(pairs); number != n-1 || is != (n > 0) || err != nil {
		t.Fatalf("%d transactions are there, and the newest that is known has the number %d: %v, %v", n, number, is, err)
	}
	report, err := s.DB().Check(ctx)
	must(t, err)
	must(t, report.Err())
}
