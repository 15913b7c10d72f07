package memtable

import (
	"testing"
	"unsafe"

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
