package memtable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pandodb/pando/internal/record"
)

// inOrder fails unless a walk finds these keys, in order.
func inOrder(t *testing.T, c *Cursor, keys [][]byte) {
	t.Helper()
	want := slices.SortedFunc(slices.Values(keys), bytes.Compare)
	for i, key := range want {
		if !c.Next() || !bytes.Equal(c.Key(), key) {
			t.Fatalf("key %d of %d is not %x", i, len(want), key)
		}
	}
	if c.Next() {
		t.Fatalf("%x after the last of %d keys", c.Key(), len(want))
	}
}

// TestOrderInPlace: many keys are sorted where they are listed, which takes no memory. What readers have of it stays valid when it is
// merged with what came later, and counts until Free.
func TestOrderInPlace(t *testing.T) {
	const many = 10 * fewPending
	const more = many / 2 // so that the two are merged
	table := newTable(t, LimitFor(many+more, 8*(many+more)))
	var keys [][]byte
	put := func(from, to uint64) {
		for i := from; i < to; i++ {
			key := binary.BigEndian.AppendUint64(nil, i*0x9E3779B97F4A7C15)
			table.Put(1, record.Hash(1, key), key, i+1, inline(nil))
			keys = append(keys, key)
		}
	}
	put(0, many)
	before := table.Bytes()
	early := table.NewCursor(1, always)
	if ordered := table.Bytes() - before; ordered != 0 {
		t.Fatalf("%d bytes for the order", ordered)
	}
	put(many, many+more)
	before = table.Bytes()
	table.NewCursor(1, always)
	if merged := table.Bytes() - before; merged != (many+more)*entryBytes {
		t.Fatalf("%d bytes for the merged order and what it replaced", merged)
	}
	inOrder(t, early, keys[:many])
	inOrder(t, table.NewCursor(1, always), keys)
}

// TestOrderOfLists makes orders of lists that have got full, whose keys had a beginning in common for a while, and that are of few keys
// and of many.
func TestOrderOfLists(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 11))
	for name, key := range map[string]func(i int) []byte{
		"spread":           func(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)*0x9E3779B97F4A7C15) },
		"numbers":          func(i int) []byte { return fmt.Appendf(nil, "user%09d", i) },
		"numbers, falling": func(i int) []byte { return fmt.Appendf(nil, "user%09d", 1e9-1-i) },
		"short":            func(i int) []byte { return fmt.Appendf(nil, "%d", i) },
		"two beginnings":   func(i int) []byte { return fmt.Appendf(nil, "%c:%012d", 'a'+byte(i/(3*fewPending)%2), i*7919%100_003) },
		"shorter at last":  func(i int) []byte { return fmt.Appendf(nil, "common:%08d", i)[i/(5*fewPending)*2:] },
	} {
		for _, pauses := range []int{50, 5000, 1e9} {
			table := newTable(t, 8<<20)
			var keys [][]byte
			seen := map[string]bool{}
			for i := range 9 * fewPending {
				value := make([]byte, 0)
				if i < fewPending { // the list expects few keys
					value = make([]byte, 2000)
				}
				k := key(i)
				if seen[string(k)] {
					continue
				}
				seen[string(k)] = true
				table.Put(1, record.Hash(1, k), k, uint64(i+1), inline(value))
				keys = append(keys, k)
				if rnd.IntN(pauses) == 0 {
					table.NewCursor(1, always)
				}
			}
			t.Run(fmt.Sprintf("%s/%d", name, pauses), func(t *testing.T) {
				inOrder(t, table.NewCursor(1, always), keys)
			})
		}
	}
}

// TestOrderBesideWriter orders while keys are listed: neither what is sorted nor what is listed may be lost.
func TestOrderBesideWriter(t *testing.T) {
	const many = 6 * fewPending
	table := newTable(t, LimitFor(many, 8*many))
	done := make(chan error)
	go func() {
		seen := 0
		for seen < many {
			n := 0
			last := []byte(nil)
			for c := table.NewCursor(1, always); c.Next(); n++ {
				if n > 0 && bytes.Compare(last, c.Key()) >= 0 {
					done <- fmt.Errorf("%x after %x", c.Key(), last)
					return
				}
				last = c.Key()
			}
			if n < seen {
				done <- fmt.Errorf("%d keys after %d", n, seen)
				return
			}
			seen = n
		}
		done <- nil
	}()
	for i := range uint64(many) {
		key := binary.BigEndian.AppendUint64(nil, i*0x9E3779B97F4A7C15)
		table.Put(1, record.Hash(1, key), key, i+1, inline(nil))
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestPoolHandsListsOn: the keys of the next table are listed where those of the last one were.
func TestPoolHandsListsOn(t *testing.T) {
	var p Pool
	first := usedTable(t, &p, 4<<20, 3*fewPending)
	memory := &first.keyspace(1).pending.Load().entries[0]
	first.Free()
	second := usedTable(t, &p, 4<<20, 3*fewPending)
	if &second.keyspace(1).pending.Load().entries[0] != memory {
		t.Error("the list lies elsewhere")
	}
	var keys [][]byte
	for i := range 3 * fewPending {
		keys = append(keys, []byte{byte(i >> 8), byte(i)})
	}
	inOrder(t, second.NewCursor(1, always), keys)
	if second.Free(); len(p.lists) != 1 {
		t.Errorf("%d lists are kept", len(p.lists))
	}
	if p.Close(); len(p.lists) != 0 {
		t.Error("a closed pool keeps lists")
	}
}
