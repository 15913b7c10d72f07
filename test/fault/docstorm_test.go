package fault

import (
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestDocumentStorm is TestStorm for documents: each is as it was written, every index tells what the documents tell, transactions are
// whole, and collections and indexes are there when that was acknowledged, whatever faults come and go.
func TestDocumentStorm(t *testing.T) {
	eachStorm(t, usualOtherStorms, 1000, func(t *testing.T, seed uint64) { newDocStorm(t, seed).run() })
}

// docStorm is a store on a device with faults, and what it ought to hold.
type docStorm struct {
	stormDevice
	stormStore
	tables   map[string]*docTable
	written  written
	rows     map[string][]docRow // of collections that are only inserted into
	watching *docWatch           // nil: nobody does
	drawn    int                 // numbers of texts
	lives    int                 // how often it went on with what something has left
}

func newDocStorm(t *testing.T, seed uint64) *docStorm {
	s := &docStorm{stormDevice: stormDevice{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 12))}, tables: map[string]*docTable{}, written: written{}, rows: map[string][]docRow{"capped": {}, "series": {}}}
	s.options = document.Options{
		Storage: pando.Options{MemoryBytes: 1 << 20, Logger: slog.New(stormLog{&s.stormDevice})}, TTLInterval: -1, History: -1,
		Logger: slog.New(stormLog{&s.stormDevice}), QueryMemoryBytes: 16 << 10,
	}
	s.profile = []pando.Profile{pando.Durable, pando.Durable, pando.Relaxed}[s.rng.IntN(3)]
	s.options.Storage.Profile = s.profile
	if s.rng.IntN(2) == 0 {
		s.options.History = 256 << 10
	}
	if s.rng.IntN(2) == 0 {
		s.options.Storage.ValueThreshold = 300
	}
	s.start(s)
	return s
}

func (s *docStorm) plug(base *memfs.FS) {
	s.stormDevice.plug(base)
	s.on(s.fs)
}

func (s *docStorm) run() {
	s.t.Helper()
	s.must("open", s.open())
	defer s.leave(s)
	for _, name := range pairs {
		_, err := s.database().Collection(ctx, name, nil)
		s.must("create", err)
		s.tables[name] = newDocTable(s.written)
	}
	s.must("create", s.database().Create(ctx, "capped", bson.D{{Key: "capped", Value: true}, {Key: "size", Value: 1 << 20}, {Key: "max", Value: mostCapped}}))
	s.must("create", s.database().Create(ctx, "series", bson.D{{Key: "timeseries", Value: bson.D{{Key: "timeField", Value: "at"}, {Key: "metaField", Value: "of"}}}}))
	s.sync()
	for range 3 {
		s.create()
	}
	for range 300 {
		s.insert()
	}
	for range 6 {
		if s.rng.IntN(2) == 0 {
			s.reopen() // nothing is in memory
		}
		s.watch()
		s.begin()
		for range 10 + s.rng.IntN(120) {
			if time.Since(s.since) > brief {
				break
			}
			s.step()
		}
		s.recover()
	}
	s.end()
}

// recover ends the fault and looks whether everything works.
func (s *docStorm) recover() {
	s.t.Helper()
	again := s.rng.IntN(4)
	if again == 0 {
		s.cutPower(s)
	}
	s.calm()
	if s.watching != nil {
		s.watching.late = s.watching.cursor != nil
	}
	s.sync() // what failed in the background is told now
	if s.failed || again == 1 {
		s.reopen()
	}
	s.retry()
	s.create()
	s.insert()
	s.must("checkpoint", s.store.DB().Checkpoint(ctx))
	s.settled()
	s.lookAtAll()
	s.lookAtEvents()
	if s.rng.IntN(3) == 0 {
		s.salvage()
	}
	if s.rng.IntN(4) == 0 {
		s.restore()
	}
	if s.rng.IntN(4) == 0 {
		report, err := s.store.DB().Check(ctx)
		s.must("check", errors.Join(err, report.Err()))
	}
	time.Sleep(forgotten)
}

// end drops everything, after which little may be left.
func (s *docStorm) end() {
	s.t.Helper()
	s.reopen()
	s.lookAtAll()
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		s.must("drop", s.collection(name).Drop(ctx))
	}
	for name := range s.rows {
		s.must("drop", s.collection(name).Drop(ctx))
	}
	list, err := s.database().Collections(ctx)
	if s.must("collections", err); len(list) > 0 {
		s.fatalf("left behind: %v", list)
	}
	s.must("close", s.store.Close())
	s.noLeaks("")
}

func (s *docStorm) open() error { return s.opened(s.openStore()) }

func (s *docStorm) close() error {
	s.pauseWatch()
	return s.store.Close()
}

// reopen closes the store and opens it again, without the fault at the latest.
func (s *docStorm) reopen() {
	s.t.Helper()
	if s.shut(s) == nil {
		s.settled()
	}
	s.comeUp(s)
}

// sync makes everything durable.
func (s *docStorm) sync() { s.settles("sync", s.store.DB().Sync()) }

// settles notes that everything is durable unless there is an error.
func (s *docStorm) settles(what string, err error) {
	s.t.Helper()
	if !s.judge(what, err) {
		s.settled()
	}
}

func (s *docStorm) settled() {
	for _, t := range s.tables {
		clear(t.earlier)
	}
	for _, rows := range s.rows {
		for i := range rows {
			rows[i].durable = rows[i].there
		}
	}
}

func (s *docStorm) cut(kill bool) {
	s.lives++
	if kill || s.profile == pando.Durable {
		return
	}
	time.Sleep(2 * time.Second) // no machine is up again within the second whose times tell what was lost from what comes in its place
	for _, t := range s.tables {
		t.lost()
	}
	for _, rows := range s.rows {
		for i := range rows {
			rows[i].there = rows[i].durable
		}
	}
}

// lookAtAll reads everything there is, in each way.
func (s *docStorm) lookAtAll() {
	s.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		t, c := s.tables[name], s.collection(name)
		if t.vague {
			continue
		}
		s.compare(name, nil, nil, nil)
		s.agrees(name, c, func(err error) { s.must("validate", err) })
		s.findIndexes(name)
		for i := range t.indexes {
			if docIndexes[i].all {
				s.compare(name, nil, nil, i)
			}
		}
	}
	s.lookAtPairs()
	s.lookAtRows()
}

// compare finds documents of which a condition holds and compares them with the model.
func (s *docStorm) compare(name string, filter any, holds func(r *docRecord) bool, hint any) {
	s.t.Helper()
	t := s.tables[name]
	found := map[int32]bson.Raw{}
	for doc, err := range s.collection(name).Find(ctx, filter, &document.FindOptions{Hint: hint}) {
		if s.judge("find", err) {
			return
		}
		id := doc.Lookup("_id").AsInt64()
		if found[int32(id)] != nil {
			s.fatalf("%s: %d is found twice by %v", name, id, filter)
		}
		found[int32(id)] = slices.Clone(doc)
	}
	for _, id := range t.ids() {
		may, must := t.presence(id, holds)
		doc := found[id]
		if doc == nil && must || doc != nil && !may {
			s.fatalf("%s: %v by %v finds %d: %v; may: %v, must: %v", name, filter, hint, id, doc, may, must)
		}
		if doc != nil && !t.allows(id, doc) {
			s.fatalf("%s: %d is %v, and may be one of %d, such as %v", name, id, doc, len(t.cells(id)), t.cells(id)[0])
		}
		delete(found, id)
	}
	for id := range found {
		s.fatalf("%s: %v by %v finds %d, which nobody wrote", name, filter, hint, id)
	}
}
