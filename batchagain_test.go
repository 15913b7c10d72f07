package pando

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/pandodb/pando/internal/spill"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// fillNoise puts records that do not compress, with the keys 0 to n-1.
func fillNoise(n int, put func(key, value []byte) error) error {
	noise := rand.NewChaCha8([32]byte{1})
	value := make([]byte, 500)
	for i := range uint32(n) {
		_, _ = noise.Read(value)
		if err := put(binary.BigEndian.AppendUint32(nil, i), value); err != nil {
			return err
		}
	}
	return nil
}

// fed returns the keys of all changes.
func fed(db *DB) (keys []string, err error) {
	for c, err := range db.Changes(context.Background(), ChangesOptions{}) {
		if err != nil {
			return keys, fmt.Errorf("behind %d changes: %w", len(keys), err)
		}
		keys = append(keys, string(c.Key))
	}
	return keys, nil
}

// A large batch that finds the disk full was once emptied by that: written again it answered nil, and nothing of it was there.
func TestBatchIsWrittenAgainAfterAFullDisk(t *testing.T) {
	const n = 4000
	for _, more := range []int{0, 1, n} { // what is added to the batch before it is written again
		for _, profile := range []Profile{Durable, Relaxed, Bench} {
			t.Run(fmt.Sprintf("%v/%d more", profile, more), func(t *testing.T) {
				fsys := memfs.New()
				db := openMem(t, fsys, Options{MemoryBytes: 1 << 20, Profile: profile})
				b := db.NewBatch()
				must(t, fillNoise(n, b.Put))
				fsys.SetCapacity(fsys.Used() + 1<<20)
				for range 2 {
					if err := db.Write(b); !errors.Is(err, ErrDiskFull) {
						t.Fatalf("on a full disk: %v", err)
					}
				}
				if c, err := db.Count(nil, nil); c != 0 || err != nil {
					t.Errorf("the batch that failed left %d records, %v", c, err)
				}
				fsys.SetCapacity(0)
				must(t, fillNoise(more, func(key, value []byte) error { return b.Put(append(key, "more"...), value) }))
				must(t, db.Write(b))
				if c, err := db.Count(nil, nil); c != int64(n+more) || err != nil {
					t.Errorf("%d records instead of %d, %v", c, n+more, err)
				}
				if err := db.Write(b); !errors.Is(err, ErrBatchWritten) {
					t.Errorf("when it was written: %v", err)
				}
			})
		}
	}
}

// attempt is one database in which a call finds the disk full while a large batch is written.
type attempt struct {
	base *memfs.FS
	fsys *faultfs.FS
	db   *DB
	b    *Batch
}

const attempted = 300 // records of the batch

func (a *attempt) open(t *testing.T) {
	t.Helper()
	var err error
	if a.db, err = Open("db", &Options{FS: a.fsys, MemoryBytes: 1 << 20, KeepChanges: 64 << 20}); err != nil {
		t.Fatal(err)
	}
}

// newAttempt prepares the batch, and a record before it.
func newAttempt(t *testing.T) *attempt {
	t.Helper()
	base := memfs.New()
	a := &attempt{base: base, fsys: faultfs.New(base)}
	a.open(t)
	must(t, a.db.Put([]byte("first"), nil))
	must(t, a.db.Checkpoint(context.Background())) // so that the calls to come are those of the batch
	a.b = a.db.NewBatch()
	must(t, fillNoise(attempted, a.b.Put))
	return a
}

// agrees holds what the database has against what the changes tell, and returns whether the batch is in there.
func (a *attempt) agrees(t *testing.T) bool {
	t.Helper()
	count, err := a.db.Count(nil, nil)
	if err != nil || count != 1 && count != attempted+1 {
		t.Fatalf("%d records, %v", count, err)
	}
	if keys, err := fed(a.db); err != nil || int64(len(keys)) != count || keys[0] != "first" {
		t.Fatalf("%d records, and %d changes, %v", count, len(keys), err)
	}
	return count > 1
}

// agree holds the database, and those that power cuts leave at this moment, against what the Write of the batch answered.
func (a *attempt) agree(t *testing.T, call int, err error) {
	t.Helper()
	if there := a.agrees(t); there != (err == nil) {
		t.Fatalf("call %d: the batch is there: %t, and Write answered %v", call, there, err)
	}
	for _, unsynced := range []memfs.Unsynced{memfs.None, memfs.All} {
		image := a.base.CrashImage(memfs.Policy{Unsynced: unsynced})
		c := &attempt{base: image, fsys: faultfs.New(image)}
		c.open(t)
		if there := c.agrees(t); !errors.Is(err, ErrFailed) && there != (err == nil) {
			t.Fatalf("call %d: after a power cut the batch is there: %t, and Write answered %v", call, there, err)
		}
		must(t, c.db.Close())
	}
}

// Whichever call fails, a large batch is there once when it was written, and else not at all, also to those who read the changes and after a
// power cut. It can be written again, but where the outcome is not known to anybody.
func TestBatchIsWrittenOnceWhicheverCallFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		rule   faultfs.Rule
		passes bool // every attempt can be made good
	}{
		{"disk full", faultfs.Rule{Ops: faultfs.Mutating &^ faultfs.Ops(faultfs.OpSync, faultfs.OpSyncDir), Err: vfs.ErrNoSpace}, true},
		{"input and output", faultfs.Rule{Ops: faultfs.Mutating}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for done, bad := false, 0; !done; c.rule.Skip++ {
				a := newAttempt(t)
				a.fsys.Set(c.rule)
				err := a.db.Write(a.b)
				done = a.fsys.Triggered() == 0
				a.fsys.Set()
				a.agree(t, c.rule.Skip, err)
				if err != nil {
					if err = a.db.Write(a.b); err != nil {
						bad++
						if !errors.Is(err, ErrFailed) && !errors.Is(err, ErrBatchLost) {
							t.Fatalf("call %d: written again: %v", c.rule.Skip, err)
						}
					}
					a.agree(t, c.rule.Skip, err)
				}
				a.b.Reset()
				_ = a.db.Close() // which is ErrFailed where the database is
				if done && c.passes && bad > 0 {
					t.Errorf("%d of %d attempts were not made good", bad, c.rule.Skip)
				}
			}
		})
	}
}

// What a failed sync has cost is not made good by a second one that succeeds.
func TestBatchWhoseFileDidNotSyncIsLost(t *testing.T) {
	a := newAttempt(t)
	cause := errors.New("the device failed")
	a.fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpSync), Name: "*.spill", Err: cause})
	if err := a.db.Write(a.b); !errors.Is(err, cause) {
		t.Fatal(err)
	}
	if err := a.db.Write(a.b); !errors.Is(err, ErrBatchLost) {
		t.Errorf("written again: %v", err)
	}
	a.b.Reset()
	must(t, fillNoise(attempted, a.b.Put))
	must(t, a.db.Write(a.b))
	a.agrees(t)
	must(t, a.db.Close())
}

// writesOfTheBatch returns how many writes to files the writing of the batch takes.
func writesOfTheBatch(t *testing.T) int {
	t.Helper()
	a := newAttempt(t)
	before := a.fsys.Count(faultfs.OpWriteAt)
	must(t, a.db.Write(a.b))
	n := a.fsys.Count(faultfs.OpWriteAt) - before
	a.b.Reset()
	must(t, a.db.Close())
	return n
}

// update makes a transaction of the records of the batch, in whose commit rules are in force.
func (a *attempt) update(rules ...faultfs.Rule) error {
	defer a.fsys.Set()
	return a.db.Update(func(tx *Tx) error {
		if err := fillNoise(attempted, tx.Put); err != nil {
			return err
		}
		a.fsys.Set(rules...)
		return nil
	})
}

// A transaction larger than memory that found the disk full once took its file along when it ended, and those who read the changes
// took them for gone.
func TestChangesPassOverATransactionThatFoundTheDiskFull(t *testing.T) {
	noted := false
	for k := range writesOfTheBatch(t) {
		a := newAttempt(t)
		err := a.update(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Skip: k, Err: vfs.ErrNoSpace})
		if !errors.Is(err, ErrDiskFull) {
			t.Fatalf("write %d: %v", k, err)
		}
		if !errors.Is(err, ErrFailed) {
			must(t, a.db.Put([]byte("last"), nil))
			if keys, err := fed(a.db); err != nil || fmt.Sprint(keys) != "[first last]" {
				t.Errorf("write %d: the changes are %q, %v", k, keys, err)
			}
			noted = noted || a.db.LastSeq() > attempted
		}
		a.b.Reset()
		_ = a.db.Close() // which is ErrFailed where the database is
	}
	if !noted {
		t.Error("the log has heard of none of them")
	}
}

// A batch larger than memory of which the log has heard when it found the disk full, and for whose mark there is no space either, is as any
// other that found the disk full: once that ended all writing.
func TestBatchForWhoseMarkThereIsNoSpace(t *testing.T) {
	unmarked := 0
	for k := range writesOfTheBatch(t) {
		a := newAttempt(t)
		a.fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Skip: k, Err: vfs.ErrNoSpace},
			faultfs.Rule{Ops: faultfs.Ops(faultfs.OpCreate), Name: "*.spill.tmp", Times: -1, Err: vfs.ErrNoSpace})
		err := a.db.Write(a.b)
		if a.fsys.Triggered() > 1 {
			unmarked++
		}
		wantErr(t, "write", err, ErrDiskFull)
		a.agree(t, k, err)
		if a.fsys.Triggered() > 1 { // nor is there any for a root behind the batch
			wantErr(t, "checkpoint", a.db.Checkpoint(t.Context()), ErrDiskFull)
			a.agree(t, k, err)
		}
		a.fsys.Set()
		must(t, a.db.Write(a.b))
		a.agree(t, k, nil)
		a.b.Reset()
		must(t, a.db.Close())
	}
	if unmarked == 0 {
		t.Error("there was space for all marks")
	}
}

// The file of a transaction that failed, of which the log has heard, and which cannot be made one that is passed over, was once handed
// out as if it had been committed.
func TestChangesThatFailedAreNotHandedOut(t *testing.T) {
	stuck := 0
	for _, op := range []faultfs.Op{faultfs.OpRename, faultfs.OpCreate} {
		for k := range writesOfTheBatch(t) {
			a := newAttempt(t)
			err := a.update(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Skip: k, Err: vfs.ErrNoSpace},
				faultfs.Rule{Ops: faultfs.Ops(op), Name: "*.spill*", Times: -1})
			if err == nil || a.agrees(t) {
				t.Fatalf("write %d: %v", k, err)
			}
			err = a.db.Put([]byte("last"), nil)
			if keys, _ := fed(a.db); err == nil && fmt.Sprint(keys) != "[first last]" || err != nil && fmt.Sprint(keys) != "[first]" {
				t.Errorf("write %d: a Put answers %v, and the changes are %d", k, err, len(keys))
			}
			a.b.Reset()
			_ = a.db.Close() // which is ErrFailed where the database is
			if err != nil {
				stuck++
				a.open(t)
				a.agrees(t)
				must(t, a.db.Close())
			}
		}
	}
	if stuck < 4 {
		t.Errorf("%d times the file could not be made one that is passed over", stuck)
	}
}

// frameLengths returns how many bytes of commands each frame of the spill files has.
func frameLengths(t *testing.T, fsys vfs.FS) (lengths []int) {
	t.Helper()
	numbers, err := spill.Sweep(fsys, "db")
	must(t, err)
	for _, n := range numbers {
		must(t, spill.Read(fsys, "db", n, func(f spill.Frame) error {
			lengths = append(lengths, len(f.Payload))
			return nil
		}))
	}
	return lengths
}

// Behind a savepoint a transaction stays in memory until it ends. Its commit once made one frame of all of it, which nobody reads when it has
// more than 64 MiB.
func TestTransactionWithASavepointIsReadInFrames(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{MemoryBytes: 1 << 20, KeepChanges: 64 << 20})
	other, err := db.Keyspace("other", nil)
	must(t, err)
	const n = 20_000
	must(t, db.Update(func(tx *Tx) error {
		tx.Savepoint()
		for i := range uint32(n) {
			if err := tx.In(other).Put(binary.BigEndian.AppendUint32(nil, i), []byte("value")); err != nil {
				return err
			}
		}
		return tx.In(other).Delete(binary.BigEndian.AppendUint32(nil, 0))
	}))
	if c, err := other.Count(nil, nil); c != n-1 || err != nil {
		t.Errorf("%d records, %v", c, err)
	}
	if keys, err := fed(db); err != nil || len(keys) != n+2 { // with the making of the keyspace
		t.Errorf("%d changes, %v", len(keys), err)
	}
	lengths := frameLengths(t, fsys)
	for _, length := range lengths {
		if length > 2*db.e.SpillBytes() {
			t.Errorf("a frame of %d bytes, %d may wait in memory", length, db.e.SpillBytes())
		}
	}
	if len(lengths) < 2 {
		t.Errorf("the frames have %d bytes", lengths)
	}
}

// A spill file of which a part is missing is damage, also where the cut lies between two frames.
func TestSpillFileThatLacksAFrameIsDamage(t *testing.T) {
	a := newAttempt(t)
	must(t, a.db.Write(a.b))
	numbers, err := spill.Sweep(a.fsys, "db")
	must(t, err)
	file, err := a.fsys.OpenReadWrite(filepath.Join("db", spill.Name(numbers[0])))
	must(t, err)
	lengths := frameLengths(t, a.fsys)
	size, err := file.Size()
	must(t, err)
	must(t, errors.Join(file.Truncate(size-int64(lengths[len(lengths)-1])-16), file.Close()))
	if _, err := fed(a.db); !errors.Is(err, ErrCorrupt) {
		t.Errorf("the changes end with %v", err)
	}
	a.b.Reset()
	must(t, a.db.Close())
}

// A batch larger than memory of which the log has heard when it found the disk full, and whose file cannot get another name then, is lost, as it
// may be: once that ended all writing.
func TestBatchWhoseFileGetsNoOtherName(t *testing.T) {
	lost := 0
	for k := range writesOfTheBatch(t) {
		a := newAttempt(t)
		a.fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Skip: k, Err: vfs.ErrNoSpace},
			faultfs.Rule{Ops: faultfs.Ops(faultfs.OpRename, faultfs.OpCreate), Name: "*.spill*", Times: -1, Err: vfs.ErrNoSpace})
		err := a.db.Write(a.b)
		wantErr(t, "write", err, ErrDiskFull)
		a.agree(t, k, err)
		if a.fsys.Triggered() > 1 {
			lost++
			wantErr(t, "checkpoint", a.db.Checkpoint(t.Context()), ErrDiskFull) // there is no space for the mark either
			a.agree(t, k, err)
			a.fsys.Set()
			wantErr(t, "written again", a.db.Write(a.b), ErrBatchLost)
			a.agree(t, k, err)
			a.b.Reset()
			must(t, fillNoise(attempted, a.b.Put))
		}
		a.fsys.Set()
		must(t, a.db.Write(a.b))
		a.agree(t, k, nil)
		a.b.Reset()
		must(t, a.db.Close())
		a.open(t)
		if !a.agrees(t) {
			t.Errorf("write %d: the batch has gone", k)
		}
		must(t, a.db.Close())
	}
	if lost == 0 {
		t.Error("no file was to get another name")
	}
}

// The mark of a load that was interrupted, in the midst of which the power is cut, may be there where the log does not tell of the load any
// more. It is removed: it once stayed for ever.
func TestPowerCutInTheMidstOfAMarkLeavesNoLitter(t *testing.T) {
	a := newAttempt(t)
	var killed []*memfs.FS
	a.fsys.OnCall(func(op faultfs.Op, name string) error {
		if op == faultfs.OpSync && filepath.Ext(name) == ".wal" {
			killed = append(killed, a.base.KillImage())
		}
		return nil
	})
	must(t, a.db.Write(a.b))
	a.fsys.OnCall(nil)
	a.b.Reset()
	must(t, a.db.Close())
	var cut []*memfs.FS
	for _, image := range killed {
		fsys := faultfs.New(image)
		fsys.OnCall(func(op faultfs.Op, name string) error {
			if ok, _ := filepath.Match("*.spill.tmp", filepath.Base(name)); ok && op == faultfs.OpRename {
				for seed := range uint64(16) {
					cut = append(cut, image.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: seed, Reordered: true}))
				}
			}
			return nil
		})
		must(t, openMem(t, fsys, Options{KeepChanges: 64 << 20}).Close())
	}
	if len(cut) == 0 {
		t.Error("no load got a mark")
	}
	for _, image := range cut {
		must(t, openMem(t, image, Options{KeepChanges: 64 << 20}).Close())
		names, err := image.List(filepath.Join("db", spill.DirName))
		must(t, err)
		for _, name := range names {
			if filepath.Ext(name) == ".tmp" {
				t.Errorf("%s is still there", name)
			}
		}
	}
}
