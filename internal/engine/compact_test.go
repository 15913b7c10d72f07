package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs/memfs"
)

// rounds is a database of three keyspaces in which each round of a compaction replaces little.
type rounds struct {
	*Engine
	t  *testing.T
	fs *memfs.FS
}

const roundRecords = 8000 // in each keyspace

func openRounds(t *testing.T, fsys *memfs.FS) *rounds {
	t.Helper()
	e, err := Open(Options{FS: fsys, Dir: "db", MemoryBytes: leastMemory, Profile: Relaxed, Codec: segment.Zstd})
	if err != nil {
		t.Fatal(err)
	}
	e.sizes.round, e.sizes.haste = 96<<10, 96<<10
	return &rounds{e, t, fsys}
}

// fill writes every record of all keyspaces.
func (r *rounds) fill(version int) {
	r.t.Helper()
	rng := rand.New(rand.NewPCG(1, uint64(version)))
	for _, name := range []string{"a", "b", "c"} {
		ks, err := r.OpenKeyspace(name, nil)
		var enc command.Encoder
		for i := 0; i < roundRecords && err == nil; i++ {
			text := fmt.Sprintf(`{"keyspace": %q, "version": %d, "some": "%x", "note": %q, "more": %d, "most": "%x"}`,
				name, version, rng.Uint64()>>rng.IntN(20), strings.Repeat("well ", rng.IntN(17)), i*i, rng.Uint64()>>rng.IntN(30))
			enc.Put(ks.ID, fmt.Appendf(nil, "%06d", i*7), []byte(text), 0)
			if enc.Data() > r.SpillBytes()/2 || i+1 == roundRecords {
				err = r.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()})
				enc.Reset()
			}
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// compact compacts, and returns what a kill would leave in the first stretch of each round.
func (r *rounds) compact(ctx context.Context, codec *segment.Codec) (images []*memfs.FS, err error) {
	last := uint64(0)
	err = r.Compact(ctx, codec, func(done, total int64) {
		if g := r.root.Current().Generation; g != last && done < total {
			last = g
			images = append(images, r.fs.KillImage())
		}
	})
	return images, err
}

// sound fails the test unless everything can be read.
func (r *rounds) sound(when string) {
	r.t.Helper()
	sum, err := r.Check(r.t.Context(), func(d Damage) { r.t.Errorf("%s: %q: %v", when, d.Keyspace, d.Err) })
	if err != nil || sum.Keyspaces != 4 {
		r.t.Fatalf("%s: %+v, %v", when, sum, err)
	}
	s, err := r.Snapshot()
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.Release()
	for _, ks := range r.Keyspaces() {
		if ks.ID == DefaultID {
			continue
		}
		if n, err := s.View.Root(ks.ID).Count(nil, nil, 0); n != roundRecords || err != nil {
			r.t.Fatalf("%s: keyspace %q has %d records, %v", when, ks.Name, n, err)
		}
	}
}

func (r *rounds) close() {
	r.t.Helper()
	if err := r.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// Between any two rounds of a compaction there is a whole database: it has the dictionaries with which leaves were compressed before, and
// those that are used now, and the checkpoints that follow keep them.
func TestRoundsOfACompactionLeaveWholeDatabases(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	r := openRounds(t, memfs.New())
	var images []*memfs.FS
	none := segment.None
	for version, codec := range []*segment.Codec{nil, nil, &none} { // dictionaries are made, others are made, and they stay without use
		r.fill(version)
		more, err := r.compact(t.Context(), codec)
		if err != nil {
			t.Fatal(err)
		}
		if len(more) < 6 {
			t.Errorf("compaction %d took %d rounds", version, len(more))
		}
		for i := version; i < len(more); i += 4 {
			images = append(images, more[i])
		}
		if n := len(r.dictionaries); n != 3 {
			t.Errorf("%d dictionaries after compaction %d", n, version)
		}
		for _, d := range r.dictionaries {
			if i := r.store.Segments()[0]; d.Pointer.Segment < i.ID {
				t.Errorf("dictionary %d lies in segment %d, the first one is %d", d.ID, d.Pointer.Segment, i.ID)
			}
		}
	}
	r.sound("in the end")
	r.close()
	for i, image := range images {
		for _, when := range []string{"as it was left", "after a checkpoint"} {
			r := openRounds(t, image)
			r.sound(fmt.Sprintf("image %d %s", i, when))
			ks := r.Keyspaces()[0]
			var enc command.Encoder
			enc.Put(ks.ID, []byte("000000"), []byte(when), 0)
			if err := r.Commit(&commit.Request{Commands: enc.Payload(), Count: 1, Bytes: enc.Data()}); err != nil {
				t.Fatal(err)
			}
			r.close()
		}
	}
}

// A compaction that is broken off again and again leaves no more dictionaries than two for each keyspace, and one that gets to its end
// leaves one, and nothing where it was.
func TestCompactionsThatAreBrokenOff(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	r := openRounds(t, memfs.New())
	r.fill(0)
	if _, err := r.compact(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r.fill(1 + i)
		ctx, cancel := context.WithCancel(t.Context())
		err := r.Compact(ctx, nil, func(done, total int64) {
			if done > total*int64(i+1)/5 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("broken off: %v", err)
		}
		if n := len(r.dictionaries); n < 3 || n > 6 {
			t.Errorf("%d dictionaries of three keyspaces after %d compactions that were broken off", n, i+1)
		}
		if i%2 == 0 {
			r.close()
			r = openRounds(t, r.fs)
		}
		r.sound(fmt.Sprintf("broken off %d times", i+1))
	}
	before := r.store.NextID()
	if _, err := r.compact(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if n := len(r.dictionaries); n != 3 {
		t.Errorf("%d dictionaries of three keyspaces in the end", n)
	}
	for _, i := range r.store.Segments() {
		if i.ID < before {
			t.Errorf("something stays in segment %d of before: %+v", i.ID, i)
		}
	}
	r.sound("in the end")
	r.close()
}
