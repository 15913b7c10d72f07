package engine

import (
	"encoding/binary"
	"testing"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/vfs/memfs"
)

// While everything settles the memory of memtables that have settled serves the page cache, and afterwards what is left of it the memtable
// in front. Records are the right ones meanwhile, and when the memtables have filled and settled again.
func TestMemoryGoesFromMemtablesToTheCache(t *testing.T) {
	e, err := Open(Options{FS: memfs.New(), Dir: "db", MemoryBytes: 48 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ks := e.Keyspace(DefaultID)
	const records, batch = 90_000, 1000
	key := func(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)*0x9E3779B97F4A7C15) }
	value := func(i, round int) []byte {
		v := make([]byte, 100)
		binary.LittleEndian.PutUint64(v[i%90:], uint64(i*3+round))
		return v
	}
	for round := range 2 {
		for i := 0; i < records; {
			var enc command.Encoder
			for range batch {
				enc.Put(DefaultID, key(i), value(i, round), 0)
				i++
			}
			if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
				t.Fatal(err)
			}
		}
		var r request
		e.pipeline.Acquire(&r) // the worker, who may have settled it at once, gives the memtable in front no memory meanwhile
		_, err := e.freezeFront()
		guard := e.epoch.Enter()
		spare := e.current.Load().Tables[0].Spare()
		guard.Exit()
		e.pipeline.Release()
		if err != nil || spare != 0 {
			t.Fatalf("round %d: the memtable in front has %d bytes before anything has settled, %v", round, spare, err)
		}
		if err := e.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []byte
		for i := range records {
			if got, err = e.Get(got[:0], ks, key(i)); err != nil || string(got) != string(value(i, round)) {
				t.Fatalf("round %d, record %d: %x, %v", round, i, got, err)
			}
		}
	}
}
