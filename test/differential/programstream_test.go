package differential

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestStreamsTellAllThatProgramsOfWritesDo carries out in a second store what a change stream tells of a program: the same documents are
// there then, each document before a change is what the second store has, and what an update is said to have changed leads to the
// document after it. The stream goes on over restarts and power cuts, and from each of its tokens tells the same again.
func TestStreamsTellAllThatProgramsOfWritesDo(t *testing.T) {
	from := firstSeed()
	for seed := from; seed < from+uint64(*programs); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			p := &program{t: t, generator: newGenerator(seed), fs: memfs.New(), specs: map[string]bson.D{}}
			p.options.PreImages = true
			p.open()
			r := newReplica(p)
			p.create()
			for range *steps {
				p.step()
				if p.chance(4) {
					r.follow()
				}
				if t.Failed() {
					t.Fatalf("seed %d, the last of %d steps:\n%s", seed, len(p.done), strings.Join(p.done[max(0, len(p.done)-4):], "\n"))
				}
			}
			r.follow()
			for range 30 {
				r.again(p.IntN(len(r.events)))
			}
			p.must(p.store.Close())
		})
	}
}

// replica is what a change stream has told.
type replica struct {
	p      *program
	store  *document.Store
	tokens []bson.Raw
	events []bson.Raw
}

func newReplica(p *program) *replica {
	s, err := document.Open("replica", &document.Options{Storage: pando.Options{FS: memfs.New()}, TTLInterval: -1})
	p.must(err)
	p.t.Cleanup(func() { p.must(s.Close()) })
	c, err := p.store.OpenWatch(ctx, nil, nil)
	p.must(err)
	defer func() { p.must(c.Close()) }()
	return &replica{p: p, store: s, tokens: []bson.Raw{slices.Clone(c.ResumeToken())}}
}

// watch opens the stream behind the n-th event.
func (r *replica) watch(n int) *document.Cursor {
	r.p.t.Helper()
	o := &document.WatchOptions{FullDocument: "required", FullDocumentBeforeChange: "required", ShowExpandedEvents: true, ResumeAfter: r.tokens[n]}
	if n > 0 && r.p.chance(2) {
		o.ResumeAfter, o.StartAfter = nil, r.tokens[n]
	}
	c, err := r.p.store.OpenWatch(ctx, nil, o)
	r.p.must(err)
	return c
}

// follow carries out what has been told since, and compares.
func (r *replica) follow() {
	r.p.t.Helper()
	c := r.watch(len(r.events))
	defer func() { r.p.must(c.Close()) }()
	for c.TryNext(ctx) {
		e := slices.Clone(c.Current())
		r.tokens = append(r.tokens, e.Lookup("_id").Document())
		r.events = append(r.events, e)
		r.apply(e)
	}
	r.p.must(c.Err())
	order := &document.FindOptions{Sort: doc("_id", int32(1))}
	for _, of := range []*document.Collection{r.p.plain, r.p.indexed} {
		want := all(r.p.t, of, nil, order)
		got := all(r.p.t, r.store.Database("test").Lookup(of.Name()), nil, order)
		if !slices.EqualFunc(got, want, func(a, b bson.Raw) bool { return slices.Equal(a, b) }) {
			r.p.t.Fatalf("%s, by the stream: %s\nby itself: %s", of.Name(), around(fmt.Sprint(got), fmt.Sprint(want)), around(fmt.Sprint(want), fmt.Sprint(got)))
		}
	}
}

// again compares some of what comes behind the n-th event with what came then.
func (r *replica) again(n int) {
	c := r.watch(n)
	defer func() { r.p.must(c.Close()) }()
	for _, want := range r.events[n:min(n+5, len(r.events))] {
		if !c.TryNext(ctx) {
			r.p.t.Fatalf("behind event %d of %d: %v", n, len(r.events), c.Err())
		}
		if !slices.Equal(c.Current(), want) {
			r.p.t.Errorf("behind event %d:\n%s\nit was\n%s", n, c.Current(), want)
		}
	}
}

// apply carries out an event.
func (r *replica) apply(e bson.Raw) {
	r.p.t.Helper()
	coll, _ := e.Lookup("ns", "coll").StringValueOK()
	c := r.store.Database("test").Lookup(coll)
	key := doc("_id", e.Lookup("documentKey", "_id"))
	before, after := e.Lookup("fullDocumentBeforeChange"), e.Lookup("fullDocument")
	kind := e.Lookup("operationType").StringValue()
	switch kind {
	case "update", "replace", "delete":
		if is, err := c.Get(ctx, key[0].Value); err != nil || !slices.Equal(is, before.Value) {
			r.p.t.Fatalf("before %s: %s, %v", e, is, err)
		}
	}
	switch kind {
	case "insert":
		_, err := c.Insert(ctx, after.Document())
		r.p.must(err)
	case "update":
		if got := r.patched(before.Document(), e.Lookup("updateDescription").Document()); got != r.canonical(after.Document()) {
			r.p.t.Errorf("%s\nleads to %s", e, got)
		}
		fallthrough
	case "replace":
		_, err := c.Replace(ctx, key, after.Document(), nil)
		r.p.must(err)
	case "delete":
		n, err := c.Delete(ctx, key, nil)
		r.p.must(err)
		if n != 1 {
			r.p.t.Errorf("%s deletes %d", e, n)
		}
	case "drop":
		r.p.must(c.Drop(ctx))
	case "rename":
		_, err := e.LookupErr("operationDescription", "dropTarget")
		r.p.must(c.Rename(ctx, "test", e.Lookup("to", "coll").StringValue(), err == nil))
	case "create":
		_, err := r.store.Collection(ctx, coll, &document.CollectionOptions{Collation: r.p.options.Collation})
		r.p.must(err)
	case "createIndexes", "dropIndexes", "modify":
	default:
		r.p.t.Fatalf("unexpected: %s", e)
	}
}

// patched is a document as an event says that it was changed, in words.
func (r *replica) patched(before, description bson.Raw) string {
	var d bson.D
	var how struct {
		Updated   bson.D   `bson:"updatedFields"`
		Removed   []string `bson:"removedFields"`
		Truncated []struct {
			Field string `bson:"field"`
			Size  int    `bson:"newSize"`
		} `bson:"truncatedArrays"`
		Paths map[string]bson.A `bson:"disambiguatedPaths"`
	}
	r.p.must(bson.Unmarshal(before, &d))
	r.p.must(bson.Unmarshal(description, &how))
	parts := func(path string) []string {
		if list, ok := how.Paths[path]; ok {
			return each(list, func(v any) string { return fmt.Sprint(v) })
		}
		return strings.Split(path, ".")
	}
	var root any = d
	for _, t := range how.Truncated {
		root = changed(root, parts(t.Field), func(v any) (any, bool) { return v.(bson.A)[:t.Size], true })
	}
	for _, f := range how.Removed {
		root = changed(root, parts(f), func(any) (any, bool) { return nil, false })
	}
	for _, e := range how.Updated {
		root = changed(root, parts(e.Key), func(any) (any, bool) { return e.Value, true })
	}
	return r.canonical(raw(r.p.t, root))
}

// changed puts what f makes of it in the place of the value at a path, or takes it out.
func changed(v any, path []string, f func(v any) (any, bool)) any {
	switch v := v.(type) {
	case bson.A:
		i, _ := strconv.Atoi(path[0])
		for len(v) <= i {
			v = append(v, nil)
		}
		if len(path) > 1 {
			v[i] = changed(v[i], path[1:], f)
		} else {
			v[i], _ = f(v[i])
		}
		return v
	case bson.D:
		i := slices.IndexFunc(v, func(e bson.E) bool { return e.Key == path[0] })
		if i < 0 {
			v, i = append(v, bson.E{Key: path[0], Value: bson.D{}}), len(v)
		}
		if len(path) > 1 {
			v[i].Value = changed(v[i].Value, path[1:], f)
		} else if n, keep := f(v[i].Value); keep {
			v[i].Value = n
		} else {
			v = slices.Delete(v, i, i+1)
		}
		return v
	}
	return fmt.Sprintf("nothing at %v", path)
}

// canonical is a document in words, without the order of its fields.
func (r *replica) canonical(d bson.Raw) string {
	var fields bson.D
	r.p.must(bson.Unmarshal(d, &fields))
	var sorted func(v any)
	sorted = func(v any) {
		switch v := v.(type) {
		case bson.A:
			for _, x := range v {
				sorted(x)
			}
		case bson.D:
			for _, e := range v {
				sorted(e.Value)
			}
			slices.SortFunc(v, func(a, b bson.E) int { return strings.Compare(a.Key, b.Key) })
		}
	}
	sorted(fields)
	return shown(r.p.t, fields)
}
