package command

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/record"
	"github.com/pandodb/pando/test/golden"
)

func encode(commands []Command) *Encoder {
	e := new(Encoder)
	for _, c := range commands {
		e.Add(c)
	}
	return e
}

func decode(payload []byte) ([]Command, error) {
	d := NewDecoder(payload)
	var commands []Command
	for d.Next() {
		commands = append(commands, d.Command())
	}
	return commands, d.Err()
}

// What was added behind a mark is decoded as it was added, also where it names no keyspace because it is the one before the mark, and into
// a command that has been used before.
func TestSince(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	all := aBatch()
	for at := range all {
		e := encode(all[:at])
		m := e.Mark()
		for _, c := range all[at:] {
			e.Add(c)
		}
		for name, into := range map[string]*Command{"fresh": {}, "used": {Op: Note, Keyspace: 77, Key: []byte("k"), Value: []byte("v"), Expiry: 5}} {
			var got []Command
			d := e.Since(m)
			for d.NextTo(into) {
				got = append(got, *into)
			}
			if !reflect.DeepEqual(all[at:], got) || d.Err() != nil { // a cmp.Diff of each takes seconds
				t.Errorf("behind %d commands, into a %s one: %v\n%s", at, name, d.Err(), cmp.Diff(all[at:], got))
			}
		}
	}
}

// aBatch has every operation, every flag, and keyspaces that change and stay.
func aBatch() []Command {
	return []Command{
		{Op: CreateKeyspace, Keyspace: 300, Key: []byte("name"), Value: []byte{1, 2}},
		{Op: Put, Keyspace: 300, Key: []byte("a"), Value: []byte("one")},
		{Op: Put, Keyspace: 1, Key: []byte{}, Value: []byte{}},
		{Op: Put, Keyspace: 1, Key: []byte("b"), Value: []byte("two"), Expiry: 1000},
		{Op: PutApart, Keyspace: 1, Key: []byte("c"), Value: bytes.Repeat([]byte{7}, 28), Expiry: 1},
		{Op: PutApart, Keyspace: 1, Key: []byte("d"), Value: bytes.Repeat([]byte{8}, 28)},
		{Op: Delete, Keyspace: 1, Key: []byte("e")},
		{Op: DeleteRange, Keyspace: 1, Key: []byte("f"), Value: []byte("g")},
		{Op: DeleteRange, Keyspace: 1, Key: []byte{}, Value: nil},
		{Op: DeleteRange, Keyspace: 1, Key: []byte{}, Value: []byte{}},
		{Op: Clock, Keyspace: 1, Expiry: 1_700_000_000_000},
		{Op: Note, Keyspace: 1, Key: []byte("why")},
		{Op: Bulk, Keyspace: 1, Key: []byte{0, 0, 0, 0, 0, 0, 0, 9}, Value: []byte{0, 0, 0, 0, 0, 1, 0, 0}},
		{Op: DropKeyspace, Keyspace: 1 << 31},
		{Op: Delete, Keyspace: 0, Key: bytes.Repeat([]byte("k"), MaxKey)},
	}
}

func TestRoundTrip(t *testing.T) {
	want := aBatch()
	e := encode(want)
	got, err := decode(e.Payload())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	data, count := 0, len(want)
	for _, c := range want {
		if c.Op != Note { // which takes nothing in the memtable
			data += len(c.Key) + len(c.Value)
		}
		if c.Op == Bulk {
			_, commands := c.Spilled()
			count += int(commands) - 1
		}
	}
	n, err := Count(e.Payload())
	if err != nil || n != count || e.Count() != len(want) || e.Data() != data {
		t.Fatalf("%d commands, Count %d, %d bytes of data, want %d (%v)", n, e.Count(), e.Data(), data, err)
	}
}

func TestJoinedPayloads(t *testing.T) {
	a, b := aBatch()[:5], aBatch()[5:]
	got, err := decode(append(bytes.Clone(encode(a).Payload()), encode(b).Payload()...))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(aBatch(), got); d != "" {
		t.Fatal(d)
	}
}

func TestRecord(t *testing.T) {
	for _, c := range []struct {
		command Command
		want    record.Record
	}{
		{Command{Op: Put, Value: []byte("v"), Expiry: 5}, record.Record{Kind: record.Inline, Value: []byte("v"), Expiry: 5}},
		{Command{Op: PutApart, Value: []byte("r")}, record.Record{Kind: record.Apart, Value: []byte("r")}},
		{Command{Op: Delete, Key: []byte("k")}, record.Record{Kind: record.Tombstone}},
	} {
		if d := cmp.Diff(c.want, c.command.Record()); d != "" {
			t.Error(d)
		}
	}
}

func TestMalformed(t *testing.T) {
	for _, c := range []struct {
		name    string
		payload []byte
	}{
		{"no operation", []byte{0x10, 0}},
		{"unknown operation", []byte{0x18, 0}},
		{"unused flag", []byte{0x91, 0, 0, 0}},
		{"open end on a put", []byte{0x51, 0, 0, 0}},
		{"no keyspace", []byte{0x03, 0}},
		{"keyspace beyond 32 bits", []byte{0x13, 0xff, 0xff, 0xff, 0xff, 0x1f, 0}},
		{"keyspace cut", []byte{0x13, 0x80}},
		{"expiry 0", []byte{0x31, 0, 0, 0, 0}},
		{"expiry on a delete", []byte{0x33, 0, 5, 0}},
		{"key too long", []byte{0x13, 0, 0x81, 0x80, 0x04}},
		{"value too long", []byte{0x11, 0, 0, 0x81, 0x80, 0x04}},
		{"value of an open end", []byte{0x54, 0, 0, 1, 'x'}},
		{"key cut", []byte{0x13, 0, 2, 'x'}},
		{"value missing", []byte{0x11, 0, 1, 1, 'x'}},
		{"second command cut", []byte{0x13, 0, 0, 0x03}},
	} {
		if _, err := decode(c.payload); !errors.Is(err, ErrMalformed) || !errors.Is(err, corrupt.Err) {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := Count(c.payload); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestEncoderIsReused(t *testing.T) {
	var e Encoder
	key, value := []byte("0123456789abcdef"), make([]byte, 100)
	run := func() {
		e.Reset()
		for i := range uint32(100) {
			e.Put(i%3, key, value, uint64(i%2))
			e.Delete(i%3, key)
			e.DeleteRange(1, key, nil)
		}
	}
	run()
	first := bytes.Clone(e.Payload())
	if n := testing.AllocsPerRun(10, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if !bytes.Equal(e.Payload(), first) {
		t.Error("the same commands gave other bytes")
	}
	n := testing.AllocsPerRun(10, func() {
		if n, err := Count(first); n != 300 || err != nil {
			t.Error(n, err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations of the decoder", n)
	}
	e.Release(1 << 20)
	if cap(e.buf) == 0 || e.Count() != 0 || e.Data() != 0 {
		t.Error("a small buffer was given up, or something was kept")
	}
	e.Release(10)
	if cap(e.buf) != 0 {
		t.Error("a large buffer was kept")
	}
}

// A buffer for about as many commands as were foreseen is made a few times, whatever their number; one whose commands end early has at
// most eight times what they took.
func TestRoom(t *testing.T) {
	key, value := []byte("0123456789abcdef"), make([]byte, 100)
	for _, c := range []struct {
		likely, commands int
		most             int // bytes allocated
	}{
		{0, 1, 200},
		{0, 1000, 600_000},
		{118_000, 1000, 190_000},
		{118_000, 1100, 450_000},
		{118_000, 10, 5_000},
		{118_000, 40, 60_000},
		{100 << 20, 1000, 500_000},
	} {
		var e Encoder
		total := 0
		for range c.commands {
			before := cap(e.buf)
			e.Room(len(key)+len(value), c.likely)
			if cap(e.buf) != before {
				total += cap(e.buf)
			}
			room := cap(e.buf)
			e.Put(1, key, value, 1<<60)
			if cap(e.buf) != room {
				t.Fatalf("%d of %d commands: the room of %d bytes was not enough", e.Count(), c.commands, room)
			}
		}
		if total > c.most || cap(e.buf) > max(8*len(e.buf), 8*firstBuffer) {
			t.Errorf("likely %d, %d commands: %d bytes allocated, want at most %d; %d for %d", c.likely, c.commands, total, c.most, cap(e.buf), len(e.buf))
		}
	}
}

func TestRandomBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slice := rapid.SliceOfN(rapid.Byte(), 0, 300)
		draw := rapid.Custom(func(t *rapid.T) Command {
			c := Command{Op: Op(rapid.IntRange(int(Put), int(Clock)).Draw(t, "op")), Keyspace: rapid.Uint32().Draw(t, "keyspace")}
			if c.Op.hasKey() {
				c.Key = slice.Draw(t, "key")
			}
			if c.Op.hasValue() && (c.Op != DeleteRange || rapid.Bool().Draw(t, "bounded")) {
				c.Value = slice.Draw(t, "value")
			}
			if c.Op == Put || c.Op == PutApart || c.Op == Clock {
				c.Expiry = rapid.Uint64Min(1).Draw(t, "expiry")
			}
			return c
		})
		want := rapid.SliceOfN(draw, 0, 20).Draw(t, "commands")
		for i, c := range want {
			if c.Op == Clock { // belongs to no keyspace: it keeps that of the command before
				want[i].Keyspace = 0
				if i > 0 {
					want[i].Keyspace = want[i-1].Keyspace
				}
			}
		}
		payload := encode(want).Payload()
		got, err := decode(payload)
		if err != nil {
			t.Fatal(err)
		}
		if len(want) > 0 {
			if d := cmp.Diff(want, got); d != "" {
				t.Fatal(d)
			}
		}
		for cut := range payload {
			if n, _ := Count(payload[:cut]); n >= len(want) {
				t.Fatalf("%d of %d bytes have all %d commands", cut, len(payload), n)
			}
		}
	})
}

// TestGolden holds the format still. A released format never changes.
func TestGolden(t *testing.T) {
	batch := aBatch()
	batch[len(batch)-1].Key = []byte("k")
	var b strings.Builder
	e := new(Encoder)
	for _, c := range batch {
		start := len(e.Payload())
		e.Add(c)
		fmt.Fprintf(&b, "%-14s % x\n", names[c.Op], e.Payload()[start:])
	}
	golden.Compare(t, "batch.golden", b.String())
}

var names = map[Op]string{
	Put: "Put", PutApart: "PutApart", Delete: "Delete", DeleteRange: "DeleteRange", CreateKeyspace: "CreateKeyspace",
	DropKeyspace: "DropKeyspace", Clock: "Clock", Bulk: "Bulk", Note: "Note",
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte{})
	for i := range aBatch() {
		if i < 13 {
			f.Add(encode(aBatch()[i : i+1]).Payload())
		}
	}
	f.Add(encode(aBatch()[:13]).Payload())
	f.Fuzz(func(t *testing.T, payload []byte) {
		commands, err := decode(payload)
		if err != nil && !errors.Is(err, ErrMalformed) {
			t.Fatal(err)
		}
		again, err := decode(encode(commands).Payload())
		if err != nil {
			t.Fatal(err)
		}
		// The keyspace of a Clock or Bulk means nothing and is not written where it stands alone.
		for i := range commands {
			if commands[i].Op == Clock || commands[i].Op == Bulk {
				commands[i].Keyspace, again[i].Keyspace = 0, 0
			}
		}
		if d := cmp.Diff(commands, again); d != "" {
			t.Fatal(d)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	var e Encoder
	key, value := make([]byte, 16), make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		if len(e.Payload()) > 1<<16 {
			e.Reset()
		}
		e.Put(7, key, value, 0)
	}
}

func BenchmarkDecode(b *testing.B) {
	var e Encoder
	for range 1000 {
		e.Put(7, make([]byte, 16), make([]byte, 100), 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		if n, err := Count(e.Payload()); n != 1000 || err != nil {
			b.Fatal(n, err)
		}
	}
}
