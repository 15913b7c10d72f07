package fault

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
)

// indexBuildAborted is the code of an index that could not be built before, nor be taken back: it goes when it is dropped, or at the next
// opening.
const indexBuildAborted = 276

// docIndexes are those that there may be.
var docIndexes = map[string]struct {
	all bool // it has all documents
	def document.Index
}{
	"n_1":      {true, document.Index{Keys: bson.D{{Key: "n", Value: 1}}}},
	"tag_n":    {true, document.Index{Keys: bson.D{{Key: "tag", Value: 1}, {Key: "n", Value: -1}}}},
	"arr":      {true, document.Index{Keys: bson.D{{Key: "arr", Value: 1}}}},
	"hashed":   {true, document.Index{Keys: bson.D{{Key: "n", Value: "hashed"}}}},
	"unique":   {true, document.Index{Keys: bson.D{{Key: "u", Value: 1}}, Unique: true}},
	"partial":  {false, document.Index{Keys: bson.D{{Key: "n", Value: 1}, {Key: "u", Value: 1}}, Partial: document.JSON(`{"n": {"$gt": 50}}`)}},
	"sparse":   {false, document.Index{Keys: bson.D{{Key: "f3", Value: 1}}, Sparse: true}},
	"wildcard": {false, document.Index{Keys: bson.D{{Key: "$**", Value: 1}}, WildcardProjection: document.JSON(`{"pad": 0}`)}},
}

// kept makes a change of the catalogue durable, which the model knows nothing of else.
func (s *docStorm) kept(what string, err error) error {
	s.t.Helper()
	if s.judge(what, err) || s.profile == pando.Durable {
		return err
	}
	if err = s.store.DB().Sync(); !s.judge(what, err) {
		s.settled()
	}
	return err
}

func (s *docStorm) createIndex(_ string, t *docTable, c *document.Collection) {
	s.t.Helper()
	names := slices.Sorted(maps.Keys(docIndexes))
	name := names[s.rng.IntN(len(names))]
	def := docIndexes[name].def
	def.Name = name
	_, err := c.CreateIndex(ctx, def)
	if name == "unique" && errors.Is(err, document.DuplicateKey) {
		return // whether that is so is looked at when there is one
	}
	if sure, is := t.indexes[name]; document.CodeOf(err) == indexBuildAborted && is && !sure {
		return
	}
	err = s.kept("create index "+name, err)
	t.tell(name, true, err)
}

func (s *docStorm) dropIndex(_ string, t *docTable, c *document.Collection) {
	s.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(t.indexes)) {
		if s.rng.IntN(3) == 0 {
			err := c.DropIndex(ctx, name)
			if errors.Is(err, document.IndexNotFound) && !t.indexes[name] {
				err = nil
			}
			t.tell(name, false, s.kept("drop index", err))
			return
		}
	}
}

func (s *docStorm) create() {
	s.t.Helper()
	name := fmt.Sprint("c", s.rng.IntN(5))
	if s.tables[name] != nil {
		return
	}
	o := &document.CollectionOptions{Format: document.Format(s.rng.IntN(3)), PreImages: s.rng.IntN(4) == 0}
	_, err := s.database().Collection(ctx, name, o)
	err = s.kept("create", err)
	s.tables[name] = newDocTable(s.written)
	s.tables[name].vague = err != nil
}

func (s *docStorm) drop(name string, t *docTable, c *document.Collection) {
	s.t.Helper()
	if s.kept("drop", c.Drop(ctx)) != nil {
		t.vague = true
		return
	}
	delete(s.tables, name)
}

func (s *docStorm) rename(name string, t *docTable, c *document.Collection) {
	s.t.Helper()
	to := fmt.Sprint("c", s.rng.IntN(5))
	if s.tables[to] != nil {
		return
	}
	if s.kept("rename", c.Rename(ctx, "test", to, false)) != nil {
		clear(t.retries)
		other := *t
		t.vague, t.or, other.vague, other.or = true, to, true, name
		s.tables[to] = &other
		return
	}
	s.tables[to] = t
	delete(s.tables, name)
}

// meet finds out which collections and indexes there are.
func (s *docStorm) meet() {
	s.t.Helper()
	list, err := s.database().Collections(ctx)
	if s.judge("collections", err) {
		return
	}
	there := map[string]bool{}
	for _, info := range list {
		there[info.Name] = true
	}
	for _, info := range list {
		if s.rows[info.Name] != nil {
			continue
		}
		t := s.tables[info.Name]
		if t == nil {
			s.fatalf("collection %s is there again", info.Name)
		}
		if t.vague = false; t.or != "" && there[t.or] {
			s.fatalf("collection %s has two names, the other is %s", info.Name, t.or)
		}
		s.findIndexes(info.Name)
	}
	for name, t := range s.tables {
		if !there[name] && (!t.vague || t.or != "" && !there[t.or]) {
			s.fatalf("collection %s is gone", name)
		}
		if !there[name] {
			delete(s.tables, name)
		}
	}
	for _, t := range s.tables {
		t.or = ""
	}
}

func (s *docStorm) findIndexes(name string) {
	s.t.Helper()
	list, err := s.collection(name).Indexes(ctx)
	if s.judge("indexes", err) {
		return
	}
	t := s.tables[name]
	there := map[string]bool{}
	for _, i := range list {
		if i.Name == "_id_" {
			continue
		}
		there[i.Name] = true
		switch sure, is := t.indexes[i.Name]; {
		case !i.Ready && sure:
			s.fatalf("index %s of %s is incomplete", i.Name, name)
		case !i.Ready: // see indexBuildAborted
		case !is:
			s.fatalf("index %s of %s is there again", i.Name, name)
		default:
			t.indexes[i.Name] = true
		}
	}
	for i, sure := range t.indexes {
		if !there[i] && sure {
			s.fatalf("index %s of %s is gone", i, name)
		}
		if !there[i] {
			delete(t.indexes, i)
		}
	}
}
