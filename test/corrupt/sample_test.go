package corrupt

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

const dir = "db"

// table is the keyspace that is a hash table.
const table = "table"

// content is what a database holds: keyspace, then key, then value.
type content map[string]map[string]string

func (c content) clone() content {
	out := content{}
	for ks, pairs := range c {
		out[ks] = maps.Clone(pairs)
	}
	return out
}

func (c content) equal(d content) bool {
	return maps.EqualFunc(c, d, func(a, b map[string]string) bool { return maps.Equal(a, b) })
}

// sample is a database with every kind of blob, as a killed process left it.
type sample struct {
	image   *memfs.FS
	files   []string
	tail    string                                // the segment with the values that only the log refers to
	states  []content                             // after the last checkpoint, and after each commit behind it
	history map[string]map[string]map[string]bool // every value that a key ever had, by keyspace and key
	names   map[string]bool                       // every keyspace that ever was
}

func (s *sample) final() content { return s.states[len(s.states)-1] }

// note remembers the values of a state.
func (s *sample) note(c content) {
	for ks, pairs := range c {
		s.names[ks] = true
		for k, v := range pairs {
			if s.history[ks] == nil {
				s.history[ks] = map[string]map[string]bool{}
			}
			if s.history[ks][k] == nil {
				s.history[ks][k] = map[string]bool{}
			}
			s.history[ks][k][v] = true
		}
	}
}

func options(fsys vfs.FS) *pando.Options {
	return &pando.Options{FS: fsys, MemoryBytes: 1 << 20, ValueThreshold: 200}
}

// uncompressed makes a database in whose files values are found as they are.
func uncompressed(t *testing.T) (fsys *memfs.FS, o *pando.Options, db *pando.DB) {
	t.Helper()
	fsys = memfs.New()
	o = options(fsys)
	o.Compression = pando.None
	db, err := pando.Open(dir, o)
	must(t, err)
	return fsys, o, db
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// maker writes a database and its model side by side.
type maker struct {
	t     testing.TB
	db    *pando.DB
	now   content
	rng   *rand.Rand
	batch *pando.Batch
}

func (m *maker) keyspace(name string) *pando.Keyspace {
	o := &pando.KeyspaceOptions{LeafBytes: 256}
	if name == table {
		o.Layout = pando.Hash
	}
	k, err := m.db.Keyspace(name, o)
	must(m.t, err)
	if m.now[name] == nil {
		m.now[name] = map[string]string{}
	}
	return k
}

func (m *maker) put(ks, key, value string) {
	must(m.t, m.batch.In(m.keyspace(ks)).Put([]byte(key), []byte(value)))
	m.now[ks][key] = value
}

func (m *maker) delete(ks, key string) {
	must(m.t, m.batch.In(m.keyspace(ks)).Delete([]byte(key)))
	delete(m.now[ks], key)
}

func (m *maker) deleteRange(ks, lo, hi string) {
	must(m.t, m.batch.In(m.keyspace(ks)).DeleteRange([]byte(lo), []byte(hi)))
	maps.DeleteFunc(m.now[ks], func(k, _ string) bool { return k >= lo && k < hi })
}

func (m *maker) commit() {
	must(m.t, m.db.Write(m.batch))
	m.batch = m.db.NewBatch()
}

func (m *maker) random(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.rng.Uint32())
	}
	return string(b)
}

func small(i int) string { return fmt.Sprintf("k%05d", i) }

// tableRecords are more than one index page of a hash table has.
const tableRecords = 1200

// fillTable writes what the hash table begins with, and changeTable changes some of it.
func (m *maker) fillTable() {
	for i := range tableRecords {
		m.put(table, small(i), m.random(3))
	}
	m.put(table, "apart", m.random(250))
}

func (m *maker) changeTable(round int) {
	for i := round; i < tableRecords; i += 100 {
		m.put(table, small(i), m.random(4))
		m.delete(table, small(i+50))
	}
}

// newSample makes the sample. Its settled part is written in three checkpoints, so that there are deltas, dead blobs and an
// older catalogue; its log holds four commits behind the last of them.
func newSample(t testing.TB) *sample {
	fsys := memfs.New()
	s := &sample{history: map[string]map[string]map[string]bool{}, names: map[string]bool{}}
	m := &maker{t: t, now: content{"default": {}}, rng: rand.New(rand.NewPCG(1, 2))}
	open := func() {
		db, err := pando.Open(dir, options(fsys))
		must(t, err)
		m.db, m.batch = db, db.NewBatch()
	}
	open()
	for i := range 2000 {
		m.put("small", small(i), m.random(3))
	}
	for i := range 40 {
		m.put("default", fmt.Sprintf("name %d", i), m.random(20))
		m.put("values", fmt.Sprintf("v%02d", i%6), m.random(210))
		m.put("dropped", fmt.Sprint(i), "gone")
	}
	m.fillTable()
	m.put("long", "long", strings.Repeat("what goes on and on ", 53_000)) // more than one chunk
	m.commit()
	must(t, m.keyspace("default").PutExpiring([]byte("expires"), []byte("some day"), time.Now().Add(1000*time.Hour)))
	m.now["default"]["expires"] = "some day"
	s.note(m.now)
	must(t, m.db.Checkpoint(context.Background()))
	must(t, m.db.DropKeyspace("dropped"))
	delete(m.now, "dropped")
	must(t, m.db.Close())
	for round := range 2 { // on a database whose leaves are not in memory, few changes make deltas
		open()
		for i := round; i < 2000; i += 100 {
			m.put("small", small(i), m.random(4))
			m.delete("small", small(i+50))
		}
		m.changeTable(round)
		m.put("values", "v01", m.random(220))
		m.put("default", fmt.Sprintf("name %d", round), m.random(10))
		m.commit()
		s.note(m.now)
		must(t, m.db.Close())
	}
	open()
	s.states = append(s.states, m.now.clone())
	m.put("small", small(7), "seven")
	m.put(table, small(7), "seven")
	m.delete(table, small(8))
	m.put("values", "v02", m.random(230))
	m.commit()
	s.states = append(s.states, m.now.clone())
	m.deleteRange("small", small(100), small(140))
	m.put("small", small(120), "back")
	m.commit()
	s.states = append(s.states, m.now.clone())
	m.keyspace("late")
	s.states = append(s.states, m.now.clone())
	m.put("late", "first", "of a new keyspace")
	m.delete("default", "name 5")
	m.commit()
	s.states = append(s.states, m.now.clone())
	m.put("late", "second", m.random(300))
	m.commit()
	s.states = append(s.states, m.now.clone())
	s.image = fsys.KillImage()
	must(t, m.db.Close())
	for _, c := range s.states {
		s.note(c)
	}
	s.files = list(t, s.image, dir)
	for _, f := range s.files {
		if path.Ext(f) == ".seg" {
			s.tail = f
		}
	}
	return s
}

// list returns the files below a directory.
func list(t testing.TB, fsys vfs.FS, below string) []string {
	names, err := fsys.List(below)
	must(t, err)
	var out []string
	for _, n := range names {
		name := path.Join(below, n)
		info, err := fsys.Stat(name)
		must(t, err)
		if info.Dir {
			out = append(out, list(t, fsys, name)...)
		} else {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func size(t testing.TB, fsys vfs.FS, name string) int64 {
	info, err := fsys.Stat(name)
	must(t, err)
	return info.Size
}

// contents returns the bytes of a file.
func contents(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	b, err := vfs.ReadFile(fsys, name, 1<<30)
	must(t, err)
	return b
}

// change applies fn to the bytes of a file and writes the outcome.
func change(t testing.TB, fsys vfs.FS, name string, fn func(b []byte) []byte) {
	b := fn(bytes.Clone(contents(t, fsys, name)))
	f, err := fsys.Create(name)
	must(t, err)
	_, err = f.WriteAt(b, 0)
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
}
