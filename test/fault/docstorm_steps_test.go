package fault

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
)

// docSteps are what a step of a storm may be, each as often as its weight says.
var docSteps = []stormStep[*docStorm]{
	{30, (*docStorm).insert},
	{6, (*docStorm).insertMany},
	{10, onTable((*docStorm).replace)},
	{12, onTable((*docStorm).update)},
	{4, onTable((*docStorm).updateMany)},
	{6, onTable((*docStorm).delete)},
	{2, onTable((*docStorm).deleteMany)},
	{4, onTable((*docStorm).findAndModify)},
	{2, onTable((*docStorm).out)},
	{3, onTable((*docStorm).merge)},
	{2, func(s *docStorm) { s.backup() }},
	{5, (*docStorm).pair},
	{6, onTable((*docStorm).writeOnce)},
	{8, (*docStorm).insertRow},
	{4, func(s *docStorm) { s.events(time.Millisecond) }},
	{6, onTable((*docStorm).get)},
	{5, onTable((*docStorm).find)},
	{3, onTable((*docStorm).createIndex)},
	{2, onTable((*docStorm).dropIndex)},
	{2, (*docStorm).create},
	{1, onTable((*docStorm).drop)},
	{1, onTable((*docStorm).rename)},
	{3, onTable((*docStorm).validate)},
	{3, func(s *docStorm) { s.settles("checkpoint", s.store.DB().Checkpoint(ctx)) }},
	{1, func(s *docStorm) { s.settles("compact", s.store.DB().Compact(ctx, pando.CompactOptions{})) }},
	{2, (*docStorm).sync},
	{4, func(s *docStorm) { time.Sleep(time.Duration(s.rng.IntN(1500)) * time.Millisecond) }},
	{2, func(s *docStorm) {
		if s.failed || s.rng.IntN(3) == 0 {
			s.reopen()
		}
	}},
}

func (s *docStorm) step() {
	s.t.Helper()
	stepOf(s, s.rng, docSteps)
}

// onTable makes a step of one that does something with a collection that is there for certain; if there is none, it does nothing.
func onTable(do func(s *docStorm, name string, t *docTable, c *document.Collection)) func(s *docStorm) {
	return func(s *docStorm) {
		s.t.Helper()
		if name, t, c := s.table(); t != nil {
			do(s, name, t, c)
		}
	}
}

// table draws a collection that is there for certain; there may be none.
func (s *docStorm) table() (string, *docTable, *document.Collection) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		if !s.tables[name].vague && name[0] == 'c' {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", nil, nil
	}
	name := names[s.rng.IntN(len(names))]
	return name, s.tables[name], s.collection(name)
}

func (s *docStorm) id() int32 { return s.rng.Int32N(400) }

func (s *docStorm) record(t *docTable) *docRecord {
	s.drawn++
	r := &docRecord{
		n: s.rng.Int32N(100), tag: fmt.Sprint("tag", s.rng.IntN(20)), u: fmt.Sprint("user", s.drawn), arr: []int32{},
		shape: uint16(s.rng.IntN(40)),
	}
	if s.rng.IntN(4) == 0 {
		r.shape = uint16(s.rng.Uint32())
	}
	for range s.rng.IntN(4) {
		r.arr = append(r.arr, s.rng.Int32N(30))
	}
	switch n := s.rng.IntN(30); {
	case n == 0:
		r.pad = s.rng.IntN(50 << 10)
	case n < 6:
		r.pad = s.rng.IntN(700)
	}
	if ids := t.ids(); len(ids) > 0 && s.rng.IntN(12) == 0 {
		if other := t.cells(ids[s.rng.IntN(len(ids))])[0]; other != nil {
			r.u = other.u
		}
	}
	return r
}

// refused reports whether an error says that there is such a document already, which it may.
func (s *docStorm) refused(what string, t *docTable, err error, docs map[int32]*docRecord, inserted bool) bool {
	s.t.Helper()
	if !errors.Is(err, document.DuplicateKey) {
		return false
	}
	s.note("%s: %v", what, err)
	_, unique := t.indexes["unique"]
	us := map[string]bool{}
	for id, r := range docs {
		may, _ := t.presence(id, nil)
		if inserted && may || unique && (us[r.u] || t.taken(r.u, id)) {
			return true
		}
		us[r.u] = true
	}
	s.fatalf("%s: %v", what, err)
	return true
}

func (s *docStorm) insert() {
	onTable(func(s *docStorm, name string, t *docTable, c *document.Collection) {
		s.insertSome(name, t, c, "insert", 1)
	})(s)
}

func (s *docStorm) insertMany() {
	onTable(func(s *docStorm, name string, t *docTable, c *document.Collection) {
		s.insertSome(name, t, c, "insert many", 2+s.rng.IntN(20))
	})(s)
}

func (s *docStorm) insertSome(name string, t *docTable, c *document.Collection, what string, n int) {
	s.t.Helper()
	docs := map[int32]*docRecord{}
	var list []bson.Raw
	for range n {
		id := s.id()
		if docs[id] == nil {
			docs[id] = s.record(t)
			list = append(list, docs[id].raw(id))
		}
	}
	var err error
	if n == 1 {
		_, err = c.Insert(ctx, list[0])
	} else {
		_, err = c.InsertMany(ctx, list, nil)
	}
	if s.refused(what, t, err, docs, true) {
		return
	}
	s.judge(what, err)
	for id, r := range docs {
		if _, must := t.presence(id, nil); must && err == nil {
			s.fatalf("%s: %d was there already in %s", what, id, name)
		}
		s.wrote(t, id, func(old *docRecord) *docRecord {
			if old != nil && err != nil {
				return old
			}
			return r
		}, false, err)
	}
	s.unique(name)
}

// unique looks whether a unique index is none.
func (s *docStorm) unique(name string) {
	s.t.Helper()
	t := s.tables[name]
	if !t.indexes["unique"] {
		return
	}
	us := map[string]int32{}
	for id, c := range t.possible {
		if len(c) > 1 || c[0] == nil {
			continue
		}
		if other, is := us[c[0].u]; is {
			s.fatalf("%s: %d and %d both have %s", name, id, other, c[0].u)
		}
		us[c[0].u] = id
	}
}

// wrote notes a write. What a database that has failed carries out without an error found nothing to change: a document may come that a
// write which failed has left in the log.
func (s *docStorm) wrote(t *docTable, id int32, change func(r *docRecord) *docRecord, many bool, err error) {
	if err == nil && s.failed {
		return
	}
	if s.profile != pando.Durable {
		t.earlier[id] = append(t.earlier[id], t.cells(id)...)
	}
	t.wrote(id, change, many, err)
}

func (s *docStorm) replace(name string, t *docTable, c *document.Collection) {
	s.t.Helper()
	id, r, upsert := s.id(), s.record(t), s.rng.IntN(2) == 0
	_, err := c.Replace(ctx, byID(id), r.raw(id), &document.UpdateOptions{Upsert: upsert})
	if s.refused("replace", t, err, map[int32]*docRecord{id: r}, false) {
		return
	}
	s.judge("replace", err)
	s.wrote(t, id, func(old *docRecord) *docRecord {
		if old == nil && !upsert {
			return nil
		}
		return r
	}, false, err)
	s.unique(name)
}

// change draws an update, and what it does to a record.
func (s *docStorm) change() (bson.D, func(r *docRecord)) {
	n := s.rng.Int32N(100)
	one := func(operator, field string, v any) bson.D {
		return bson.D{{Key: operator, Value: bson.D{{Key: field, Value: v}}}}
	}
	switch s.rng.IntN(5) {
	case 0:
		return one("$set", "n", n), func(r *docRecord) { r.n = n }
	case 1:
		return one("$inc", "n", n-50), func(r *docRecord) { r.n += n - 50 }
	case 2:
		return one("$set", "pad", strings.Repeat("pad\n", int(n))), func(r *docRecord) { r.pad = int(n) }
	case 3:
		return one("$push", "arr", n), func(r *docRecord) { r.arr = append(slices.Clone(r.arr), n) }
	}
	i := s.rng.IntN(16)
	return one("$unset", fmt.Sprint("f", i), ""), func(r *docRecord) { r.shape &^= 1 << i }
}

func (s *docStorm) update(_ string, t *docTable, c *document.Collection) {
	s.t.Helper()
	id := s.id()
	u, change := s.change()
	_, err := c.Update(ctx, byID(id), u, nil)
	s.judge("update", err)
	s.wrote(t, id, func(r *docRecord) *docRecord { return r.with(change) }, false, err)
}

func (s *docStorm) between() (bson.D, func(r *docRecord) bool) {
	low := s.rng.Int32N(100)
	high := low + s.rng.Int32N(20)
	return between(low, high), func(r *docRecord) bool { return r.n >= low && r.n < high }
}

func (s *docStorm) updateMany(_ string, t *docTable, c *document.Collection) {
	s.t.Helper()
	filter, holds := s.between()
	u, change := s.change()
	_, err := c.Update(ctx, filter, u, &document.UpdateOptions{Many: true})
	s.judge("update many", err)
	s.wroteMany(t, holds, func(r *docRecord) *docRecord { return r.with(change) }, err)
}

// wroteMany notes a write of all documents of which a condition holds.
func (s *docStorm) wroteMany(t *docTable, holds func(r *docRecord) bool, change func(r *docRecord) *docRecord, err error) {
	for _, id := range t.ids() {
		if may, _ := t.presence(id, holds); !may {
			continue
		}
		s.wrote(t, id, func(r *docRecord) *docRecord {
			if r == nil || !holds(r) {
				return r
			}
			return change(r)
		}, true, err)
	}
}

func (s *docStorm) delete(_ string, t *docTable, c *document.Collection) {
	s.t.Helper()
	id := s.id()
	_, err := c.Delete(ctx, byID(id), nil)
	s.judge("delete", err)
	s.wrote(t, id, func(*docRecord) *docRecord { return nil }, false, err)
}

func (s *docStorm) deleteMany(_ string, t *docTable, c *document.Collection) {
	s.t.Helper()
	filter, holds := s.between()
	_, err := c.Delete(ctx, filter, &document.DeleteOptions{Many: true})
	s.judge("delete many", err)
	s.wroteMany(t, holds, func(*docRecord) *docRecord { return nil }, err)
}

func (s *docStorm) findAndModify(name string, t *docTable, c *document.Collection) {
	s.t.Helper()
	id := s.id()
	u, change := s.change()
	got, _, err := c.FindAndModify(ctx, byID(id), u, &document.ModifyOptions{New: true})
	if errors.Is(err, document.ErrNotFound) {
		got, err = nil, nil
	}
	s.judge("find and modify", err)
	s.wrote(t, id, func(r *docRecord) *docRecord { return r.with(change) }, false, err)
	if err == nil && !t.allows(id, got) {
		s.fatalf("%s: %d was found and made %v", name, id, got)
	}
}

func (s *docStorm) get(name string, t *docTable, c *document.Collection) {
	s.t.Helper()
	id := s.id()
	got, err := c.Get(ctx, id)
	if errors.Is(err, document.ErrNotFound) {
		got, err = nil, nil
	}
	if !s.judge("get", err) && !t.allows(id, got) {
		s.fatalf("%s: %d is %v, and may be one of %d", name, id, got, len(t.cells(id)))
	}
}

func (s *docStorm) find(name string, t *docTable, _ *document.Collection) {
	s.t.Helper()
	filter, holds := s.between()
	s.compare(name, filter, holds, nil)
}

func (s *docStorm) validate(name string, _ *docTable, c *document.Collection) {
	s.t.Helper()
	s.agrees(name, c, func(err error) { s.judge("validate", err) })
}

// agrees looks whether every index tells what the documents tell.
func (s *docStorm) agrees(name string, c *document.Collection, failed func(err error)) {
	s.t.Helper()
	v, err := c.Validate(ctx)
	if err != nil {
		failed(err)
		return
	}
	if err := disagreement(v); err != nil {
		s.fatalf("%s: %v", name, err)
	}
}

func (s *docStorm) pair() {
	s.t.Helper()
	id, r := s.id(), s.record(newDocTable(s.written))
	err := s.writePair(id, r.raw(id))
	s.judge("transaction", err)
	for _, name := range pairs {
		s.wrote(s.tables[name], id, func(*docRecord) *docRecord { return r }, false, err)
	}
}

func (s *docStorm) lookAtPairs() {
	s.t.Helper()
	for _, id := range s.tables[pairs[0]].ids() {
		var docs []bson.Raw
		for _, name := range pairs {
			doc, err := s.collection(name).Get(ctx, id)
			if err != nil && !errors.Is(err, document.ErrNotFound) {
				s.fatalf("get: %v", err)
			}
			docs = append(docs, doc)
		}
		if !bytes.Equal(docs[0], docs[1]) {
			s.fatalf("half a transaction: %v and %v", docs[0], docs[1])
		}
	}
}
