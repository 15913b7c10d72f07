package pando

import (
	"fmt"
	"testing"

	"github.com/pandodb/pando/internal/root"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// A root slot that is read wrongly once, as on a faulty way from the disk, is the one in force all the same: taken for damaged, what it refers to
// would be removed as if a crash had left it, and the next open would find it in force again.
func TestRootSlotThatIsReadWronglyOnce(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{KeepChanges: 1 << 20}) // the log goes back behind the root before
	const n = 20
	for i := range n {
		must(t, db.Put(fmt.Appendf(nil, "%06d", i), incompressible(100+i%400)))
	}
	must(t, db.Checkpoint(t.Context()))
	must(t, db.Put([]byte("x"), []byte("second")))
	must(t, db.Checkpoint(t.Context()))
	for slot := range int64(2) {
		image := fsys.KillImage()
		faulty := faultfs.New(image)
		faulty.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpReadAt), Name: root.Name, Fault: faultfs.FlipBit, Bit: (slot*4096 + 100) * 8})
		for i := range 2 {
			o := Options{FS: faulty, MemoryBytes: 1 << 20, KeepChanges: 1 << 20}
			if i > 0 {
				o.FS = image.KillImage() // nobody has written anything
			}
			db, err := Open("db", &o)
			if err != nil {
				t.Fatalf("slot %d, open %d: %v", slot, i, err)
			}
			defer db.Close()
			count, err := db.Count(nil, nil)
			value, failed := db.Get([]byte("x"))
			if count != n+1 || err != nil || string(value) != "second" || failed != nil {
				t.Errorf("slot %d, open %d: %d records, %v; %q, %v", slot, i, count, err, value, failed)
			}
		}
	}
}

// The same for a value of the last commits: a log that ended there would be without what was acknowledged.
func TestValueThatIsReadWronglyOnceDoesNotEndTheLog(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{})
	must(t, db.Put([]byte("first"), nil))
	must(t, db.Put([]byte("value"), incompressible(5000)))
	hit := 0
	for skip := range 4 {
		faulty := faultfs.New(fsys.KillImage())
		faulty.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpReadAt), Name: "*.seg", Skip: skip, Fault: faultfs.FlipBit, Bit: 3000})
		db, err := Open("db", &Options{FS: faulty, MemoryBytes: 1 << 20})
		must(t, err)
		if faulty.Triggered() > 0 {
			hit++
		}
		faulty.Set()
		for _, key := range []string{"first", "value"} {
			if _, err := db.Get([]byte(key)); err != nil {
				t.Errorf("read %d, %s: %v", skip, key, err)
			}
		}
		must(t, db.Close())
	}
	if hit == 0 {
		t.Error("nothing was read wrongly")
	}
}

// What recovery writes over itself to make it durable is what the log holds, and not what a fault on the way from the disk has made of it.
func TestLogThatIsReadWronglyOnceIsNotWrittenSo(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{})
	for i := range 20 {
		must(t, db.Put([]byte{byte(i)}, incompressible(100)))
	}
	for skip, hit := 0, true; hit; skip++ {
		image := fsys.KillImage()
		faulty := faultfs.New(image)
		faulty.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpReadAt), Name: "*.wal", Skip: skip, Fault: faultfs.FlipBit, Bit: 1000})
		db, err := Open("db", &Options{FS: faulty, MemoryBytes: 1 << 20})
		if hit = faulty.Triggered() > 0; err == nil {
			defer db.Close()
		}
		again, err := Open("db", &Options{FS: image.KillImage(), MemoryBytes: 1 << 20})
		if err != nil {
			t.Fatalf("after read %d was wrong: %v", skip, err)
		}
		if n, err := again.Count(nil, nil); n != 20 || err != nil {
			t.Errorf("after read %d was wrong: %d records, %v", skip, n, err)
		}
		must(t, again.Close())
	}
}

// Nor is a database refused for one wrong read of its root or its catalogue.
func TestOpenBesideAWrongRead(t *testing.T) {
	fsys := memfs.New()
	db := openMem(t, fsys, Options{})
	must(t, db.Put([]byte("key"), []byte("value")))
	must(t, db.Checkpoint(t.Context()))
	for _, name := range []string{root.Name, "*.seg"} {
		for skip, hit := 0, true; hit; skip++ {
			faulty := faultfs.New(fsys.KillImage())
			faulty.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpReadAt), Name: name, Skip: skip, Fault: faultfs.FlipBit, Bit: 4196 * 8})
			db, err := Open("db", &Options{FS: faulty, MemoryBytes: 1 << 20})
			if hit = faulty.Triggered() > 0; err != nil {
				t.Errorf("%s, read %d: %v", name, skip, err)
				continue
			}
			faulty.Set()
			if value, err := db.Get([]byte("key")); string(value) != "value" || err != nil {
				t.Errorf("%s, read %d: %q, %v", name, skip, value, err)
			}
			must(t, db.Close())
		}
	}
}
