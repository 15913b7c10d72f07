package memtable

import (
	"testing"
	"unsafe"

	"github.com/pandodb/pando/internal/offheap"
	"github.com/pandodb/pando/internal/record"
)

// usedTable returns a table of the pool with some records in it.
func usedTable(t *testing.T, p *Pool, limit, records int) *Table {
	t.Helper()
	table, err := p.New(limit)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		key := []byte{byte(i >> 8), byte(i)}
		table.Put(1, record.Hash(1, key), key, uint64(i+1), record.Record{Value: []byte("value")})
	}
	return table
}

func (t *Table) address() unsafe.Pointer { return t.arena.base }

func TestPoolHandsMemoryOn(t *testing.T) {
	const limit = 1 << 20
	var p Pool
	first := usedTable(t, &p, limit, 500)
	memory := first.address()
	first.Free()
	if p.Waiting() == 0 {
		t.Fatal("the memory of a table that was used is not kept")
	}
	second := usedTable(t, &p, limit, 0)
	if second.address() != memory || p.Waiting() != 0 {
		t.Fatal("the second table has other memory")
	}
	if second.Len() != 0 || second.NewCursor(1, always).First() {
		t.Fatal("records of the first table are in the second")
	}
	third := usedTable(t, &p, limit, 1)
	second.Free()
	third.Free()
	if fourth := usedTable(t, &p, limit, 1); fourth.address() != memory {
		t.Fatal("of two blocks the one that less had been written to was kept")
	} else {
		if fourth.Spare() == 0 {
			t.Fatal("a table with one record uses all that another one had used")
		}
		if fourth.Trim(); fourth.Spare() != 0 {
			t.Fatal("memory is left")
		}
		if _, _, ok := fourth.Get(1, record.Hash(1, []byte{0, 0}), []byte{0, 0}, always); !ok {
			t.Fatal("Trim takes records away")
		}
		fourth.Free()
	}
	p.Close()
}

func TestPoolKeepsNothingThatCannotServe(t *testing.T) {
	const limit = 1 << 20
	for _, c := range []struct {
		name string
		free func(p *Pool)
	}{
		{"a table without records", func(p *Pool) { usedTable(t, p, limit, 0).Free() }},
		{"a pool that was closed", func(p *Pool) {
			table := usedTable(t, p, limit, 9)
			p.Close()
			table.Free()
		}},
		{"memory that was released", func(p *Pool) {
			usedTable(t, p, limit, 9).Free()
			p.Release()
		}},
	} {
		var p Pool
		if c.free(&p); p.Waiting() != 0 {
			t.Errorf("%s: memory is kept", c.name)
		}
	}
	var p Pool
	defer p.Close()
	usedTable(t, &p, limit, 9).Free()
	usedTable(t, &p, 2*limit, 9).Free() // of another size: it is another block
	if p.Waiting() == 0 {
		t.Error("nothing is kept")
	}
}

// TestPoolServesTheTableThatIsThere: a table is made when the one before it is frozen, and that one gives its memory back later.
func TestPoolServesTheTableThatIsThere(t *testing.T) {
	const limit = 1 << 20
	for _, c := range []struct {
		name  string
		begin func(*Table)
	}{
		{"put", func(table *Table) { table.Put(1, record.Hash(1, []byte("k")), []byte("k"), 9, record.Record{}) }},
		{"range delete", func(table *Table) { table.DeleteRange(1, []byte("a"), nil, 9) }},
		{"foresight", func(table *Table) { table.Foresee(1, 1) }},
	} {
		var p Pool
		first := usedTable(t, &p, limit, 500)
		memory := first.address()
		second := usedTable(t, &p, limit, 0)
		first.Free()
		c.begin(second)
		if second.address() != memory || second.Spare() == 0 || p.Waiting() != 0 {
			t.Errorf("%s: the second table did not take the memory of the first", c.name)
		}
		if second.NewestIn(1, nil, nil, 9) || second.NewCursor(1, 8).First() {
			t.Errorf("%s: records of the first table are in the second", c.name)
		}
		third := usedTable(t, &p, limit, 100)
		third.Free()
		second.Put(1, record.Hash(1, []byte("l")), []byte("l"), 10, record.Record{})
		if second.address() != memory {
			t.Errorf("%s: a table that has begun takes other memory", c.name)
		}
		second.Free()
		p.Close()
	}
}

// TestPoolHandsIndexesOn: the hash index of the next table grows in the memory of the last one's, and finds nothing of it.
func TestPoolHandsIndexesOn(t *testing.T) {
	const limit, records = 4 << 20, 20_000
	var p Pool
	first := usedTable(t, &p, limit, records)
	memory := map[unsafe.Pointer]bool{first.index.Load().base: true}
	for _, ix := range first.indexes {
		memory[ix.base] = true
	}
	first.Free()
	second := usedTable(t, &p, limit, 0)
	for i := range records {
		key := []byte{byte(i), byte(i >> 8), 1}
		if _, _, ok := second.Get(1, record.Hash(1, key[:2]), key[:2], always); ok {
			t.Fatalf("key %x of the first table is in the second", key[:2])
		}
		second.Put(1, record.Hash(1, key), key, uint64(i+1), record.Record{})
		if ix := second.index.Load(); !memory[ix.base] {
			t.Fatalf("after %d records the index has %d slots elsewhere", i+1, ix.mask+1)
		}
	}
	if second.Free(); len(p.indexes) != len(memory) {
		t.Errorf("%d indexes are kept, of %d that there were", len(p.indexes), len(memory))
	}
	if p.Close(); len(p.indexes) != 0 {
		t.Error("a closed pool keeps indexes")
	}
	if usedTable(t, &p, limit, 1).Free(); len(p.indexes) != 0 {
		t.Error("a closed pool takes indexes")
	}
}

// A table that waits for its first record leaves memory in the pool, which can be given to others. It takes what is left.
func TestPoolGivesMemoryAway(t *testing.T) {
	const limit, piece = 8 << 20, offheap.HugePage
	var p Pool
	defer p.Close()
	memory, err := offheap.Alloc(2 * piece)
	if err != nil {
		t.Fatal(err)
	}
	defer offheap.Free(memory)
	first := usedTable(t, &p, limit, 60_000)
	if first.used() < piece {
		t.Fatalf("%d bytes are used, want a huge page", first.used())
	}
	first.Free()
	waiting := p.Waiting()
	second, err := p.NewLater(limit)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Free()
	if p.Waiting() != waiting || second.Spare() != 0 {
		t.Errorf("%d bytes wait of %d, and the table has %d", p.Waiting(), waiting, second.Spare())
	}
	given := p.Give(memory[:piece])
	if left := p.Waiting(); given && left >= piece || !given && left != waiting {
		t.Errorf("given %v: %d bytes are left of %d", given, left, waiting)
	}
	left := p.Waiting()
	if p.Give(memory) || p.Waiting() != left { // it has less
		t.Errorf("%d bytes are left, want %d", p.Waiting(), left)
	}
	for i := range memory {
		memory[i] = 1
	}
	for i := range 60_000 {
		key := []byte{byte(i >> 8), byte(i)}
		second.Put(1, record.Hash(1, key), key, uint64(i+1), record.Record{Value: []byte("other")})
	}
	if p.Waiting() != 0 {
		t.Errorf("%d bytes wait beside a table with records", p.Waiting())
	}
	for i := range memory {
		if memory[i] != 1 {
			t.Fatalf("byte %d of what was given away is %d", i, memory[i])
		}
	}
	key := []byte{0, 9}
	if r, _, ok := second.Get(1, record.Hash(1, key), key, always); !ok || string(r.Value) != "other" {
		t.Errorf("%q, %v", r.Value, ok)
	}
}
