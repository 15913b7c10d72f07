package corrupt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/vfs/memfs"
)

// beside is a database with damaged pages that is written to.
type beside struct {
	t      *testing.T
	rng    *rand.Rand
	fsys   *memfs.FS
	o      *pando.Options
	db     *pando.DB
	k      *pando.Keyspace
	before map[string]string // what there was when it was damaged
	since  map[string]string // what was put since
	gone   map[string]bool   // deleted since
}

func (b *beside) key() string { return fmt.Sprintf("%06d the key of a record", b.rng.IntN(4000)) }

func (b *beside) value() string {
	n := b.rng.IntN(40)
	switch b.rng.IntN(30) {
	case 0:
		n = 150 + b.rng.IntN(2000) // some of them lie apart
	case 1:
		return strings.Repeat(fmt.Sprint(b.rng.Uint64()), 5000)
	}
	return strings.Repeat(fmt.Sprint(b.rng.Uint64()), 1+n/20)
}

func (b *beside) open() {
	b.t.Helper()
	var err error
	b.db, err = pando.Open(dir, b.o)
	must(b.t, err)
	b.k, err = b.db.Keyspace("damaged", &pando.KeyspaceOptions{LeafBytes: 256})
	must(b.t, err)
}

// newBeside makes the database and damages some of its pages.
func newBeside(t *testing.T, seed uint64) *beside {
	b := &beside{
		t: t, rng: rand.New(rand.NewPCG(seed, 3)), fsys: memfs.New(),
		before: map[string]string{}, since: map[string]string{}, gone: map[string]bool{},
	}
	b.o = options(b.fsys)
	b.open()
	for round := range 3 {
		for range 3000 / (1 + 9*round) {
			key, value := b.key(), b.value()
			must(t, b.k.Put([]byte(key), []byte(value)))
			b.before[key] = value
		}
		must(t, b.db.Checkpoint(context.Background()))
	}
	must(t, b.db.Close())
	names := list(t, b.fsys, dir+"/segments")
	for range 1 + b.rng.IntN(12)*(1+9*b.rng.IntN(2)) {
		name := names[b.rng.IntN(len(names))]
		image := b.fsys.KillImage()
		change(t, b.fsys, name, func(raw []byte) []byte {
			raw[b.rng.IntN(len(raw))] ^= 1 << b.rng.IntN(8)
			return raw
		})
		db, err := pando.Open(dir, b.o)
		if err != nil { // what no open does without
			b.fsys, b.o.FS = image, image
			continue
		}
		must(t, db.Close())
	}
	b.open()
	return b
}

func (b *beside) step() {
	b.t.Helper()
	switch r := b.rng.IntN(100); {
	case r < 50:
		key, value := b.key(), b.value()
		must(b.t, b.k.Put([]byte(key), []byte(value)))
		b.since[key] = value
		delete(b.gone, key)
	case r < 80:
		from := b.rng.IntN(4000)
		for i := from; i < from+1+b.rng.IntN(2)*b.rng.IntN(40); i++ {
			key := fmt.Sprintf("%06d the key of a record", i)
			must(b.t, b.k.Delete([]byte(key)))
			delete(b.since, key)
			b.gone[key] = true
		}
	case r < 86:
		lo := b.key()
		hi := lo[:5] + "9"
		if b.rng.IntN(2) == 0 {
			lo, hi = min(lo, b.key()), lo+"9"
		}
		must(b.t, b.k.DeleteRange([]byte(lo), []byte(hi)))
		for _, m := range []map[string]string{b.before, b.since} {
			for key := range m {
				if key >= lo && key < hi {
					delete(b.since, key)
					b.gone[key] = true
				}
			}
		}
	case r < 88:
		from := b.rng.IntN(4000) // many at once, at the end as well
		for i := from; i < from+b.rng.IntN(2000); i++ {
			key, value := fmt.Sprintf("%06d the key of a record", i), b.value()
			must(b.t, b.k.Put([]byte(key), []byte(value)))
			b.since[key] = value
			delete(b.gone, key)
		}
	case r < 98:
		must(b.t, b.db.Checkpoint(context.Background()))
	default:
		must(b.t, b.db.Close())
		b.open()
	}
}

// judge looks at an answer for a key.
func (b *beside) judge(key string, value []byte, err error) {
	b.t.Helper()
	want, put := b.since[key]
	old, was := b.before[key]
	switch {
	case put && (err != nil || string(value) != want):
		b.t.Fatalf("%s, written since: %.40q, %v, want %.40q", key, value, err, want)
	case put || errors.Is(err, pando.ErrCorrupt):
	case errors.Is(err, pando.ErrNotFound):
		if was && !b.gone[key] {
			b.t.Fatalf("%s was lost without a word", key)
		}
	case err != nil:
		b.t.Fatalf("%s: %v", key, err)
	case b.gone[key]:
		b.t.Fatalf("%s came back with %.40q", key, value)
	case !was || string(value) != old:
		b.t.Fatalf("%s has %.40q, never written", key, value)
	}
}

func (b *beside) readAll() {
	b.t.Helper()
	for i := range 6100 {
		key := fmt.Sprintf("%06d the key of a record", i)
		v, err := b.k.Get([]byte(key))
		b.judge(key, v, err)
	}
	it := b.k.Iter(nil)
	seen := map[string]bool{}
	for it.Next() {
		v := it.Value()
		if it.Err() != nil {
			break
		}
		b.judge(string(it.Key()), bytes.Clone(v), nil)
		seen[string(it.Key())] = true
	}
	err := it.Err()
	must(b.t, it.Close())
	if err != nil && !errors.Is(err, pando.ErrCorrupt) {
		b.t.Fatal(err)
	}
	if err != nil {
		return
	}
	for key := range b.since {
		if !seen[key] {
			b.t.Fatalf("%s is missing in a walk", key)
		}
	}
}

// What was written to a page that is damaged on the disk once never settled, so that the log grew until no writer got on.
func TestWritesBesideDamageSettle(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	for seed := range uint64(usualBeside) {
		b := newBeside(t, seed)
		for range 150 {
			b.step()
		}
		b.readAll()
		must(t, b.db.Checkpoint(context.Background()))
		must(t, b.db.Close())
		b.open()
		b.readAll()
		b.salvage()
		must(t, b.k.DeleteRange(nil, nil))
		must(t, b.db.Checkpoint(context.Background()))
		must(t, b.k.Put([]byte("key"), []byte("value")))
		must(t, b.db.Checkpoint(context.Background()))
		report, err := b.db.Check(context.Background())
		must(t, err)
		if err := report.Err(); err != nil {
			t.Errorf("seed %d: damage in what was made anew: %v", seed, err)
		}
		must(t, b.db.Close())
	}
}

// More than deltas can hold comes behind a damaged leaf, as it does where keys ascend.
func TestAppendingBehindADamagedLeaf(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	fsys, o, db := uncompressed(t)
	k, _ := twoKeyspaces(t, db)
	for i := range 1000 {
		must(t, k.Put(fmt.Appendf(nil, "%08d", i), fmt.Appendf(nil, "inline %d.", i)))
	}
	must(t, db.Close())
	if damageValues(t, fsys, []byte("inline 999.")) == 0 {
		t.Fatal("nothing was damaged")
	}
	db, err := pando.Open(dir, o)
	must(t, err)
	k, _ = twoKeyspaces(t, db)
	const last = 31000
	for i := 1000; i < last; i++ {
		must(t, k.Put(fmt.Appendf(nil, "%08d", i), distinct(i)[:100]))
	}
	must(t, db.Checkpoint(context.Background()))
	must(t, k.DeleteRange([]byte("00020000"), []byte("00020500")))
	must(t, k.Put([]byte("00020123"), distinct(1)[:100]))
	must(t, k.Put([]byte("00020124"), bytes.Repeat([]byte("key and value "), 13)))
	must(t, db.Close())
	db, err = pando.Open(dir, o)
	must(t, err)
	k, _ = twoKeyspaces(t, db)
	for i := 1000; i < last; i++ {
		v, err := k.Get(fmt.Appendf(nil, "%08d", i))
		switch {
		case i == 20124:
		case i >= 20000 && i < 20500 && i != 20123:
			if !errors.Is(err, pando.ErrNotFound) && !errors.Is(err, pando.ErrCorrupt) {
				t.Fatalf("record %d, which is deleted: %d bytes, %v", i, len(v), err)
			}
		case i == 20123:
			if err != nil || !bytes.Equal(v, distinct(1)[:100]) {
				t.Fatalf("record %d: %d bytes, %v", i, len(v), err)
			}
		case err != nil || !bytes.Equal(v, distinct(i)[:100]):
			t.Fatalf("record %d: %d bytes, %v", i, len(v), err)
		}
	}
	if _, err := k.Get([]byte("00000999")); !errors.Is(err, pando.ErrCorrupt) {
		t.Errorf("what was damaged: %v, want ErrCorrupt", err)
	}
	if v, err := k.Get([]byte("00000001")); err != nil || string(v) != "inline 1." {
		t.Errorf("what was not damaged: %q, %v", v, err)
	}
	if _, err := k.Count(nil, nil); !errors.Is(err, pando.ErrCorrupt) {
		t.Errorf("a count over damage: %v, want ErrCorrupt", err)
	}
	must(t, k.DeleteRange([]byte("0000"), nil))
	must(t, db.Checkpoint(context.Background()))
	report, err := db.Check(context.Background())
	must(t, err)
	must(t, report.Err())
	must(t, db.Close())
}

// salvage looks at what comes back of the database: all that was written since, as it is.
func (b *beside) salvage() {
	b.t.Helper()
	target := options(b.fsys)
	must(b.t, b.db.Close())
	_, err := pando.Salvage(context.Background(), dir, "target", target)
	must(b.t, err)
	db, err := pando.Open("target", target)
	must(b.t, err)
	k, err := db.Keyspace("damaged", nil)
	must(b.t, err)
	for key, want := range b.since {
		if v, err := k.Get([]byte(key)); err != nil || string(v) != want {
			b.t.Fatalf("salvaged: %s has %.40q, %v, want %.40q", key, v, err, want)
		}
	}
	must(b.t, db.Close())
	b.open()
}
