package document

import (
	"context"
	"io"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// counted is a cursor over so many documents; happens is called before one of them comes.
type counted struct {
	count, at, next int
	happens         func() error
}

func (m *counted) Next(context.Context) (document, error) {
	if m.next == m.count {
		return nil, io.EOF
	}
	m.next++
	if m.next == m.at {
		if err := m.happens(); err != nil {
			return nil, err
		}
	}
	return toDocument(bson.D{{Key: "_id", Value: m.next}})
}

func (m *counted) Close() error { return nil }

// $out fills a collection that nobody sees, and dropping the database drops that one, too. $out fails then: it once made another
// one, and put into place what came after the drop as if it were all.
func TestOutOfADatabaseThatIsDroppedMeanwhileFails(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := context.Background()
	d := s.Database("d")
	for _, at := range []int{1, 15_000, 25_000} { // before anything was written, between two batches, and in front of the last
		docs := &counted{count: 25_000, at: at, happens: func() error { return d.Drop(ctx) }}
		err := s.replaceCollection(ctx, namespace{"d", "c"}, docs, false)
		if CodeOf(err) != NamespaceNotFound {
			t.Errorf("dropped at %d: %v", at, err)
		}
		if list, err := d.Collections(ctx); len(list) > 0 || err != nil {
			n, _ := d.Lookup("c").Count(ctx, nil, nil)
			t.Errorf("dropped at %d: %v is left, with %d documents, %v", at, list, n, err)
		}
	}
}

// $out takes over the indexes and the options that its target has when it begins, and fails where others come while it runs:
// these were once gone without a word.
func TestWhatATargetGetsWhileOutRunsIsNotLost(t *testing.T) {
	s := opened(t, &Options{Storage: pando.Options{FS: memfs.New(), MemoryBytes: 8 << 20}, TTLInterval: -1})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := context.Background()
	d := s.Database("d")
	index := func(name string) error {
		_, err := d.Lookup(name).CreateIndex(ctx, Index{Keys: bson.D{{Key: "u", Value: 1}}, Unique: true})
		return err
	}
	insert := func(name string) error {
		_, err := d.Lookup(name).Insert(ctx, bson.D{{Key: "_id", Value: 7}})
		return err
	}
	for _, test := range []struct {
		name    string
		before  func(name string) error
		happens func(name string) error
		fails   bool
	}{
		{"nothing", insert, func(string) error { return nil }, false},
		{"a document", index, insert, false},
		{"the collection", func(string) error { return nil }, insert, false},
		{"an index", insert, index, true},
		{"the collection with an index", func(string) error { return nil }, index, true},
		{"a validator", insert, func(name string) error {
			return d.Lookup(name).Modify(ctx, bson.D{{Key: "validator", Value: bson.D{{Key: "a", Value: 1}}}})
		}, true},
		{"its end", index, func(name string) error { return d.Lookup(name).Drop(ctx) }, true},
	} {
		if err := test.before(test.name); err != nil {
			t.Fatal(err)
		}
		err := s.replaceCollection(ctx, namespace{"d", test.name}, &counted{count: 1, at: 1, happens: func() error { return test.happens(test.name) }}, false)
		if test.fails != (CodeOf(err) == 125) || !test.fails && err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	list, err := d.Collections(ctx)
	if err != nil || len(list) != 6 {
		t.Errorf("%d collections are left, %v", len(list), err)
	}
}

// What $out and convertToCapped fill is seen by nobody until it is complete. Where the process was killed, or the store closed,
// before that, it is gone when the store is opened next. It once stayed for ever, and no listing of a server showed it.
func TestWhatOutHasFilledIsGoneWithItsProcess(t *testing.T) {
	fs := memfs.New()
	options := func(fs *memfs.FS) *Options {
		return &Options{Storage: pando.Options{FS: fs, MemoryBytes: 8 << 20}, TTLInterval: -1}
	}
	s := opened(t, options(fs))
	ctx := t.Context()
	var killed *memfs.FS
	docs := &counted{count: 25_000, at: 15_000, happens: func() error {
		killed = fs.KillImage()
		return s.Close()
	}}
	if err := s.replaceCollection(ctx, namespace{"d", "c"}, docs, false); err == nil {
		t.Fatal("$out goes on in a store that is closed")
	}
	for name, fs := range map[string]*memfs.FS{"killed": killed, "closed": fs} {
		reader := options(fs)
		if reader.Storage.ReadOnly = true; name == "closed" { // which removes nothing, and opens all the same
			if err := opened(t, reader).Close(); err != nil {
				t.Error(err)
			}
		}
		s := opened(t, options(fs))
		if list, err := s.Databases(ctx); len(list) > 0 || err != nil {
			t.Errorf("%s: there is %q, %v", name, list, err)
		}
		all, err := s.DB().Keyspaces()
		if i := slices.IndexFunc(all, func(k pando.KeyspaceInfo) bool { return k.Name == recordsName(1) }); i >= 0 || err != nil {
			t.Errorf("%s: the records are there, %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
