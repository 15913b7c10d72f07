package pando

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pandodb/pando/test/entropy"
	"github.com/pandodb/pando/vfs/memfs"
)

// What the log refers to is kept for the feed as the log itself is: no more than KeepChanges bytes of it and one segment or file, however
// short the records are that refer to it, and at least as much. From OldestChange on the feed has everything, in this run, after a kill and
// in later runs.
func TestWhatTheLogRefersToIsKeptWithinKeepChanges(t *testing.T) {
	const kept = 512 << 10
	// The log, what it refers to, with one that is large, and what goes with the next checkpoint; live data, and as much garbage again.
	const most = 2*kept + 2*(3<<20/2) + 4<<20
	for name, change := range map[string]func(t *testing.T, db *DB, rng *rand.Rand){
		"values": func(t *testing.T, db *DB, rng *rand.Rand) {
			for range 20 {
				must(t, db.Put(fmt.Append(nil, rng.IntN(3)), entropy.Bytes(rng, 20_000+rng.IntN(60_000))))
			}
		},
		"values in chunks": func(t *testing.T, db *DB, rng *rand.Rand) {
			must(t, db.Put([]byte("a"), entropy.Bytes(rng, 3<<20/2)))
		},
		"batches": func(t *testing.T, db *DB, rng *rand.Rand) {
			b := db.NewBatch()
			for i := range 400 {
				must(t, b.Put(fmt.Append(nil, i), entropy.Bytes(rng, 900)))
			}
			must(t, db.Write(b))
		},
		"all of them, and short ones": func(t *testing.T, db *DB, rng *rand.Rand) {
			for range rng.IntN(400) {
				must(t, db.Put(fmt.Append(nil, rng.IntN(100)), entropy.Bytes(rng, rng.IntN(900))))
			}
			switch rng.IntN(4) {
			case 0:
				putMany(t, db)
			case 1:
				must(t, db.Delete(fmt.Append(nil, rng.IntN(3))))
			default:
				must(t, db.Put(fmt.Append(nil, rng.IntN(3)), entropy.Bytes(rng, 1100+rng.IntN(400_000))))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			fsys := memfs.New()
			o := Options{KeepChanges: kept, Compression: None}
			db := openMem(t, fsys, o)
			for round := range 30 {
				change(t, db, rng)
				switch round % 10 {
				case 4:
					fsys = fsys.KillImage()
					db = openMem(t, fsys, o)
					feedIsWhole(t, db, 0)
				case 9:
					must(t, db.Close())
					db = openMem(t, fsys, o)
					feedIsWhole(t, db, 0)
				}
				must(t, db.Checkpoint(t.Context()))
				if n := fsys.Used(); n > most {
					t.Fatalf("round %d: the database takes %d bytes", round, n)
				}
				feedIsWhole(t, db, kept)
			}
		})
	}
}

// frameHeader is what the log has in front of each record, which counts for KeepChanges as the record does.
const frameHeader = 32

// feedIsWhole checks that the feed can be read from the oldest change on, and has so many bytes of log at least if so many were written.
func feedIsWhole(t *testing.T, db *DB, least int) {
	t.Helper()
	oldest, n := db.OldestChange(), 0
	for c, err := range db.Changes(t.Context(), ChangesOptions{From: oldest}) {
		if err != nil {
			t.Fatalf("changes from %d of %d: %v", oldest, db.LastSeq(), err)
		}
		n += frameHeader + len(c.Key) + len(c.Value)
	}
	if oldest > 1 && n < least {
		t.Fatalf("changes from %d of %d: there are only %d bytes", oldest, db.LastSeq(), n)
	}
}

// A value that only the log refers to may have gone, and its segment seem to be there: the file was used again under another name, of which a
// power cut knows nothing, so that under the old one there are other values. The feed begins behind it; it failed at it.
func TestTheFeedBeginsBehindFilesThatWereUsedAgain(t *testing.T) {
	for name, length := range map[string]int{"short": 12_000, "in chunks": 5 << 19} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(length)))
			fsys := memfs.New()
			o := Options{KeepChanges: 8 << 20, Compression: None}
			db := openMem(t, fsys, o)
			must(t, db.Put([]byte("a"), entropy.Bytes(rng, length)))
			first := db.LastSeq()
			must(t, db.Close())
			before, err := fsys.List("db/segments")
			must(t, err)
			db = openMem(t, fsys, o) // and a segment of its own
			must(t, db.Put([]byte("a"), entropy.Bytes(rng, length)))
			must(t, db.Checkpoint(t.Context()))
			must(t, db.Put([]byte("b"), []byte("short")))
			fsys = fsys.KillImage()
			garbled := 0
			for _, name := range before {
				f, err := fsys.OpenReadWrite("db/segments/" + name)
				if err != nil {
					continue // it has gone: it was not one of values
				}
				size, err := f.Size()
				must(t, err)
				if _, err := f.WriteAt(entropy.Bytes(rng, int(size)-segmentHeader), segmentHeader); err != nil {
					t.Fatal(err)
				}
				must(t, f.Close())
				garbled++
			}
			if garbled == 0 {
				t.Fatal("the values that were replaced are not kept for the feed")
			}
			db = openMem(t, fsys, o)
			if oldest := db.OldestChange(); oldest <= first {
				t.Errorf("the oldest change is %d, of which the value has gone", oldest)
			}
			feedIsWhole(t, db, 0)
			if got, err := db.Get([]byte("a")); len(got) != length || err != nil {
				t.Errorf("there are %d bytes, %v", len(got), err)
			}
		})
	}
}

const segmentHeader = 64 // bytes

// A loop that is slower than the cleaner is told that a value has gone, where nothing keeps it.
func TestChangesWhoseValueWasCleanedAway(t *testing.T) {
	db := openMem(t, memfs.New(), Options{})
	must(t, db.Put([]byte("first"), nil))
	must(t, db.Put([]byte("long"), entropy.Bytes(rand.New(rand.NewPCG(1, 1)), 50_000)))
	var read []string
	var failed error
	for c, err := range db.Changes(t.Context(), ChangesOptions{}) {
		if failed = err; err != nil {
			break
		}
		if read = append(read, string(c.Key)); len(read) == 1 {
			must(t, db.Delete([]byte("long")))
			must(t, db.Compact(t.Context(), CompactOptions{}))
		}
	}
	if len(read) != 1 {
		t.Errorf("changes of %q were read", read)
	}
	wantErr(t, "the change whose value has gone", failed, ErrChangesGone)
}
