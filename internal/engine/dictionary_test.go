package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/internal/command"
	"github.com/pandodb/pando/internal/commit"
	"github.com/pandodb/pando/internal/corrupt"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// compressible opens a database on which dictionaries can be trained.
func compressible(t *testing.T) (*Engine, *faultfs.FS) {
	t.Helper()
	fsys := faultfs.New(memfs.New())
	e, err := Open(Options{FS: fsys, Dir: "db", MemoryBytes: 16 << 20, Codec: segment.Zstd})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	var enc command.Encoder
	rng := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 400)
	for i := range words {
		words[i] = fmt.Sprintf("%x ", rng.Uint64())
	}
	for i := range 16_000 {
		var value []byte
		for range 4 + rng.IntN(6) {
			value = append(value, words[rng.IntN(len(words))]...)
		}
		enc.Put(DefaultID, fmt.Appendf(nil, "%08d", i), value, 0)
	}
	if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
		t.Fatal(err)
	}
	return e, fsys
}

// knows reports whether the store knows the dictionary of a number: another one under the same is refused.
func knows(e *Engine, id uint32) bool {
	return e.store.AddDictionary(uint16(id), []byte("another dictionary")) != nil
}

// A dictionary that has been replaced is known as long as something is open that may read with it, and no longer.
func TestReplacedDictionaryGoesWithTheLastSnapshotThatMayNeedIt(t *testing.T) {
	e, _ := compressible(t)
	ctx := context.Background()
	ks := e.Keyspace(DefaultID)
	var ids []uint32
	var snapshots []Snapshot
	for range 3 {
		if err := e.Compact(ctx, nil, nil); err != nil {
			t.Fatal(err)
		}
		s, err := e.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		ids, snapshots = append(ids, ks.DictionaryID()), append(snapshots, s)
	}
	if ids[0] == 0 || ids[1] == ids[0] || ids[2] == ids[1] {
		t.Fatalf("dictionaries %d", ids)
	}
	for _, id := range ids {
		if !knows(e, id) {
			t.Errorf("dictionary %d is gone while it may be read with", id)
		}
	}
	for i, s := range snapshots {
		s.Release()
		if gone := i < len(ids)-1; knows(e, ids[i]) == gone {
			t.Errorf("dictionary %d of %d is known: %t, when nobody needs it any more, unless it is the last one", ids[i], ids, !gone)
		}
	}
}

// A compaction that fails leaves no dictionary behind.
func TestFailedCompactionForgetsItsDictionary(t *testing.T) {
	e, fsys := compressible(t)
	if err := e.Compact(context.Background(), nil, nil); err != nil {
		t.Fatal(err)
	}
	before := e.lastDictionary
	fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Name: "*.seg", Skip: 2, Times: -1, Err: ErrDiskFull})
	if err := e.Compact(context.Background(), nil, nil); !errors.Is(err, ErrDiskFull) {
		t.Fatalf("a compaction on a full disk: %v", err)
	}
	fsys.Set()
	if e.lastDictionary == before {
		t.Fatal("no dictionary was trained")
	}
	for id := before + 1; id <= e.lastDictionary; id++ {
		if knows(e, uint32(id)) {
			t.Errorf("dictionary %d is kept", id)
		}
	}
	if !knows(e, uint32(before)) {
		t.Error("the one that is in use is gone")
	}
}

// segmentOfDictionary is where the only dictionary lies.
func segmentOfDictionary(t *testing.T, e *Engine) segment.Pointer {
	t.Helper()
	e.settling.Lock()
	defer e.settling.Unlock()
	if len(e.dictionaries) != 1 {
		t.Fatalf("%d dictionaries", len(e.dictionaries))
	}
	return e.dictionaries[0].Pointer
}

// A dictionary that a keyspace goes on using does not keep the segment that all else has left.
func TestDictionaryLeavesASegmentThatIsEmptied(t *testing.T) {
	e, _ := compressible(t)
	ctx := context.Background()
	if err := e.Compact(ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	before := segmentOfDictionary(t, e)
	settle := func(fill func(enc *command.Encoder)) {
		t.Helper()
		commitOf(t, e, fill)
		if err := e.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
	}
	settle(func(enc *command.Encoder) { enc.DeleteRange(DefaultID, []byte("0"), []byte("9")) })
	for i := range 4 {
		settle(func(enc *command.Encoder) { enc.Put(DefaultID, []byte("key"), fmt.Append(nil, i), 0) })
	}
	for _, i := range e.store.Segments() {
		if i.ID == before.Segment {
			t.Errorf("segment %d of %d bytes stays for %d bytes", i.ID, i.Size, i.Live)
		}
	}
	if after := segmentOfDictionary(t, e); after == before || e.Keyspace(DefaultID).DictionaryID() == 0 {
		t.Errorf("the dictionary is still at %+v", after)
	}
	if _, err := e.Check(ctx, func(d Damage) { t.Error(d.Err) }); err != nil {
		t.Error(err)
	}
}

// commitOf commits what fill puts together.
func commitOf(t *testing.T, e *Engine, fill func(enc *command.Encoder)) {
	t.Helper()
	var enc command.Encoder
	fill(&enc)
	if err := e.Commit(&commit.Request{Commands: enc.Payload(), Count: enc.Count(), Bytes: enc.Data()}); err != nil {
		t.Fatal(err)
	}
}

// spoilDictionary damages the only dictionary of a database, which it closes.
func spoilDictionary(t *testing.T, e *Engine, fsys *faultfs.FS) {
	t.Helper()
	at := segmentOfDictionary(t, e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.OpenReadWrite("db/" + segment.FilePath(at.Segment))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte("damage"), int64(at.Offset+at.Length/2))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// A damaged dictionary costs the leaves that were compressed with it, and nothing else: the database opens, what does not need it is read, and
// everything can be written.
func TestDamagedDictionaryKeepsNothingElse(t *testing.T) {
	e, fsys := compressible(t)
	ctx := context.Background()
	other, err := e.OpenKeyspace("other", nil)
	if err != nil {
		t.Fatal(err)
	}
	commitOf(t, e, func(enc *command.Encoder) { enc.Put(other.ID, []byte("key"), []byte("value"), 0) })
	if err := e.Compact(ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	spoilDictionary(t, e, fsys)
	get := func(e *Engine, ks *Keyspace, key, want string) {
		t.Helper()
		if got, err := e.Get(nil, ks, []byte(key)); string(got) != want || err != nil {
			t.Errorf("%s is %q, %v; want %q", key, got, err, want)
		}
	}
	for round := range 3 {
		e, err := Open(Options{FS: fsys, Dir: "db", MemoryBytes: 16 << 20, Codec: segment.Zstd})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		ks := e.Keyspace(DefaultID)
		get(e, e.keyspaces.named("other"), "key", "value")
		if _, err := e.Get(nil, ks, []byte("00000007")); !errors.Is(err, corrupt.Err) {
			t.Errorf("what was compressed with it: %v", err)
		}
		if round > 0 {
			get(e, ks, "00000008", "written since")
		}
		commitOf(t, e, func(enc *command.Encoder) {
			enc.Put(ks.ID, []byte("00000008"), []byte("written since"), 0)
			enc.Put(ks.ID, []byte("zzz"), []byte("written since"), 0)
		})
		damage := 0
		_, failed := e.Check(ctx, func(Damage) { damage++ })
		if err := errors.Join(e.Checkpoint(ctx), failed); err != nil || damage == 0 {
			t.Errorf("round %d: %d damages, %v", round, damage, err)
		}
		get(e, ks, "00000008", "written since")
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever drops what was compressed with a damaged dictionary is rid of that too.
func TestDamagedDictionaryGoesWithItsLeaves(t *testing.T) {
	e, fsys := compressible(t)
	ctx := context.Background()
	if err := e.Compact(ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	spoilDictionary(t, e, fsys)
	e, err := Open(Options{FS: fsys, Dir: "db", MemoryBytes: 16 << 20, Codec: segment.Zstd})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	commitOf(t, e, func(enc *command.Encoder) {
		enc.DeleteRange(DefaultID, nil, nil)
		enc.Put(DefaultID, []byte("key"), []byte("written since"), 0)
	})
	if err := e.Compact(ctx, nil, nil); err != nil {
		t.Errorf("Compact without the leaves that are lost: %v", err)
	}
	if _, err := e.Check(ctx, func(d Damage) { t.Error(d.Err) }); err != nil || len(e.dictionaries) > 0 {
		t.Errorf("%d dictionaries are left, %v", len(e.dictionaries), err)
	}
}
