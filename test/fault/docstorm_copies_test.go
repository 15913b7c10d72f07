package fault

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// pipe runs a pipeline that writes.
func pipe(c *document.Collection, filter bson.D, stage string, v any) error {
	for _, err := range c.Aggregate(ctx, bson.A{bson.D{{Key: "$match", Value: filter}}, bson.D{{Key: stage, Value: v}}}, nil) {
		if err != nil {
			return err
		}
	}
	return nil
}

// picked returns what of an _id a condition lets through; nil: nothing.
func (t *docTable) picked(id int32, holds func(r *docRecord) bool) (list []*docRecord) {
	for _, r := range t.cells(id) {
		if r != nil && !holds(r) {
			r = nil
		}
		list = append(list, r)
	}
	return list
}

// became notes what an _id may have after a write.
func (s *docStorm) became(t *docTable, id int32, after []*docRecord, err error) {
	if err == nil && s.failed {
		return // see wrote
	}
	delete(t.retries, id)
	before := t.cells(id)
	if s.profile != pando.Durable {
		t.earlier[id] = append(t.earlier[id], before...)
	}
	if err != nil {
		after = append(slices.Clone(after), before...)
	}
	t.may(id, after)
}

// both returns the _ids of two collections.
func both(a, b *docTable) []int32 {
	ids := map[int32]bool{}
	for _, id := range append(a.ids(), b.ids()...) {
		ids[id] = true
	}
	return slices.Sorted(maps.Keys(ids))
}

// out puts documents of a collection into the place of what another one has.
func (s *docStorm) out(name string, t *docTable, c *document.Collection) {
	s.t.Helper()
	to, target, _ := s.table()
	filter, holds := s.between()
	if s.rng.IntN(3) == 0 {
		filter, holds = bson.D{}, func(*docRecord) bool { return true }
	}
	err := pipe(c, filter, "$out", to)
	s.note("$out from %s into %s: %v", name, to, err)
	if errors.Is(err, document.DuplicateKey) {
		s.note("$out: %v", err)
		if _, unique := target.indexes["unique"]; !unique {
			s.fatalf("$out: %v", err)
		}
		return
	}
	failed := err
	if err = s.kept("$out", err); foundNoRoom(failed) {
		return
	}
	after := map[int32][]*docRecord{}
	for _, id := range both(t, target) {
		after[id] = t.picked(id, holds)
	}
	for id, list := range after {
		s.became(target, id, list, err)
	}
	s.unique(to)
}

// merge merges documents of a collection into another one.
func (s *docStorm) merge(_ string, t *docTable, c *document.Collection) {
	s.t.Helper()
	to, target, _ := s.table()
	filter, holds := s.between()
	other := []string{"insert", "discard"}[s.rng.IntN(2)]
	after := map[int32][]*docRecord{}
	for _, id := range t.ids() {
		for _, r := range t.picked(id, holds) {
			for _, there := range target.cells(id) {
				switch {
				case r == nil, there == nil && other == "discard":
					after[id] = append(after[id], there)
				default:
					after[id] = append(after[id], r)
				}
			}
		}
	}
	err := pipe(c, filter, "$merge", bson.D{{Key: "into", Value: to}, {Key: "whenMatched", Value: "replace"}, {Key: "whenNotMatched", Value: other}})
	if errors.Is(err, document.DuplicateKey) {
		if _, unique := target.indexes["unique"]; !unique {
			s.fatalf("$merge: %v", err)
		}
		s.note("$merge: %v", err)
	} else {
		s.judge("$merge", err)
	}
	for id, list := range after {
		s.became(target, id, list, err)
	}
	s.unique(to)
}

// backup makes a copy, and looks at what a power cut would leave of that. It reports whether there is one.
func (s *docStorm) backup() bool {
	s.t.Helper()
	dir := s.copyDir()
	if s.judge("backup", s.store.DB().Backup(ctx, dir)) {
		return false
	}
	image := s.base.CrashImage(memfs.Policy{Unsynced: memfs.None})
	o := s.options
	o.Storage.FS, o.FS = image, image
	copied, err := document.Open(dir, &o)
	s.must("open a copy", err)
	copied, s.store = s.store, copied
	indexes := map[*docTable]map[string]bool{}
	for _, t := range s.tables {
		indexes[t] = maps.Clone(t.indexes)
	}
	s.lookAtAll()
	for t, names := range indexes {
		t.indexes = names
	}
	s.must("close a copy", s.store.Close())
	s.store = copied
	return true
}

func (s *docStorm) copyDir() string { return fmt.Sprint("copy", s.lives) }

// restore goes on with a copy.
func (s *docStorm) restore() {
	s.t.Helper()
	if s.failed || !s.backup() {
		return
	}
	s.settled()
	s.must("close", s.close())
	s.must("rename", s.base.Rename("db", fmt.Sprint("old", s.lives)))
	s.must("rename", s.base.Rename(s.copyDir(), "db"))
	s.lives++
	s.note("restored")
	s.comeUp(s)
}
