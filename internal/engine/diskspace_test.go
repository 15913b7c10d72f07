package engine

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/pandodb/pando/internal/clock"
	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/vfs/memfs"
)

func TestAdds(t *testing.T) {
	put := command.Command{Op: command.Put, Keyspace: 1, Key: []byte("p"), Value: []byte("v")}
	apart := command.Command{Op: command.PutApart, Keyspace: 1, Key: []byte("a"), Value: make([]byte, 28)}
	shorter := command.Command{Op: command.Put, Keyspace: 1, Key: []byte("s"), Value: []byte("v")}
	shortens := func(c *command.Command) bool { return string(c.Key) == "s" }
	remove := command.Command{Op: command.Delete, Keyspace: 1, Key: []byte("d")}
	for _, c := range []struct {
		name     string
		commands []command.Command
		want     bool
	}{
		{"nothing", nil, false},
		{"a put", []command.Command{put}, true},
		{"a value apart", []command.Command{apart}, true},
		{"one that becomes shorter", []command.Command{shorter}, false},
		{"very many that become shorter", slices.Repeat([]command.Command{shorter}, shorteningMost+1), true},
		{"a delete", []command.Command{remove}, false},
		{"a key that moves", []command.Command{remove, put}, false},
		{"more puts than deletes", []command.Command{put, remove, apart}, true},
		{"a range that goes", []command.Command{put, put, {Op: command.DeleteRange, Keyspace: 1, Key: []byte("a")}}, false},
		{"a keyspace that goes", []command.Command{put, {Op: command.DropKeyspace, Keyspace: 1}, put}, false},
		{"a note", []command.Command{{Op: command.Note, Keyspace: 1, Key: []byte("n")}}, false},
	} {
		var e command.Encoder
		for _, one := range c.commands {
			e.Add(one)
		}
		if got := adds(e.Payload(), shortens); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// hasty is a clock by which each round of making room takes all the time that there is.
type hasty struct {
	clock.Clock
	asked atomic.Int64
}

func (h *hasty) Now() time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(h.asked.Add(1)) * makingRoom / 2)
}

// What writers do to make room is not in vain because it takes them long: the next one goes on where it was, until there is room for nearly as many
// as were deleted.
func TestMakingRoomThatTakesLong(t *testing.T) {
	fsys := memfs.New()
	fsys.SetCapacity(12 << 20)
	fsys.TellSpace()
	e, err := Open(Options{FS: fsys, Dir: "db", MemoryBytes: 1 << 20, Clock: &hasty{Clock: clock.System()}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ks, err := e.OpenKeyspace("k", nil)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.NewChaCha8([32]byte{})
	write := func(op command.Op, key []byte) error {
		c := command.Command{Op: op, Keyspace: ks.ID, Key: key}
		if op == command.Put {
			c.Value = make([]byte, 100)
			_, _ = rnd.Read(c.Value)
		}
		var enc command.Encoder
		enc.Add(c)
		return e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()})
	}
	fill := func() (keys [][]byte) {
		for refused := 0; refused < 50; {
			key := binary.BigEndian.AppendUint64(nil, rnd.Uint64())
			switch err := write(command.Put, key); {
			case errors.Is(err, ErrDiskFull):
				refused++
			case err != nil:
				t.Fatal(err)
			default:
				keys, refused = append(keys, key), 0
			}
		}
		return keys
	}
	keys := fill()
	for i, key := range keys {
		if i%3 == 0 {
			continue
		}
		if err := write(command.Delete, key); err != nil {
			t.Fatal(err)
		}
	}
	if room := len(fill()); room < len(keys)/2 {
		t.Errorf("of %d records two thirds were deleted, and there was room for %d", len(keys), room)
	}
}

// Who deletes makes another attempt at making space when much has gone since the last one that was in vain, however short a time ago that
// was, and not before.
func TestDeletesMakeSpaceAgain(t *testing.T) {
	fsys := memfs.New()
	fsys.TellSpace()
	e, err := Open(Options{FS: fsys, Dir: "db", MemoryBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ks, err := e.OpenKeyspace("k", nil)
	if err != nil {
		t.Fatal(err)
	}
	write := func(op command.Op, key int, size int) {
		t.Helper()
		commitOf(t, e, func(enc *command.Encoder) {
			enc.Add(command.Command{Op: op, Keyspace: ks.ID, Key: binary.BigEndian.AppendUint32(nil, uint32(key)), Value: make([]byte, size)})
		})
	}
	for i := range 10_000 {
		write(command.Put, i, 100)
	}
	if err := e.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	fsys.SetCapacity(fsys.Used() + e.spaceNeeded()/2)
	e.enoughSpace()
	free := e.space.free.Load()
	for i, c := range []struct {
		lost int64
		want bool
	}{{0, false}, {e.spaceNeeded() / losing * 2, true}} {
		e.space.left.Store(free + c.lost)
		again := time.Now().Add(time.Hour)
		e.space.again.Store(&again)
		before := e.counters.checkpoints.Load()
		write(command.Delete, i, 0)
		if made := e.counters.checkpoints.Load() > before; made != c.want {
			t.Errorf("%d bytes less are free than when it was in vain: made space %t", c.lost, made)
		}
	}
}

// setBack is the system's clock, of which the wall clock has been set back.
type setBack struct {
	clock.Clock
	seconds atomic.Uint64
}

// Now is time.Now but for the seconds of the wall clock, which are above the 30 bits of nanoseconds: what measures time is as it was.
func (c *setBack) Now() time.Time {
	now := c.Clock.Now()
	*(*uint64)(unsafe.Pointer(&now)) -= c.seconds.Load() << 30
	return now
}

// Who has tried in vain to make space tries again after a pause, and not when the system's clock has come to where it was before it was set
// back.
func TestSpaceIsMadeAfterTheClockIsSetBack(t *testing.T) {
	fsys, ticks := memfs.New(), &setBack{Clock: clock.System()}
	fsys.TellSpace()
	e, err := Open(Options{FS: fsys, Dir: "db", MemoryBytes: 1 << 20, Clock: ticks})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	before := time.Now()
	var lead request
	e.pipeline.Acquire(&lead)
	for e.space.again.Load() == nil {
		fsys.SetCapacity(fsys.Used()) // there is nothing to give back
		if e.enoughSpace() {
			t.Fatal("there is enough space")
		}
		if err := e.makeSpace(); err != nil && !isDiskFull(err) {
			t.Error(err)
		}
	}
	e.pipeline.Release()
	took := time.Since(before)
	ticks.seconds.Store(3600)
	if back := time.Now().Unix() - ticks.Now().Unix(); back < 3500 {
		t.Fatalf("the clock was set back by %d seconds", back)
	}
	for begin := time.Now(); !e.mayMakeSpace(); time.Sleep(took) {
		if time.Since(begin) > restAfter*took+10*time.Second {
			t.Fatalf("after %v nobody may try again what took %v", time.Since(begin), took)
		}
	}
}
