package vfstest

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/pandodb/pando/vfs"
)

func testRemove(t *testing.T, e env) {
	e.is(e.Remove(e.path("missing")), fs.ErrNotExist)
	e.put("a", "x")
	e.must(e.Remove(e.path("a")))
	_, err := e.Stat(e.path("a"))
	e.is(err, fs.ErrNotExist)
	e.must(e.MkdirAll(e.path("d")))
	e.put("d/x", "x")
	e.fails(e.Remove(e.path("d")), "removing a directory that is not empty")
	e.must(e.Remove(e.path("d", "x")))
	e.must(e.Remove(e.path("d")))
	e.lists("")
}

func testRename(t *testing.T, e env) {
	e.is(e.Rename(e.path("missing"), e.path("a")), fs.ErrNotExist)
	e.put("a", "first")
	e.put("b", "second")
	e.must(e.Rename(e.path("a"), e.path("b")))
	e.lists("", "b")
	e.holds("b", "first")
	e.must(e.Rename(e.path("b"), e.path("b")))
	e.holds("b", "first")
	e.must(e.MkdirAll(e.path("d")))
	e.must(e.Rename(e.path("b"), e.path("d", "c")))
	e.lists("", "d")
	e.holds("d/c", "first")
	e.is(e.Rename(e.path("d", "c"), e.path("missing", "c")), fs.ErrNotExist)
	e.put("f", "x")
	e.fails(e.Rename(e.path("f"), e.path("d")), "renaming a file over a directory")
	e.fails(e.Rename(e.path("d"), e.path("f")), "renaming a directory over a file")
}

func testRenameDirectory(t *testing.T, e env) {
	e.must(e.MkdirAll(e.path("d", "inner")))
	e.put("d/inner/f", "content")
	e.must(e.Rename(e.path("d"), e.path("e")))
	e.lists("", "e")
	e.holds("e/inner/f", "content")
	e.fails(e.Rename(e.path("e"), e.path("e", "inner", "e")), "moving a directory into itself")
	e.holds("e/inner/f", "content")
}

func testLink(t *testing.T, e env) {
	e.put("a", "shared")
	if err := e.Link(e.path("a"), e.path("b")); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no hard links here")
	} else {
		e.must(err)
	}
	e.is(e.Link(e.path("a"), e.path("b")), fs.ErrExist)
	e.is(e.Link(e.path("missing"), e.path("c")), fs.ErrNotExist)
	e.is(e.Link(e.path("a"), e.path("missing", "c")), fs.ErrNotExist)
	f, err := e.OpenReadWrite(e.path("b"))
	e.must(err)
	_, err = f.WriteAt([]byte("S"), 0)
	e.must(err)
	e.must(f.Close())
	e.holds("a", "Shared")
	e.must(e.Remove(e.path("a")))
	e.holds("b", "Shared")
}

func testDirectories(t *testing.T, e env) {
	e.lists("")
	e.must(e.MkdirAll(e.path("x", "y", "z")))
	e.must(e.MkdirAll(e.path("x", "y"))) // existing is fine
	e.put("x/file", "12345")
	e.fails(e.MkdirAll(e.path("x", "file")), "making a directory over a file")
	e.fails(e.MkdirAll(e.path("x", "file", "below")), "making a directory below a file")
	e.put("x/B", "")
	e.put("x/a", "")
	e.lists("x", "B", "a", "file", "y")
	_, err := e.List(e.path("missing"))
	e.is(err, fs.ErrNotExist)
	_, err = e.List(e.path("x", "file"))
	e.fails(err, "listing a file")

	info, err := e.Stat(e.path("x", "file"))
	if err != nil || info != (vfs.Info{Size: 5}) {
		t.Errorf("stat file: %+v, %v", info, err)
	}
	info, err = e.Stat(e.path("x"))
	if err != nil || !info.Dir {
		t.Errorf("stat directory: %+v, %v", info, err)
	}
	_, err = e.Stat(e.path("x", "missing"))
	e.is(err, fs.ErrNotExist)
}

func testSyncDir(t *testing.T, e env) {
	e.must(e.SyncDir(e.dir))
	e.is(e.SyncDir(e.path("missing")), fs.ErrNotExist)
	e.put("a", "x")
	e.must(e.SyncDir(e.dir))
	e.must(vfs.MkdirAllSync(e.FS, e.path("d", "e")))
	e.must(vfs.MkdirAllSync(e.FS, e.path("d", "e")))
	e.lists("d", "e")
}

func testLock(t *testing.T, e env) {
	name := e.path("LOCK")
	lock := func(mode vfs.LockMode) func() {
		t.Helper()
		c, err := e.Lock(name, mode)
		e.must(err)
		return func() { t.Helper(); e.must(c.Close()) }
	}
	refused := func(mode vfs.LockMode, holder bool) {
		t.Helper()
		_, err := e.Lock(name, mode)
		var locked *vfs.LockedError
		if !errors.Is(err, vfs.ErrLocked) || !errors.As(err, &locked) {
			t.Fatalf("lock in mode %d: %v, want a LockedError", mode, err)
		}
		if locked.Name != name || (locked.PID != 0) != holder || locked.Own != holder {
			t.Errorf("refused by %+v", locked)
		}
	}
	_, err := e.Lock(e.path("missing", "LOCK"), vfs.Exclusive)
	e.is(err, fs.ErrNotExist)
	_, err = e.Lock(name, 0)
	e.fails(err, "locking in no mode")

	unlock := lock(vfs.Exclusive)
	refused(vfs.Exclusive, true)
	refused(vfs.Shared, true)
	unlock()
	first, second := lock(vfs.Shared), lock(vfs.Shared)
	refused(vfs.Exclusive, false)
	first()
	refused(vfs.Exclusive, false)
	second()
	c, err := e.Lock(name, vfs.Exclusive)
	e.must(err)
	e.must(c.Close())
	e.fails(c.Close(), "unlocking twice")
	lock(vfs.Exclusive)()
}

// testLockOrder hands the word of an orderly holder on: to the next one only, past readers, and not when it is not given.
func testLockOrder(t *testing.T, e env) {
	name := e.path("LOCK")
	hold := func(mode vfs.LockMode, want, leave bool) {
		t.Helper()
		c, err := e.Lock(name, mode)
		e.must(err)
		if l, ok := c.(vfs.OrderedLock); !ok {
			t.Skip("locks hand nothing on here")
		} else if l.Orderly() != want {
			t.Errorf("the holder before was orderly: %t", !want)
		} else if leave {
			l.LeaveInOrder()
		}
		e.must(c.Close())
	}
	hold(vfs.Exclusive, false, true)
	hold(vfs.Exclusive, true, false)
	hold(vfs.Exclusive, false, true)
	hold(vfs.Shared, false, false) // only who holds it alone may ask
	hold(vfs.Exclusive, true, true)
	e.must(e.Remove(name))
	hold(vfs.Exclusive, false, true)
	e.put("LOCK", "123\n") // of a process that was killed
	hold(vfs.Shared, false, false)
	hold(vfs.Exclusive, false, false)
	for _, left := range []string{"123\n", "1234567 \n", "123456789012\n", vfs.InOrder + vfs.InOrder} {
		e.put("LOCK", left)
		hold(vfs.Exclusive, false, true)
		hold(vfs.Exclusive, true, false)
	}
}

func testLockRemoved(t *testing.T, e env) {
	name := e.path("LOCK")
	c, err := e.Lock(name, vfs.Exclusive)
	e.must(err)
	defer func() { e.must(c.Close()) }()
	if err := e.Remove(name); err != nil {
		t.Skipf("a held lock file cannot be removed here: %v", err)
	}
	_, err = e.Lock(name, vfs.Exclusive)
	e.is(err, vfs.ErrLocked)
	_, err = e.Lock(name, vfs.Shared)
	e.is(err, vfs.ErrLocked)
}

func testRemoveAll(t *testing.T, e env) {
	e.must(vfs.RemoveAll(e.FS, e.path("missing")))
	e.must(e.MkdirAll(e.path("x", "y")))
	e.put("x/a", "")
	e.put("x/y/b", "")
	e.put("keep", "")
	e.must(vfs.RemoveAll(e.FS, e.path("x")))
	e.lists("", "keep")
	e.must(vfs.RemoveAll(e.FS, e.path("keep")))
	e.lists("")
}

func testWholeFiles(t *testing.T, e env) {
	e.must(vfs.WriteFile(e.FS, e.path("f"), []byte("one")))
	e.must(vfs.WriteFile(e.FS, e.path("f"), []byte("three")))
	e.holds("f", "three")
	e.must(vfs.WriteFile(e.FS, e.path("empty"), nil))
	e.holds("empty", "")
	e.lists("", "empty", "f")
	_, err := vfs.ReadFile(e.FS, e.path("f"), 4)
	e.is(err, vfs.ErrTooLarge)
	got, err := vfs.ReadFile(e.FS, e.path("f"), 5)
	if err != nil || string(got) != "three" {
		t.Errorf("read %q, %v", got, err)
	}
	_, err = vfs.ReadFile(e.FS, e.path("missing"), 5)
	e.is(err, fs.ErrNotExist)
	e.is(vfs.WriteFile(e.FS, e.path("missing", "f"), nil), fs.ErrNotExist)
}
