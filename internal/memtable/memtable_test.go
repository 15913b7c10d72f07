package memtable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pandodb/pando/internal/record"
)

func newTable(t testing.TB, limit int) *Table {
	t.Helper()
	table, err := New(limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Free)
	return table
}

func inline(value []byte) record.Record { return record.Record{Kind: record.Inline, Value: value} }

func TestEmptyTable(t *testing.T) {
	table := newTable(t, 0)
	c := table.NewCursor(1, always)
	if c.First() || c.Last() || c.Next() || c.Prev() || c.SeekGE(nil) || c.SeekLT([]byte("x")) {
		t.Fatal("a cursor found something")
	}
	if _, _, ok := table.Get(1, record.Hash(1, nil), nil, always); ok || table.Fits(1, 0) || !table.Fits(0, 0) {
		t.Fatal("not empty, or it fits something")
	}
	if table.Len() != 0 || table.Keyspaces() != nil || table.Ranges(1, always) != nil || table.NewestIn(1, nil, nil, 0) {
		t.Fatal("not empty")
	}
	table.Free()
	table.Free()
}

func TestImpossibleLimit(t *testing.T) {
	if _, err := New(-8); err == nil {
		t.Fatal("no error")
	}
}

// What Fits promises must fit, to the last byte, whatever the shape of the records.
func TestFilledToTheBrim(t *testing.T) {
	for _, shape := range [][2]int{{0, 0}, {1, 0}, {5, 1}, {16, 100}, {record.MaxKey, record.MaxInline}, {3, 13}, {4, 9}} {
		table := newTable(t, LimitFor(1000, 1000*(shape[0]+shape[1])/8))
		key, value := make([]byte, shape[0]), make([]byte, shape[1])
		n := uint64(0)
		for ; table.Fits(1, len(key)+len(value)); n++ {
			if len(key) >= 8 {
				binary.BigEndian.PutUint64(key, n)
			}
			r := record.Record{Kind: record.Inline, Expiry: n + 1, Value: value}
			table.Put(0, record.Hash(0, key), key, n, r)
		}
		if n == 0 || table.used() > table.arena.size {
			t.Fatalf("%v: %d records, %d of %d bytes", shape, n, table.used(), table.arena.size)
		}
		for n > 0 {
			n--
			if len(key) >= 8 {
				binary.BigEndian.PutUint64(key, n)
			}
			r, seq, ok := table.Get(0, record.Hash(0, key), key, n)
			if !ok || seq != n || r.Expiry != n+1 || len(r.Value) != len(value) {
				t.Fatalf("%v: record %d: %d %v", shape, n, seq, ok)
			}
		}
	}
}

func TestLimitForFits(t *testing.T) {
	for _, n := range []int{0, 1, 7, 1000} {
		for _, size := range []int{0, 1, 131, 1 << 20} {
			if table := newTable(t, LimitFor(n, size)); !table.Fits(n, size) || table.Fits(n+1, size) {
				t.Fatalf("LimitFor(%d, %d) is not exact", n, size)
			}
		}
	}
}

// The bound of what one item needs holds for the worst paddings.
func TestOneItemFitsExactly(t *testing.T) {
	for first := range 17 {
		for second := range 17 {
			table := newTable(t, LimitFor(1, first+second))
			table.Put(1, 0, make([]byte, first), 1, record.Record{Kind: record.Inline, Expiry: 1, Value: make([]byte, second)})
			table = newTable(t, LimitFor(1, first+second))
			table.DeleteRange(1, make([]byte, first), bytes.Repeat([]byte{1}, second+1)[:second], 1)
		}
	}
}

func TestPutBeyondTheArenaPanics(t *testing.T) {
	table := newTable(t, 64)
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	table.Put(1, 0, make([]byte, 64), 1, record.Record{})
}

func TestRangeLimit(t *testing.T) {
	table := newTable(t, 1<<20)
	for i := range uint64(RangeLimit) {
		if !table.Fits(1, 20) {
			t.Fatalf("full after %d range deletes", i)
		}
		table.DeleteRange(1, []byte("from"), fmt.Appendf(nil, "to%05d", i), i+1)
	}
	if table.Fits(0, 0) {
		t.Fatal("fits more")
	}
	if n := len(table.Ranges(1, always)); n != 1 {
		t.Fatalf("%d ranges; growing ones should leave one", n)
	}
	if n := len(table.Ranges(1, 100)); n != 1 {
		t.Fatalf("%d ranges at an old snapshot", n)
	}
}

// Ranges of one batch that touch are one range, in whichever order they come.
func TestTouchingRangesJoin(t *testing.T) {
	for _, order := range [][]string{{"ab", "bc", "cd"}, {"ab", "cd", "bc"}, {"cd", "bc", "ab"}, {"bc", "ab", "cd"}} {
		table := newTable(t, 1<<16)
		table.DeleteRange(1, nil, nil, 4)
		for _, r := range order {
			table.DeleteRange(1, []byte(r[:1]), []byte(r[1:]), 5)
		}
		var got string
		for _, r := range table.Ranges(1, always) {
			got += fmt.Sprintf("[%s,%s)@%d ", r.Lo, r.Hi, r.Seq)
		}
		if want := "[,a)@4 [a,d)@5 [d,)@4 "; got != want {
			t.Fatalf("%v: %s", order, got)
		}
	}
}

// The number of runs stays small, whatever the rhythm in which keys come and cursors are made.
func TestRunsStayFew(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	table := newTable(t, 16<<20)
	key := make([]byte, 8)
	for n := uint64(1); table.Fits(1, 8) && n < 100_000; n++ {
		binary.BigEndian.PutUint64(key, rnd.Uint64())
		table.Put(1, record.Hash(1, key), key, n, record.Record{})
		if rnd.IntN(1+int(n/10)%100) != 0 {
			continue
		}
		o := table.ordered(table.keyspace(1))
		if len(o.runs) > maxRuns {
			t.Fatalf("%d runs at %d keys", len(o.runs), n)
		}
		if p := table.keyspace(1).pending.Load(); len(p.nodes) > 2048 {
			t.Fatalf("%d nodes listed as pending", len(p.nodes))
		}
	}
}

// Keys are in order as long as each keyspace has got each key once, and behind all that it had.
func TestOrdered(t *testing.T) {
	put := func(table *Table, ks uint32, key string) {
		table.Put(ks, record.Hash(ks, []byte(key)), []byte(key), uint64(table.Len()+1), inline(nil))
	}
	for _, last := range []struct {
		key  string
		want bool
	}{{"c", true}, {"bb", true}, {"b", false}, {"ab", false}, {"", false}} {
		table := newTable(t, 1<<16)
		if table.Ordered() != 0 {
			t.Fatal("an empty table holds bytes in order")
		}
		put(table, 1, "a")
		put(table, 2, "z")
		put(table, 1, "b")
		held := table.Ordered()
		if held < 3*versionHeader {
			t.Fatalf("three records in order are %d bytes", held)
		}
		put(table, 1, last.key)
		if got := table.Ordered(); got > held != last.want || !last.want && got != 0 {
			t.Errorf("after a, b, %q: %d bytes, before %d", last.key, got, held)
		}
		put(table, 1, "d")
		if got := table.Ordered() > 0; got != last.want {
			t.Errorf("after a, b, %q, d: in order %v", last.key, got)
		}
	}
}

func TestManyKeyspaces(t *testing.T) {
	table := newTable(t, 8<<20)
	const n = 20000
	for i := range uint32(n) {
		table.Put(i*3, record.Hash(i*3, nil), nil, uint64(i), inline([]byte{byte(i)}))
	}
	ids := table.Keyspaces()
	if len(ids) != n || !slices.IsSorted(ids) {
		t.Fatalf("%d keyspaces", len(ids))
	}
	for i := range uint32(n) {
		c := table.NewCursor(i*3, always)
		if !c.Next() || c.Next() || table.NewCursor(i*3+1, always).Next() {
			t.Fatalf("keyspace %d", i*3)
		}
	}
}

func TestBytesCountsWhatIsUsed(t *testing.T) {
	table := newTable(t, 4<<20)
	key, n := make([]byte, 16), 0
	for ; table.Fits(1, 116); n++ {
		binary.BigEndian.PutUint64(key, uint64(n))
		table.Put(1, record.Hash(1, key), key, uint64(n), inline(make([]byte, 100)))
	}
	unordered := table.Bytes()
	if perKey := unordered / n; perKey < 152+13+entryBytes || perKey > 152+38+entryBytes {
		t.Fatalf("%d bytes a key", perKey)
	}
	table.NewCursor(1, always)
	if ordered := table.Bytes() - unordered; ordered != 0 {
		t.Fatalf("%d bytes for the order of %d keys, which are sorted where they are listed", ordered, n)
	}
}

func TestSortAgainstComparison(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for style := range keyStyles {
		keys := keyMaker{rnd, style, 5000}
		table := newTable(t, 64<<20)
		n := 5000
		if style == 3 {
			n = 200
		}
		for i := range n {
			key := keys.key()
			table.Put(1, record.Hash(1, key), key, uint64(i), record.Record{})
		}
		r := table.ordered(table.keyspace(1)).runs[0]
		if r.prefix > len(r.firstKey(&table.arena)) {
			t.Fatalf("style %d: prefix %d", style, r.prefix)
		}
		for i, e := range r.entries {
			key := table.arena.key(e.node)
			if headAt(key, r.prefix) != e.head {
				t.Fatalf("style %d: head of %.40q is %x", style, key, e.head)
			}
			if i > 0 && bytes.Compare(table.arena.key(r.entries[i-1].node), key) >= 0 {
				t.Fatalf("style %d: out of order at %d", style, i)
			}
			if r.search(&table.arena, key) != i || r.search(&table.arena, append(bytes.Clone(key), 0)) != i+1 {
				t.Fatalf("style %d: search for %.40q is not %d", style, key, i)
			}
		}
	}
}

// One key that does not share the beginning of all others, wherever it comes, still finds its place.
func TestSortWithOneOddKey(t *testing.T) {
	for _, odd := range []string{"", "a comm", "a common beginning", "a common beginninG/", "b", "a common beginning/\x00"} {
		for place := 0; place < 200; place += 7 {
			table := newTable(t, 1<<20)
			for i := range 200 {
				key := fmt.Appendf(nil, "a common beginning/%05d", i*7919%200)
				if i == place {
					key = []byte(odd)
				}
				table.Put(1, record.Hash(1, key), key, uint64(i), record.Record{})
			}
			var before []byte
			for c := table.NewCursor(1, always); c.Next(); before = c.Key() {
				if before != nil && bytes.Compare(before, c.Key()) >= 0 {
					t.Fatalf("%q at %d: %q before %q", odd, place, before, c.Key())
				}
			}
		}
	}
}

func TestReadsDoNotAllocate(t *testing.T) {
	table := newTable(t, 1<<20)
	key := []byte("0123456789abcdef")
	hash := record.Hash(1, key)
	table.Put(1, hash, key, 1, inline(key))
	var c Cursor
	if n := testing.AllocsPerRun(100, func() {
		table.Get(1, hash, key, 1)
		table.Covered(1, key, 1)
		table.NewestIn(1, nil, nil, 1)
		c.Reset(table, 1, 1)
		for c.Next() {
			c.Record()
		}
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// One writer puts versions in a fixed pattern and announces each sequence number; readers at an announced one must see
// exactly what was put up to it, by look-up and in order, whatever the writer does meanwhile.
func TestReadersBesideTheWriter(t *testing.T) {
	const keys, versions = 3000, 12000
	table := newTable(t, 4<<20)
	keyOf := func(i uint64) []byte { return binary.BigEndian.AppendUint64([]byte("k"), i%keys*0x9E3779B97F4A7C15) }
	// Version seq is of key seq, modulo the number of keys; so at seq the newest of key i is the last such number.
	newest := func(i, seq uint64) uint64 {
		if i > seq {
			return 0
		}
		return seq - (seq-i)%keys
	}
	var announced atomic.Uint64
	var readers sync.WaitGroup
	check := func(rnd *rand.Rand) {
		seq := announced.Load()
		for range 30 {
			i := 1 + rnd.Uint64N(keys)
			key := keyOf(i)
			r, got, ok := table.Get(1, record.Hash(1, key), key, seq)
			want := newest(i, seq)
			if got != want || ok != (want > 0) || ok && binary.LittleEndian.Uint64(r.Value) != want {
				t.Errorf("key %d at %d: version %d, want %d", i, seq, got, want)
			}
		}
		c := table.NewCursor(1, seq)
		n, forward := 0, rnd.IntN(2) == 0
		var before []byte
		for ok := c.First(); ok; ok = c.Next() {
			r, got := c.Record()
			if got > seq || binary.LittleEndian.Uint64(r.Value) != got || before != nil && bytes.Compare(before, c.Key()) >= 0 {
				t.Errorf("cursor at %d: version %d of %q after %q", seq, got, c.Key(), before)
			}
			before = c.Key()
			n++
		}
		for ok := forward && c.Last(); ok; ok = c.Prev() {
			n++
		}
		want := int(min(seq, keys))
		if forward {
			want *= 2
		}
		if n != want {
			t.Errorf("cursor at %d: %d keys, want %d", seq, n, want)
		}
		if seq < announced.Load() && !table.NewestIn(1, nil, nil, seq) || table.NewestIn(2, nil, nil, 0) {
			t.Errorf("NewestIn at %d", seq)
		}
		if ranges := table.Ranges(3, seq); len(ranges) != int(min(1, seq/100)) || len(ranges) > 0 && ranges[0].Seq != seq/100*100 {
			t.Errorf("Ranges at %d: %v", seq, ranges)
		}
		if got := table.Covered(3, []byte("m"), seq); got != seq/100*100 {
			t.Errorf("Covered at %d: %d", seq, got)
		}
	}
	for i := range 3 {
		readers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 9))
			for announced.Load() < versions && !t.Failed() {
				check(rnd)
			}
			check(rnd)
		})
	}
	for seq := uint64(1); seq <= versions; seq++ {
		key := keyOf(seq)
		table.Put(1, record.Hash(1, key), key, seq, inline(binary.LittleEndian.AppendUint64(nil, seq)))
		if seq%100 == 0 {
			table.DeleteRange(3, []byte("a"), []byte("z"), seq)
		}
		announced.Store(seq)
	}
	readers.Wait()
}

// What was foreseen is taken when it is due, and is of no harm when it comes too late.
func TestForesee(t *testing.T) {
	table, err := New(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Free()
	key := func(i int) []byte { return fmt.Appendf(nil, "key %d", i) }
	n := 0
	put := func(count int) {
		for range count {
			k := key(n)
			n++
			table.Put(1, record.Hash(1, k), k, uint64(n), record.Record{Kind: record.Inline, Value: k})
		}
	}
	put(10)
	if f := table.Foresee(10, 200); f.slots != 0 {
		t.Errorf("10 keys, and an index of %d slots is foreseen", f.slots)
	}
	f := table.Foresee(5000, 100_000)
	if f.slots <= firstSlots {
		t.Errorf("thousands of keys, and an index of %d slots is foreseen", f.slots)
	}
	table.Provide(f)
	if spare := table.spare.Load(); spare == nil {
		t.Error("no index was made")
	}
	put(5000)
	if table.spare.Load() != nil {
		t.Error("the index was not taken")
	}
	late := Foresight{from: 0, to: 1 << 20, slots: firstSlots}
	table.Provide(late)
	put(15_000)
	table.Provide(late) // given back by Free
	for i := range n {
		if r, seq, ok := table.Get(1, record.Hash(1, key(i)), key(i), uint64(n)); !ok || seq != uint64(i+1) || string(r.Value) != string(key(i)) {
			t.Fatalf("key %d: %v, %d, %v", i, r, seq, ok)
		}
	}
}
