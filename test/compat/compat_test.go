package compat

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

var update = flag.Bool("update", false, "write the databases of the present format anew")

const dir = "db"

// stored is a database that is kept.
type stored struct {
	name    string
	want    func() content
	write   func(t *testing.T) *memfs.FS // makes it anew; nil where its format is not the present one
	layout  pando.Layout                 // of all keyspaces but the default one
	changed string                       // the keyspace that the tests write to, which has a key that expires
}

// formats lists every format that was ever released, with what its databases hold.
var formats = []stored{
	{"v1", firstFormat, write, pando.Tree, "default"},
	{"v1-hash", firstHashFormat, writeHash, pando.Hash, "table"},
}

// content is what a database holds: keyspace, then key, then value.
type content map[string]map[string]string

// endOfTime is when the sample's expiring key expires: in the year 2200.
var endOfTime = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

func long() string { return strings.Repeat("a value of several chunks, ", 50_000) }

func apart(i int) string { return fmt.Sprintf("%d %s", i, strings.Repeat("apart ", 60)) }

// firstFormat is what write leaves.
func firstFormat() content {
	c := content{"default": {}, "second": {}, "behind": {"log": "only"}}
	for i := range 150 {
		c["default"][fmt.Sprintf("key %03d", i)] = fmt.Sprintf("value %d", i)
	}
	for i := 0; i < 150; i += 30 {
		c["default"][fmt.Sprintf("key %03d", i)] = "changed by a delta"
	}
	for i := 40; i < 50; i++ {
		delete(c["default"], fmt.Sprintf("key %03d", i))
	}
	delete(c["default"], "key 100")
	c["default"]["key 007"] = "changed in the log"
	c["default"]["expires"] = "in 2200"
	c["second"][""] = "the empty key"
	c["second"]["empty"] = ""
	c["second"]["apart 1"], c["second"]["apart 2"] = apart(1), apart(2)
	c["second"]["long"] = long()
	return c
}

// write makes the database of the present format: settled leaves, deltas, filters, values apart and in chunks, a dropped
// keyspace, and a log with commands of every kind.
func write(t *testing.T) *memfs.FS {
	fsys := memfs.New()
	open := func() *pando.DB {
		db, err := pando.Open(dir, options(fsys))
		must(t, err)
		return db
	}
	db := open()
	main, err := db.Keyspace("default", nil)
	must(t, err)
	second, err := db.Keyspace("second", &pando.KeyspaceOptions{LeafBytes: 512})
	must(t, err)
	gone, err := db.Keyspace("gone", nil)
	must(t, err)
	b := db.NewBatch()
	for i := range 150 {
		must(t, b.Put(fmt.Appendf(nil, "key %03d", i), fmt.Appendf(nil, "value %d", i)))
	}
	for key, value := range firstFormat()["second"] {
		if key != "apart 2" {
			must(t, b.In(second).Put([]byte(key), []byte(value)))
		}
	}
	must(t, b.In(gone).Put([]byte("key"), []byte("of a keyspace that is dropped")))
	must(t, db.Write(b))
	must(t, main.PutExpiring([]byte("expires"), []byte("in 2200"), endOfTime))
	must(t, db.Close())
	db = open()
	for i := 0; i < 150; i += 30 {
		must(t, db.Put(fmt.Appendf(nil, "key %03d", i), []byte("changed by a delta")))
	}
	must(t, db.DropKeyspace("gone"))
	must(t, db.Close())
	db = open()
	second, err = db.Keyspace("second", nil)
	must(t, err)
	must(t, db.Put([]byte("key 007"), []byte("changed in the log")))
	must(t, db.Delete([]byte("key 100")))
	must(t, db.DeleteRange([]byte("key 040"), []byte("key 050")))
	must(t, second.Put([]byte("apart 2"), []byte(apart(2))))
	behind, err := db.Keyspace("behind", nil)
	must(t, err)
	must(t, behind.Put([]byte("log"), []byte("only")))
	image := fsys.KillImage()
	must(t, db.Close())
	return image
}

func options(fsys vfs.FS) *pando.Options {
	return &pando.Options{FS: fsys, MemoryBytes: 1 << 20, ValueThreshold: 300}
}

func file(name string) string { return "testdata/" + name + ".txt" }

func TestFormats(t *testing.T) {
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			if *update && f.write != nil {
				must(t, os.WriteFile(file(f.name), []byte(dump(t, f.write(t), dir)), 0o644))
			}
			fsys := load(t, f.name)
			t.Run("read-only", func(t *testing.T) { f.readOnly(t, fsys.KillImage()) })
			t.Run("read and write", func(t *testing.T) { f.readAndWrite(t, fsys.KillImage()) })
			t.Run("salvage", func(t *testing.T) { f.salvage(t, fsys.KillImage()) })
		})
	}
}

// load makes the files of a stored database.
func load(t *testing.T, name string) *memfs.FS {
	t.Helper()
	text, err := os.ReadFile(file(name))
	must(t, err)
	return restore(t, string(text))
}

// expect compares what a database holds, and checks it.
func (f stored) expect(t *testing.T, db *pando.DB, want content) {
	t.Helper()
	infos, err := db.Keyspaces()
	must(t, err)
	if len(infos) != len(want) {
		t.Fatalf("%d keyspaces, want %d: %+v", len(infos), len(want), infos)
	}
	for name, pairs := range want {
		k, err := db.Keyspace(name, nil)
		must(t, err)
		if l := k.Layout(); l != f.layout && name != "default" {
			t.Errorf("keyspace %q has the layout %v, want %v", name, l, f.layout)
		}
		got := map[string]string{}
		for key, value := range k.Range(nil, nil) {
			got[string(key)] = string(value)
		}
		must(t, k.Err())
		if !maps.Equal(got, pairs) {
			t.Fatalf("keyspace %q: %d pairs, want %d, or others", name, len(got), len(pairs))
		}
		n, err := k.Count(nil, nil)
		must(t, err)
		if n != int64(len(pairs)) {
			t.Fatalf("keyspace %q: counted %d pairs of %d", name, n, len(pairs))
		}
		for key, value := range pairs {
			got, err := k.Get([]byte(key))
			if must(t, err); string(got) != value {
				t.Fatalf("keyspace %q: key %q has another value", name, key)
			}
		}
	}
	report, err := db.Check(context.Background())
	must(t, err)
	must(t, report.Err())
}

func (f stored) readOnly(t *testing.T, fsys vfs.FS) {
	o := options(fsys)
	o.ReadOnly = true
	db, err := pando.Open(dir, o)
	must(t, err)
	f.expect(t, db, f.want())
	must(t, db.Close())
}

func (f stored) readAndWrite(t *testing.T, fsys vfs.FS) {
	want := f.want()
	reopen := func(fn func(db *pando.DB)) {
		t.Helper()
		db, err := pando.Open(dir, options(fsys))
		must(t, err)
		fn(db)
		must(t, db.Close())
	}
	reopen(func(db *pando.DB) {
		f.expect(t, db, want)
		k, err := db.Keyspace(f.changed, nil)
		must(t, err)
		at, err := k.Expiry([]byte("expires"))
		if must(t, err); !at.Equal(endOfTime) {
			t.Errorf("the expiring key expires at %v", at)
		}
		must(t, k.Put([]byte("key 001"), []byte("new")))
		must(t, k.Delete([]byte("key 002")))
		want[f.changed]["key 001"] = "new"
		delete(want[f.changed], "key 002")
		must(t, db.Checkpoint(context.Background()))
		f.expect(t, db, want)
	})
	reopen(func(db *pando.DB) {
		f.expect(t, db, want)
		must(t, db.Compact(context.Background(), pando.CompactOptions{}))
		f.expect(t, db, want)
	})
	reopen(func(db *pando.DB) { f.expect(t, db, want) })
}

func (f stored) salvage(t *testing.T, fsys vfs.FS) {
	report, err := pando.Salvage(context.Background(), dir, "new", options(fsys))
	must(t, err)
	if len(report.Lost) > 0 || report.Older > 0 {
		t.Errorf("an intact database:\n%s", report)
	}
	db, err := pando.Open("new", options(fsys))
	must(t, err)
	f.expect(t, db, f.want())
	must(t, db.Close())
}

// A database of a later format is refused, by its number, and is left as it is.
func TestLaterFormatIsRefused(t *testing.T) {
	fsys := load(t, formats[len(formats)-1].name)
	makeLater(t, fsys)
	before := dump(t, fsys, dir)
	for _, readOnly := range []bool{true, false} {
		o := options(fsys)
		o.ReadOnly = readOnly
		_, err := pando.Open(dir, o)
		if !errors.Is(err, pando.ErrVersion) || !strings.Contains(err.Error(), "format 77") || !strings.Contains(err.Error(), "up to 1") {
			t.Errorf("read-only %v: %v", readOnly, err)
		}
	}
	if _, err := pando.Salvage(context.Background(), dir, "new", options(fsys)); !errors.Is(err, pando.ErrVersion) {
		t.Errorf("salvage: %v", err)
	}
	must(t, fsys.Remove(dir+"/LOCK"))
	after := restore(t, before)
	must(t, after.Remove(dir+"/LOCK"))
	if dump(t, fsys, dir) != dump(t, after, dir) {
		t.Error("something was changed")
	}
}
