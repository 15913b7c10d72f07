package differential

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

var (
	programs = flag.Int("programs", 2, "programs of writes to run")
	steps    = flag.Int("steps", 40, "steps of each program")
)

var ctx = context.Background()

// TestProgramsOfWritesKeepIndexesRight carries out the same writes on two collections of one store: one without an index, and one whose
// indexes of all kinds come, go and are hidden, also while documents are written. In between transactions are given up, the power fails,
// and the store is opened again. Whatever was done, an index refuses a write only when it could not be made of what would be there, both
// collections answer every query the same, by whichever index, and each index holds what its documents say and nothing else.
func TestProgramsOfWritesKeepIndexesRight(t *testing.T) {
	from := firstSeed()
	for seed := from; seed < from+uint64(*programs); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			p := &program{t: t, generator: newGenerator(seed), fs: memfs.New(), specs: map[string]bson.D{}}
			p.open()
			p.create()
			for range *steps {
				p.step()
				if p.IntN(3) == 0 {
					p.check()
				}
				if t.Failed() {
					t.Fatalf("seed %d, the last of %d steps:\n%s", seed, len(p.done), strings.Join(p.done[max(0, len(p.done)-4):], "\n"))
				}
			}
			p.check()
			p.must(p.store.Close())
		})
	}
}

// program is two collections with the same documents, and what has become of them.
type program struct {
	generator
	t              *testing.T
	fs             *memfs.FS
	store          *document.Store
	plain, indexed *document.Collection
	options        document.CollectionOptions
	specs          map[string]bson.D // of the indexes
	made           int               // indexes, ever
	done           []string          // steps, in words
}

func (p *program) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("%v\nafter:\n%s", err, strings.Join(p.done[max(0, len(p.done)-4):], "\n"))
	}
}

func (p *program) note(format string, args ...any) {
	p.done = append(p.done, fmt.Sprintf(format, args...))
}

func (p *program) open() {
	var err error
	p.store, err = document.Open("db", &document.Options{Storage: pando.Options{FS: p.fs, MemoryBytes: pick[int64](p.generator, 1<<20, 8<<20)}, TTLInterval: -1})
	p.must(err)
	p.plain, p.indexed = p.store.Database("test").Lookup("plain"), p.store.Database("test").Lookup("indexed")
}

// create makes the collections, with the first indexes.
func (p *program) create() {
	p.options.Format = pick(p.generator, document.Template, document.Template, document.BSON, document.AsJSON)
	if p.chance(4) {
		p.options.Collation = doc("locale", "en", "strength", int32(2))
	}
	for _, name := range []string{"plain", "indexed"} {
		_, err := p.store.Collection(ctx, name, &p.options)
		p.must(err)
	}
	for range 3 + p.IntN(4) {
		p.createIndex()
	}
}

func (p *program) step() {
	switch p.IntN(24) {
	case 0, 1:
		p.createIndex()
	case 2:
		p.dropIndex()
	case 3:
		p.hideIndex()
	case 4:
		p.buildBesideWrites()
	case 5:
		p.reopen()
	case 6:
		p.crash()
	case 7:
		p.settle()
	case 8:
		p.rename()
	case 9:
		p.expire()
	case 10, 11, 12, 13, 14:
		p.transact()
	default:
		w := p.write()
		if w.many {
			p.inTransaction(w)
		} else {
			p.apply(w)
		}
	}
}

// write is a write to a collection, which says what it did.
type write struct {
	text    string
	several bool // documents, of which another may be the first that is refused
	many    bool // it may stop half way
	passing bool // what it makes of one document it may change again, or what is in its way
	do      func(c *document.Collection) (string, error)
}

// apply carries out a write that does all or nothing on both collections.
func (p *program) apply(w write) bool {
	p.note("%s", w.text)
	got, refused := w.do(p.indexed)
	if refused == nil {
		want, err := w.do(p.plain)
		if err != nil || got != want {
			p.t.Errorf("%s\nwith indexes: %s\nwithout: %s %v", w.text, got, want, err)
		}
		return true
	}
	tx, err := p.store.Begin(ctx)
	p.must(err)
	defer tx.Abort()
	if _, err := w.do(tx.In(p.plain)); err == nil && !w.passing {
		p.justified(w, refused)
	}
	return false
}

// justified looks whether an index could not be made of what would be there after a write that the indexes refused.
func (p *program) justified(w write, refused error) {
	p.t.Helper()
	trial := p.copied()
	_, err := w.do(trial)
	p.must(err)
	for _, spec := range p.specs {
		if _, err := trial.CreateIndexes(ctx, []bson.Raw{raw(p.t, spec)}, nil); err != nil {
			if w.several || document.CodeOf(err) == document.CodeOf(refused) {
				return
			}
		}
	}
	p.t.Errorf("%s is refused, though all indexes can be made of what would be there: %v\n%s", w.text, refused, p.shownSpecs())
}

func (p *program) copied() *document.Collection {
	trial := p.store.Database("test").Lookup("trial")
	if ok, err := trial.Exists(); ok || err != nil {
		p.must(err)
		p.must(trial.Drop(ctx))
	}
	_, err := p.store.Collection(ctx, "trial", &p.options)
	p.must(err)
	docs := all(p.t, p.plain, nil, nil)
	if len(docs) > 0 {
		_, err = trial.InsertMany(ctx, docs, nil)
		p.must(err)
	}
	return trial
}

// inTransaction carries out a write in transactions, so that it does all or nothing.
func (p *program) inTransaction(w write) {
	do := w.do
	w.do = func(c *document.Collection) (string, error) {
		if c != p.indexed && c != p.plain { // is in one already, or nobody cares
			return do(c)
		}
		tx, err := p.store.Begin(ctx)
		p.must(err)
		defer tx.Abort()
		text, err := do(tx.In(c))
		if err == nil {
			p.must(tx.Commit(ctx))
		}
		return text, err
	}
	p.apply(w)
}

// transact makes several writes in one transaction of both collections, which reads what it wrote, and is committed, given up, or
// overtaken by another.
func (p *program) transact() {
	begin := p.store.Begin
	if p.chance(2) {
		begin = p.store.BeginSnapshot
	}
	tx, err := begin(ctx)
	p.must(err)
	defer tx.Abort()
	p.note("begin")
	for range 1 + p.IntN(4) {
		w := p.write()
		got, refused := w.do(tx.In(p.indexed))
		if refused != nil {
			tx.Abort()
			p.note("%s: %v, given up", w.text, refused)
			return
		}
		want, err := w.do(tx.In(p.plain))
		p.note("%s", w.text)
		if err != nil || got != want {
			p.t.Errorf("%s\nwith indexes: %s\nwithout: %s, %v", w.text, got, want, err)
			return
		}
		for range p.IntN(4) {
			p.compare(tx.In(p.plain), tx.In(p.indexed))
		}
	}
	switch p.IntN(4) {
	case 0:
		p.note("abort")
	case 1:
		p.note("another write")
		overtook := p.apply(p.writeOne())
		if err := tx.Commit(ctx); err != nil && !(overtook && errors.Is(err, document.WriteConflict)) {
			p.must(err)
		}
	default:
		p.must(tx.Commit(ctx))
		p.note("commit")
	}
}

func (p *program) createIndex() {
	spec := p.anySpec()
	p.note("create index %s", shown(p.t, spec))
	if _, err := p.indexed.CreateIndexes(ctx, []bson.Raw{raw(p.t, spec)}, nil); err == nil {
		p.specs[name(spec)] = spec
	}
}

// anySpec is an index with its name.
func (p *program) anySpec() bson.D {
	p.made++
	called := bson.E{Key: "name", Value: fmt.Sprint("i", p.made)}
	if p.chance(3) {
		key := pick(p.generator, doc("u", int32(1)), doc("u", int32(-1), "n", int32(1)), doc("n", int32(1), "_id", int32(1)), doc("a.x", int32(1), "u", int32(1)))
		spec := append(doc("key", key, "unique", true), called)
		switch p.IntN(4) {
		case 0:
			spec = append(spec, bson.E{Key: "sparse", Value: true})
		case 1:
			spec = append(spec, bson.E{Key: "partialFilterExpression", Value: pick(p.generator, doc("u", doc("$gt", int32(3))), doc("n", doc("$exists", true)), doc("s", "a"))})
		case 2:
			spec = append(spec, bson.E{Key: "collation", Value: p.collation()})
		}
		return spec
	}
	spec := append(p.spec(), called)
	if p.chance(8) {
		spec = append(spec, bson.E{Key: "hidden", Value: true})
	}
	return spec
}

// oneOf returns the name of an index; "": there is none.
func (p *program) oneOf() string {
	names := p.names()
	if len(names) == 0 {
		return ""
	}
	return pick(p.generator, names...)
}

func (p *program) names() []string {
	var names []string
	for n := range p.specs {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func (p *program) dropIndex() {
	if n := p.oneOf(); n != "" {
		p.note("drop index %s", shown(p.t, p.specs[n]))
		p.must(p.indexed.DropIndex(ctx, n))
		delete(p.specs, n)
	}
}

func (p *program) hideIndex() {
	if n := p.oneOf(); n != "" {
		hidden := p.chance(2)
		p.note("hide %t %s", hidden, shown(p.t, p.specs[n]))
		p.must(p.indexed.Modify(ctx, doc("index", doc("name", n, "hidden", hidden))))
	}
}

// buildBesideWrites makes an index while documents are written. It may fail for one that is gone when it has.
func (p *program) buildBesideWrites() {
	spec := p.anySpec()
	p.note("create index %s beside what follows", shown(p.t, spec))
	built := make(chan error, 1)
	go func() {
		_, err := p.indexed.CreateIndexes(ctx, []bson.Raw{raw(p.t, spec)}, nil)
		built <- err
	}()
	for range 1 + p.IntN(8) {
		w := p.write()
		p.note("%s", w.text)
		tx, err := p.store.Begin(ctx)
		p.must(err)
		got, err := w.do(tx.In(p.indexed))
		if err == nil { // else the index that is being made may have refused it
			var want string
			want, err = w.do(tx.In(p.plain))
			if err != nil || got != want {
				p.t.Errorf("%s\nwith indexes: %s\nwithout: %s, %v", w.text, got, want, err)
			}
			if err = tx.Commit(ctx); err != nil {
				p.note("%v", err)
			}
		}
		tx.Abort()
	}
	if err := <-built; err == nil {
		p.specs[name(spec)] = spec
	} else {
		p.note("which failed: %v", err)
	}
}

func (p *program) reopen() {
	p.note("reopen")
	p.must(p.store.Close())
	p.open()
}

// crash goes on with what a power cut leaves.
func (p *program) crash() {
	p.note("crash")
	image := p.fs.CrashImage(memfs.Policy{Unsynced: memfs.Unsynced(p.IntN(3)), Seed: p.Uint64(), Reordered: p.chance(2), Stale: p.chance(2)})
	p.must(p.store.Close())
	p.fs = image
	p.open()
}

func (p *program) settle() {
	p.note("settle")
	if p.chance(2) {
		p.must(p.store.DB().Compact(ctx, pando.CompactOptions{}))
	} else {
		p.must(p.store.DB().Checkpoint(ctx))
	}
}

// rename moves the collections to other names and back, now and then one onto the other.
func (p *program) rename() {
	p.note("rename")
	for _, c := range []*document.Collection{p.indexed, p.plain} {
		p.must(c.Rename(ctx, "test", "moved", false))
		if p.chance(2) {
			other, err := p.store.Collection(ctx, c.Name(), &p.options) // to be replaced
			p.must(err)
			_, _ = p.write().do(other)
		}
		p.must(c.Database().Lookup("moved").Rename(ctx, "test", c.Name(), true))
	}
}

// expire deletes what is old by a TTL index.
func (p *program) expire() {
	seconds := int32(800_000_000) // the dates of the generator before 2000 are as old as that, and no others
	p.note("expire")
	key := pick(p.generator, "t", "a", "l")
	if _, err := p.indexed.CreateIndex(ctx, document.Index{Name: "ttl", Keys: doc(key, int32(1)), ExpireAfterSeconds: &seconds}); err != nil {
		return // such an index is there, with other options
	}
	got, err := p.store.DeleteExpired(ctx)
	p.must(err)
	want, err := p.plain.Delete(ctx, doc(key, doc("$lt", bson.DateTime(1_000_000_000_000), "$type", "date")), &document.DeleteOptions{Many: true})
	p.must(err)
	if got != want {
		p.t.Errorf("%d expired by %s, and %d are old", got, key, want)
	}
	p.must(p.indexed.DropIndex(ctx, "ttl"))
}

func (p *program) shownSpecs() string {
	var text string
	for _, n := range p.names() {
		text += shown(p.t, p.specs[n]) + "\n"
	}
	return text
}

func name(spec bson.D) string {
	for _, e := range spec {
		if e.Key == "name" {
			return e.Value.(string)
		}
	}
	return ""
}

func raw(t *testing.T, d any) bson.Raw {
	t.Helper()
	b, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// all returns the documents of a query.
func all(t *testing.T, c *document.Collection, filter any, o *document.FindOptions) []bson.Raw {
	t.Helper()
	if filter == nil {
		filter = bson.D{}
	}
	var docs []bson.Raw
	for d, err := range c.Find(ctx, filter, o) {
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, slices.Clone(d))
	}
	return docs
}
