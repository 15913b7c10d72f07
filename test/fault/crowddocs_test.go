package fault

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestDocumentCrowdStorm has several writers of the same documents at once while faults come and go, and the power goes while they write: at
// each moment every index tells what the documents tell, a unique one holds nothing twice, what transactions write together is there
// together, and a counter has been raised as often as was acknowledged.
func TestDocumentCrowdStorm(t *testing.T) {
	eachStorm(t, onlyAsked, onlyAsked, func(t *testing.T, seed uint64) { newDocCrowd(t, seed).run() })
}

// docCrowd is a store on a device with faults, and those who write to it.
type docCrowd struct {
	crowd
	stormStore
	rngs []*rand.Rand // of the writers
}

func newDocCrowd(t *testing.T, seed uint64) *docCrowd {
	s := new(docCrowd)
	s.t, s.seed, s.rng = t, seed, rand.New(rand.NewPCG(seed, 15))
	log := slog.New(stormLog{&s.stormDevice})
	s.options = document.Options{Storage: pando.Options{MemoryBytes: 1 << 20, Logger: log}, TTLInterval: -1, History: 256 << 10, Logger: log}
	s.start(s)
	for n := range 2 + s.rng.Uint64N(4) {
		s.rngs = append(s.rngs, rand.New(rand.NewPCG(seed, 100+n)))
	}
	return s
}

func (s *docCrowd) plug(base *memfs.FS) {
	s.stormDevice.plug(base)
	s.on(s.fs)
}

func (s *docCrowd) open() error { return s.opened(s.openStore()) }

func (s *docCrowd) close() error { return s.store.Close() }

func (s *docCrowd) run() {
	s.t.Helper()
	s.must("open", s.open())
	defer s.leave(s)
	for _, index := range []document.Index{
		{Keys: bson.D{{Key: "n", Value: 1}}}, {Keys: bson.D{{Key: "u", Value: 1}}, Unique: true}, {Keys: bson.D{{Key: "arr", Value: 1}}},
	} {
		_, err := s.collection("c").CreateIndex(ctx, index)
		s.must("create index", err)
	}
	s.write(60)
	for range 6 {
		if s.rng.IntN(2) == 0 {
			s.reopen(s) // nothing is in memory
		}
		s.begin()
		s.write(10 + s.rng.IntN(40))
		s.recover()
	}
	s.must("close", s.store.Close())
	s.noLeaks("")
}

// write lets all writers take so many steps.
func (s *docCrowd) write(steps int) {
	s.t.Helper()
	s.crowd.write(s, len(s.rngs), func(n int) {
		w := &docCrowdWriter{s: s, n: n, rng: s.rngs[n]}
		for range steps {
			if w.rng.IntN(3) == 0 {
				time.Sleep(time.Duration(w.rng.IntN(30)) * time.Millisecond)
			}
			if stepOf(w, w.rng, docCrowdSteps); s.t.Failed() {
				return
			}
		}
	})
}

// recover ends the fault and looks whether everything works.
func (s *docCrowd) recover() {
	s.t.Helper()
	s.calm()
	s.stormDevice.judge("sync", s.store.DB().Sync()) // what failed in the background is told now
	if s.failed {
		s.reopen(s)
	}
	s.write(3)
	s.must("checkpoint", s.store.DB().Checkpoint(ctx))
	s.lookAtAll()
	report, err := s.store.DB().Check(ctx)
	s.must("check", errors.Join(err, report.Err()))
	time.Sleep(forgotten)
}

func (s *docCrowd) lookAtAll() {
	s.t.Helper()
	for _, name := range append([]string{"c"}, pairs...) {
		w := &docCrowdWriter{s: s}
		w.validate(name)
	}
	users := map[string]bool{}
	for doc, err := range s.collection("c").Find(ctx, nil, nil) {
		s.must("find", err)
		if u := doc.Lookup("u").StringValue(); users[u] {
			s.fatalf("two documents have %s", u)
		} else {
			users[u] = true
		}
	}
	left, right := s.all(pairs[0]), s.all(pairs[1])
	if !bytes.Equal(left, right) {
		s.fatalf("half a transaction: %v and %v", left, right)
	}
	doc, err := s.collection("counter").Get(ctx, counterKey)
	if !errors.Is(err, document.ErrNotFound) {
		s.must("get", err)
	}
	n, _ := doc.Lookup("n").AsInt64OK()
	s.counted(n)
}

// all returns the documents of a collection, one behind the other.
func (s *docCrowd) all(name string) (all []byte) {
	s.t.Helper()
	for doc, err := range s.collection(name).Find(ctx, nil, &document.FindOptions{Sort: document.JSON(`{"_id": 1}`)}) {
		s.must("find", err)
		all = append(all, doc...)
	}
	return all
}

// docCrowdWriter is one of the writers.
type docCrowdWriter struct {
	s   *docCrowd
	n   int
	rng *rand.Rand
}

// docCrowdSteps are what a step of a writer may be, each as often as its weight says.
var docCrowdSteps = []stormStep[*docCrowdWriter]{
	{12, (*docCrowdWriter).insert},
	{12, (*docCrowdWriter).update},
	{4, (*docCrowdWriter).updateMany},
	{6, (*docCrowdWriter).delete},
	{6, (*docCrowdWriter).raise},
	{6, (*docCrowdWriter).pair},
	{5, (*docCrowdWriter).find},
	{2, func(w *docCrowdWriter) { w.validate("c") }},
	{1, (*docCrowdWriter).index},
	{1, func(w *docCrowdWriter) { w.s.judge(w.n, "checkpoint", w.s.store.DB().Checkpoint(ctx)) }},
}

// judge is that of the crowd, for errors that no other writer is the reason of.
func (w *docCrowdWriter) judge(what string, err error) bool {
	switch document.CodeOf(err) {
	case document.DuplicateKey, document.WriteConflict, document.IndexNotFound, indexBuildAborted:
		return true
	}
	return w.s.judge(w.n, what, err)
}

func (w *docCrowdWriter) id() int32 { return w.rng.Int32N(120) }

func (w *docCrowdWriter) doc() bson.D {
	doc := bson.D{
		{Key: "n", Value: w.rng.Int32N(100)}, {Key: "u", Value: fmt.Sprint("user", w.rng.IntN(300))}, {Key: "arr", Value: []int32{w.rng.Int32N(9), w.rng.Int32N(9)}},
	}
	for i := range w.rng.IntN(5) {
		doc = append(doc, bson.E{Key: fmt.Sprint("f", w.rng.IntN(4), i), Value: strings.Repeat("f", w.rng.IntN(20))})
	}
	if w.rng.IntN(20) == 0 {
		doc = append(doc, bson.E{Key: "pad", Value: strings.Repeat("pad\n", w.rng.IntN(4000))})
	}
	return doc
}

func (w *docCrowdWriter) insert() {
	_, err := w.s.collection("c").Insert(ctx, append(byID(w.id()), w.doc()...))
	w.judge("insert", err)
}

func (w *docCrowdWriter) update() {
	c, q := w.s.collection("c"), byID(w.id())
	var err error
	switch w.rng.IntN(4) {
	case 0:
		_, err = c.Replace(ctx, q, w.doc(), &document.UpdateOptions{Upsert: true})
	case 1:
		_, err = c.Update(ctx, q, bson.D{{Key: "$set", Value: w.doc()}}, nil)
	case 2:
		_, _, err = c.FindAndModify(ctx, q, document.JSON(`{"$push": {"arr": 3}}`), nil)
		if errors.Is(err, document.ErrNotFound) {
			err = nil
		}
	default:
		_, err = c.Update(ctx, q, document.JSON(`{"$inc": {"n": 1}}`), nil)
	}
	w.judge("update", err)
}

func (w *docCrowdWriter) between() (low, high int32, filter bson.D) {
	low = w.rng.Int32N(100)
	high = low + w.rng.Int32N(15)
	return low, high, between(low, high)
}

func (w *docCrowdWriter) updateMany() {
	_, _, filter := w.between()
	_, err := w.s.collection("c").Update(ctx, filter, document.JSON(`{"$inc": {"n": 5}}`), &document.UpdateOptions{Many: true})
	w.judge("update many", err)
}

func (w *docCrowdWriter) delete() {
	c := w.s.collection("c")
	var err error
	if w.rng.IntN(4) == 0 {
		_, _, filter := w.between()
		_, err = c.Delete(ctx, filter, &document.DeleteOptions{Many: true})
	} else {
		_, err = c.Delete(ctx, byID(w.id()), nil)
	}
	w.judge("delete", err)
}

// raise raises the counter, in a transaction or without.
func (w *docCrowdWriter) raise() {
	one := func(c *document.Collection) error {
		_, err := c.Update(ctx, bson.D{{Key: "_id", Value: counterKey}}, document.JSON(`{"$inc": {"n": 1}}`), &document.UpdateOptions{Upsert: true})
		return err
	}
	c := w.s.collection("counter")
	var err error
	if w.rng.IntN(2) == 0 {
		err = w.s.store.Transaction(ctx, func(tx *document.Tx) error { return one(tx.In(c)) })
	} else {
		err = one(c)
	}
	if code := document.CodeOf(err); code == document.WriteConflict || code == document.DuplicateKey {
		return // nothing was written
	}
	w.judge("raise the counter", err)
	w.s.raise(err)
}

// pair writes two documents that are as they are together.
func (w *docCrowdWriter) pair() {
	id := w.id()
	w.judge("transaction", w.s.writePair(id, append(byID(id), w.doc()...)))
}

// find looks whether what it finds is what it looked for.
func (w *docCrowdWriter) find() {
	low, high, filter := w.between()
	for doc, err := range w.s.collection("c").Find(ctx, filter, nil) {
		if w.judge("find", err) {
			return
		}
		if n := doc.Lookup("n").AsInt64(); n < int64(low) || n >= int64(high) {
			w.s.fail(w.n, "%v was found by %v", doc, filter)
		}
	}
}

// validate looks whether every index tells what the documents tell, while others write.
func (w *docCrowdWriter) validate(name string) {
	v, err := w.s.collection(name).Validate(ctx)
	if w.judge("validate", err) {
		return
	}
	if err := disagreement(v); err != nil {
		w.s.fail(w.n, "%s: %v", name, err)
	}
}

// index makes an index, or drops it.
func (w *docCrowdWriter) index() {
	c := w.s.collection("c")
	name := []string{"f00_1", "n_1_arr_1"}[w.rng.IntN(2)]
	if w.rng.IntN(2) == 0 {
		w.judge("drop index", c.DropIndex(ctx, name))
		return
	}
	keys := bson.D{{Key: "f00", Value: 1}}
	if name != "f00_1" {
		keys = bson.D{{Key: "n", Value: 1}, {Key: "arr", Value: 1}}
	}
	_, err := c.CreateIndex(ctx, document.Index{Keys: keys, Name: name})
	w.judge("create index", err)
}
