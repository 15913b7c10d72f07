package pando

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// Where the files are missing in which the log goes on behind the root, older files of it say nothing of what is lost. As long as one of
// them was left, Salvage once said that nothing was.
func TestSalvageWithoutTheLogBehindTheRoot(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{KeepChanges: 1 << 30})
	for range 3 {
		for i := range 1000 {
			must(t, db.Put(fmt.Append(nil, i), make([]byte, 100)))
		}
		must(t, db.Checkpoint(t.Context()))
	}
	must(t, db.Put([]byte("last"), nil))
	intact := fsys.KillImage()
	files, err := intact.List("db/wal")
	must(t, err)
	refused := 0
	for first := range files {
		image := intact.KillImage()
		for _, name := range files[first:] {
			must(t, image.Remove("db/wal/"+name))
		}
		broken, err := Open("db", &Options{FS: image, ReadOnly: true})
		if err == nil {
			must(t, broken.Close())
			continue
		}
		wantErr(t, "open", err, ErrCorrupt)
		refused++
		report, err := Salvage(t.Context(), "db", "saved", &Options{FS: image, MemoryBytes: 1 << 20})
		must(t, err)
		if report.Err() == nil {
			t.Errorf("without the files of %v from %s on: %s", files, files[first], report)
		}
	}
	if refused < 2 {
		t.Errorf("only without %d of %v the database is refused", refused, files)
	}
}

// Of what is whole nothing is lost, whoever had it open last, and however that ended.
func TestSalvageOfWhatIsWhole(t *testing.T) {
	for _, profile := range []Profile{Durable, Relaxed, Bench} {
		for _, keep := range []int64{0, 1 << 30} {
			fsys := memfs.New()
			lossless := func(what string, image *memfs.FS) {
				t.Helper()
				report, err := Salvage(t.Context(), "db", "saved", &Options{FS: image, MemoryBytes: 1 << 20})
				must(t, err)
				if report.Err() != nil {
					t.Errorf("profile %v, keeping %d, %s: %s", profile, keep, what, report)
				}
			}
			for round := range 3 {
				db, err := Open("db", &Options{FS: fsys, MemoryBytes: 1 << 20, KeepChanges: keep, Profile: profile})
				must(t, err)
				lossless(fmt.Sprint("opened ", round), fsys.KillImage())
				for i := range 1000 {
					must(t, db.Put(fmt.Append(nil, i), make([]byte, 100)))
				}
				lossless("written to", fsys.KillImage())
				must(t, db.Checkpoint(t.Context()))
				lossless("settled", fsys.KillImage())
				lossless("settled, behind a power cut", fsys.CrashImage(memfs.Policy{Unsynced: memfs.None}))
				must(t, db.Close())
				lossless("closed", fsys.KillImage())
				profile = Profile((int(profile) + round) % 3)
			}
		}
	}
}

// A power cut within a checkpoint may leave files of segments without a header block, to which nothing refers. Salvage once took them for losses
// of a database in which Check found nothing.
func TestSalvageBehindAPowerCutWithinACheckpoint(t *testing.T) {
	base := memfs.New()
	fsys := faultfs.New(base)
	db := openMem(t, fsys, Options{})
	var images []*memfs.FS
	for round := range 3 {
		for i := range 300 {
			must(t, db.Put(fmt.Append(nil, i), bytes.Repeat([]byte{byte(round)}, 100+i*10)))
		}
		fsys.OnCall(func(faultfs.Op, string) error {
			images = append(images, base.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: uint64(len(images)), Reordered: true}))
			return nil
		})
		must(t, db.Checkpoint(t.Context()))
		fsys.OnCall(nil)
	}
	sound := 0
	for i, image := range images {
		cut, err := Open("db", &Options{FS: image, MemoryBytes: 1 << 20})
		must(t, err)
		report, err := cut.Check(t.Context())
		must(t, err)
		killed := image.KillImage()
		must(t, cut.Close())
		if report.Err() != nil {
			continue // a slot of the root is torn
		}
		sound++
		saved, err := Salvage(t.Context(), "db", "saved", &Options{FS: killed, MemoryBytes: 1 << 20})
		must(t, err)
		if saved.Err() != nil || saved.Records != 300 {
			t.Errorf("behind call %d: %s", i, saved)
		}
	}
	if sound < 20 {
		t.Errorf("only %d of %d images are sound", sound, len(images))
	}
}

// Of a database that has merely crashed Salvage makes what Open reads. Where the last records of the log have reached the disk and a value of
// theirs has not, both end in front of them, and have the older value of its key.
func TestSalvageBehindAPowerCutIsWhatOpenReads(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	fsys := memfs.New()
	db := openMem(t, fsys, Options{Profile: Relaxed, SyncInterval: time.Hour, SyncBytes: 1 << 30})
	cut := 0
	for i := range 80 {
		for range 10 {
			value := bytes.Repeat(fmt.Append(nil, rng.Uint64()), 1+rng.IntN(2)*rng.IntN(400))
			must(t, db.Put(fmt.Append(nil, rng.IntN(30)), value))
		}
		if rng.IntN(3) == 0 {
			must(t, db.Sync())
			continue
		}
		image := fsys.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: uint64(i), Reordered: true})
		saved, err := Salvage(t.Context(), "db", "saved", &Options{FS: image, MemoryBytes: 1 << 20})
		must(t, err)
		if saved.Err() != nil {
			cut++
		}
		if got, want := openedPairs(t, image, "saved"), openedPairs(t, image, "db"); got != want {
			t.Errorf("image %d: what was saved is not what is read: %s", i, saved)
		}
	}
	if must(t, db.Close()); cut < 10 {
		t.Errorf("a value was missing in %d images only", cut)
	}
}

// openedPairs is what the database in dir has.
func openedPairs(t *testing.T, fsys vfs.FS, dir string) string {
	t.Helper()
	db, err := Open(dir, &Options{FS: fsys, MemoryBytes: 1 << 20})
	must(t, err)
	defer func() { must(t, db.Close()) }()
	return pairsOf(db.Range(nil, nil))
}

// Where there is nothing there is nothing to salvage, and nothing is made.
func TestSalvageOfNothing(t *testing.T) {
	fsys := memfs.New()
	must(t, fsys.MkdirAll("empty"))
	for _, dir := range []string{"empty", "absent"} {
		_, err := Salvage(t.Context(), dir, "saved", &Options{FS: fsys})
		wantErr(t, dir, err, ErrNotFound)
		if _, err := fsys.List("saved"); err == nil {
			t.Errorf("%s: a database was made", dir)
		}
	}
}

// A bit that flips once on the way from the disk costs Salvage a value at most, and not what the log has behind it.
func TestSalvageReadsOnceMoreBeforeItEndsTheLog(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{Profile: Relaxed, SyncInterval: time.Hour, SyncBytes: 1 << 30})
	for i := range 20 {
		must(t, db.Put(fmt.Append(nil, i), bytes.Repeat(fmt.Append(nil, i), 2000)))
	}
	image := fsys.KillImage()
	must(t, db.Close())
	for read := 0; ; read++ {
		flips := faultfs.New(image.KillImage())
		flips.Set(faultfs.Rule{Name: "*.seg", Fault: faultfs.FlipBit, Skip: read, Bit: 4321})
		saved, err := Salvage(t.Context(), "db", "saved", &Options{FS: flips, MemoryBytes: 1 << 20})
		must(t, err)
		if saved.Records < 19 {
			t.Errorf("with a flip in read %d: %s", read, saved)
		}
		if flips.Triggered() == 0 {
			if saved.Records != 20 || read < 20 {
				t.Errorf("%d records after %d reads", saved.Records, read)
			}
			return
		}
	}
}
