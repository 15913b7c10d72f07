package engine

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs/memfs"
)

func TestKeyspaceOptionsAreGolden(t *testing.T) {
	for _, c := range []struct {
		o          KeyspaceOptions
		dictionary uint16
		want       string
	}{
		{KeyspaceOptions{}, 0, "01" + "00" + "00" + "00" + "00000000" + "0000"},
		{KeyspaceOptions{Layout: Hash, Codec: segment.Zstd, OwnCodec: true, LeafBytes: 32 << 10}, 7, "01" + "02" + "02" + "01" + "00800000" + "0700"},
		{KeyspaceOptions{NoFilters: true}, 0, "01" + "00" + "00" + "02" + "00000000" + "0000"},
		{KeyspaceOptions{Codec: segment.S2, OwnCodec: true, NoFilters: true}, 0, "01" + "00" + "01" + "03" + "00000000" + "0000"},
	} {
		b := c.o.encode(c.dictionary)
		if got := hex.EncodeToString(b); got != c.want {
			t.Errorf("%+v: encoded as %s, want %s", c.o, got, c.want)
		}
		o, d, err := decodeOptions(b)
		if err != nil || o != c.o || d != c.dictionary {
			t.Errorf("%+v: decoded as %+v, dictionary %d, %v", c.o, o, d, err)
		}
		for n := range b {
			if _, _, err := decodeOptions(b[:n]); !errors.Is(err, corrupt.Err) {
				t.Errorf("cut to %d bytes: %v", n, err)
			}
		}
	}
}

func FuzzDecodeOptions(f *testing.F) {
	f.Add(KeyspaceOptions{LeafBytes: 4096}.encode(3))
	f.Add(KeyspaceOptions{NoFilters: true}.encode(0))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, d, err := decodeOptions(b)
		if err == nil && !bytes.Equal(o.encode(d), b) {
			t.Errorf("%x decodes to %+v, %d, which is encoded otherwise", b, o, d)
		}
	})
}

// A root has the keyspaces of its moment, whatever came behind it while it was written.
func TestKeyspacesAtACommand(t *testing.T) {
	k := newKeyspaces()
	k.restore(Spec{ID: 1, Name: DefaultName}, 0)
	k.nextID = 2
	k.create(Spec{ID: 2, Name: "a"}, 10)
	k.create(Spec{ID: 3, Name: "b"}, 20)
	k.drop(2, 30)
	k.create(Spec{ID: 4, Name: "a"}, 40)
	k.drop(4, 50)
	check := func(seq uint64, next uint32, want ...uint32) {
		t.Helper()
		list, n := k.at(seq)
		var got []uint32
		for _, ks := range list {
			got = append(got, ks.ID)
		}
		if !slices.Equal(got, want) || n != next {
			t.Errorf("after command %d: keyspaces %v, next %d; want %v, %d", seq, got, n, want, next)
		}
	}
	check(9, 2, 1)
	check(10, 3, 1, 2)
	check(29, 4, 1, 2, 3)
	check(30, 4, 1, 3)
	check(40, 5, 1, 3, 4)
	check(60, 5, 1, 3)
	k.settled(30)
	check(30, 4, 1, 3)
	check(49, 5, 1, 3, 4)
	k.settled(60)
	check(60, 5, 1, 3)
	if len(k.events) != 0 {
		t.Errorf("%d events are kept behind the root that has them", len(k.events))
	}
}

// The first keyspace of a database gets a number by chance, those behind it the next ones; and a database goes on with the numbers that it
// has, whether it was closed or killed, and whether its first number was settled or is in the log only.
func TestKeyspacesAreNumberedByChance(t *testing.T) {
	first := map[uint32]bool{}
	for range 4 {
		fsys := memfs.New()
		e := openNumbered(t, fsys)
		if got := e.keyspaces.id(DefaultID).Name; got != DefaultName {
			t.Fatalf("keyspace %d is %q", DefaultID, got)
		}
		a := makeKeyspace(t, e, "a")
		if a < lowestFirst || a >= highestFirst {
			t.Fatalf("the first keyspace has the number %d, want %d to below %d", a, lowestFirst, highestFirst)
		}
		first[a] = true

		killed := openNumbered(t, fsys.CrashImage(memfs.Policy{Unsynced: memfs.All}))
		if got := killed.keyspaces.named("a"); got == nil || got.ID != a {
			t.Fatalf("after a kill keyspace a is %v, its number was %d", got, a)
		}
		if got := makeKeyspace(t, killed, "b"); got != a+1 {
			t.Fatalf("after a kill the next keyspace has the number %d, want %d", got, a+1)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		again := openNumbered(t, fsys)
		if got := makeKeyspace(t, again, "b"); got != a+1 {
			t.Fatalf("after a close the next keyspace has the number %d, want %d", got, a+1)
		}
	}
	if len(first) == 1 {
		t.Error("the first keyspaces of four databases have the same number")
	}
}

func openNumbered(t *testing.T, fsys *memfs.FS) *Engine {
	t.Helper()
	e, err := Open(Options{FS: fsys, Dir: "db", MemoryBytes: leastMemory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// makeKeyspace creates a keyspace and returns its number.
func makeKeyspace(t *testing.T, e *Engine, name string) uint32 {
	t.Helper()
	ks, err := e.OpenKeyspace(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ks.ID
}

// When the numbers of keyspaces come to their end there are no more keyspaces, and those that are there stay what they are: no two have one
// number, and the catalogue can be read.
func TestNumbersOfKeyspacesEnd(t *testing.T) {
	fsys := memfs.New()
	e := openNumbered(t, fsys)
	e.keyspaces.nextID = math.MaxUint32 - 1
	last := makeKeyspace(t, e, "last")
	for _, name := range []string{"b", "c"} {
		if ks, err := e.OpenKeyspace(name, nil); err == nil {
			t.Errorf("keyspace %q has the number %d, the last one %d", name, ks.ID, last)
		}
	}
	if err := e.DropKeyspace("last"); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	again := openNumbered(t, fsys)
	if ks, err := again.OpenKeyspace("last", nil); err == nil {
		t.Errorf("a number that was used is given again: %d", ks.ID)
	}
	if ks := again.Keyspaces(); len(ks) != 1 || ks[0].ID != DefaultID {
		t.Errorf("the keyspaces are %v", ks)
	}
}

// Who creates keyspaces without end is told when the catalogue has no room for more: what is in memory settles then as before, and there is
// room again for one when another is dropped.
func TestCatalogueOfManyKeyspaces(t *testing.T) {
	e := openNumbered(t, memfs.New())
	first := makeKeyspace(t, e, "first")
	pad := strings.Repeat("x", MaxNameBytes-8)
	numbered := func(i uint32) string { return fmt.Sprintf("%s%08d", pad, i) }
	seq := e.visible.Load()
	for i := range uint32(segment.MaxBlob / MaxNameBytes) { // as many as there is no room for
		if i > 140_000 && i%250 == 0 {
			if ks, err := e.OpenKeyspace(fmt.Sprintf("%s%08x", pad[1:], i), nil); err != nil {
				break
			} else if seq = e.visible.Load(); ks.ID < first {
				t.Fatal(ks.ID)
			}
		}
		e.keyspaces.create(Spec{ID: e.keyspaces.next(), Name: numbered(i)}, seq) // as the log would tell of it, without one
	}
	n := len(e.Keyspaces())
	if n < 100_000 {
		t.Errorf("there is room for %d keyspaces only", n)
	}
	commitOf(t, e, func(enc *command.Encoder) { enc.Put(first, []byte("k"), []byte("v"), 0) })
	if err := e.Checkpoint(t.Context()); err != nil {
		t.Errorf("with %d keyspaces nothing settles: %v", n, err)
	}
	for i := range uint32(500) { // in the loop above not each one asked
		if err := e.DropKeyspace(numbered(i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.OpenKeyspace(numbered(5), nil); err != nil {
		t.Errorf("when 500 were dropped: %v", err)
	}
}

// What a keyspace with a tree takes of the catalogue is no more than is reckoned with.
func TestKeyspaceInTheCatalogue(t *testing.T) {
	e := openNumbered(t, memfs.New())
	id := makeKeyspace(t, e, "name")
	commitOf(t, e, func(enc *command.Encoder) { enc.Put(id, []byte("k"), []byte("v"), math.MaxInt64) })
	if err := e.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	without := root.Catalogue{}
	with := root.Catalogue{Keyspaces: []root.Keyspace{{Name: "name", Options: KeyspaceOptions{}.encode(0), Root: e.current.Load().Roots.At(id).Encode(nil)}}}
	const longer = 8 // the number of records, when it is as long as can be
	if n := len(with.Encode(nil)) - len(without.Encode(nil)) - len("name") + longer; n > keyspaceMost {
		t.Errorf("a keyspace takes %d bytes beside its name, reckoned with are %d", n, keyspaceMost)
	}
}

// Keyspaces that were dropped are forgotten as soon as nobody can ask for them any more, neither who reads an
// earlier moment nor who reads the log.
func TestDroppedKeyspacesAreForgotten(t *testing.T) {
	e := openNumbered(t, memfs.New())
	round := func() (names int) {
		commitOf(t, e, func(enc *command.Encoder) {
			for i := range byte(100) { // more than a segment of the log takes
				enc.Put(DefaultID, []byte{i}, make([]byte, 900), 0)
			}
		})
		if err := e.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.keyspaces.mu.RLock()
		defer e.keyspaces.mu.RUnlock()
		return len(e.keyspaces.dropped)
	}
	var read *Keyspace
	var held Held
	const rounds = 20
	for i := range rounds {
		id := makeKeyspace(t, e, "comes and goes")
		commitOf(t, e, func(enc *command.Encoder) { enc.Put(id, []byte("key"), []byte{byte(i)}, 0) })
		if i == rounds/2 {
			read = e.keyspaces.id(id)
			s, err := e.Snapshot()
			if err == nil {
				err = e.Hold(&held, s)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := e.DropKeyspace("comes and goes"); err != nil {
			t.Fatal(err)
		}
		if n := round(); n > 4 && read == nil {
			t.Errorf("round %d: %d keyspaces are known that were dropped", i, n)
		}
	}
	if e.NameOf(read.ID) != read.Name {
		t.Errorf("keyspace %d, which somebody reads, is called %q", read.ID, e.NameOf(read.ID))
	}
	s, err := held.Use()
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.Get(nil, nil, read, []byte("key")); err != nil || len(v) != 1 || v[0] != rounds/2 {
		t.Errorf("a snapshot of a keyspace that was dropped: %v, %v", v, err)
	}
	s.Release()
	held.End(ErrClosed)
	round()
	if n := round(); n > 4 {
		t.Errorf("%d keyspaces are known that were dropped, and nobody reads", n)
	}
}

// What keyspaces take of the catalogue is counted as they come and go, also when that is undone, and counts the same in the next run: with
// hundreds of thousands of them each creation once added it up.
func TestBytesOfKeyspacesAreCounted(t *testing.T) {
	fsys := memfs.New()
	e := openNumbered(t, fsys)
	check := func(when string, k *keyspaces) {
		t.Helper()
		want := 0
		for name := range k.byName {
			want += keyspaceMost + len(name)
		}
		if k.bytes != want || len(k.byName) != len(k.byID) {
			t.Errorf("%s: %d bytes, want %d", when, k.bytes, want)
		}
	}
	for _, name := range []string{"a", "bb", "ccc", "dddd"} {
		makeKeyspace(t, e, name)
	}
	check("created", e.keyspaces)
	e.keyspaces.create(Spec{ID: e.keyspaces.named("a").ID, Name: "a"}, e.visible.Load()) // as recovery may
	check("created twice", e.keyspaces)
	for range 2 {
		if err := e.DropKeyspace("bb"); err != nil {
			t.Fatal(err)
		}
		check("dropped", e.keyspaces)
		makeKeyspace(t, e, "bb")
		check("created anew", e.keyspaces)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	k := openNumbered(t, fsys).keyspaces
	check("opened again", k)
	k.drop(k.named("a").ID, 100)
	k.create(Spec{ID: k.next(), Name: "a"}, 101)
	k.create(Spec{ID: k.next(), Name: "eeeee"}, 102)
	k.drop(k.named("eeeee").ID, 103)
	check("before it is undone", k)
	for seq := uint64(103); seq >= 99; seq-- {
		k.undo(seq)
		check(fmt.Sprint("undone to ", seq), k)
	}
}
