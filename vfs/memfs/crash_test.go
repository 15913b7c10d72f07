package memfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/memfs"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t testing.TB, fsys vfs.FS, name, content string) vfs.File {
	t.Helper()
	f, err := fsys.Create(name)
	must(t, err)
	_, err = f.WriteAt([]byte(content), 0)
	must(t, err)
	return f
}

// settled writes a file that is durable with its name.
func settled(t testing.TB, fsys vfs.FS, name, content string) vfs.File {
	t.Helper()
	f := create(t, fsys, name, content)
	must(t, f.Sync())
	must(t, fsys.SyncDir("/"))
	return f
}

// tree describes every file below the root: name=content, sorted.
func tree(t testing.TB, fsys vfs.FS) string {
	t.Helper()
	var b strings.Builder
	describe(t, fsys, &b, "/")
	return strings.TrimSpace(b.String())
}

func describe(t testing.TB, fsys vfs.FS, b *strings.Builder, dir string) {
	names, err := fsys.List(dir)
	must(t, err)
	for _, name := range names {
		full := strings.TrimSuffix(dir, "/") + "/" + name
		info, err := fsys.Stat(full)
		must(t, err)
		if info.Dir {
			fmt.Fprintf(b, "%s/ ", full)
			describe(t, fsys, b, full)
			continue
		}
		data, err := vfs.ReadFile(fsys, full, 1<<30)
		must(t, err)
		fmt.Fprintf(b, "%s=%s ", full, data)
	}
}

func expect(t testing.TB, fsys vfs.FS, want string) {
	t.Helper()
	if got := tree(t, fsys); got != want {
		t.Errorf("holds %q, want %q", got, want)
	}
}

// images calls check with many random crash images, of all kinds.
func images(fsys *memfs.FS, count uint64, check func(policy memfs.Policy, image *memfs.FS)) {
	for seed := range count {
		for _, reordered := range []bool{false, true} {
			policy := memfs.Policy{Unsynced: memfs.Random, Seed: seed, Torn: 512, Reordered: reordered}
			check(policy, fsys.CrashImage(policy))
		}
	}
}

// seen collects what random crashes leave.
func seen(t testing.TB, fsys *memfs.FS) map[string]int {
	all := map[string]int{}
	images(fsys, 100, func(_ memfs.Policy, image *memfs.FS) { all[tree(t, image)]++ })
	return all
}

func TestUnsyncedIsLost(t *testing.T) {
	fsys := memfs.New()
	none, all := memfs.Policy{}, memfs.Policy{Unsynced: memfs.All}
	f := create(t, fsys, "/a", "one")
	expect(t, fsys.CrashImage(none), "")
	expect(t, fsys.CrashImage(all), "/a=one")
	must(t, f.Sync())
	expect(t, fsys.CrashImage(none), "") // the name was not synced
	must(t, fsys.SyncDir("/"))
	expect(t, fsys.CrashImage(none), "/a=one")
	_, err := f.WriteAt([]byte("TWO and more"), 0)
	must(t, err)
	expect(t, fsys.CrashImage(none), "/a=one")
	expect(t, fsys.CrashImage(all), "/a=TWO and more")
	must(t, f.Sync())
	must(t, f.Truncate(3))
	expect(t, fsys.CrashImage(none), "/a=TWO and more")
	expect(t, fsys.CrashImage(all), "/a=TWO")
	must(t, fsys.Remove("/a"))
	expect(t, fsys.CrashImage(none), "/a=TWO and more")
	expect(t, fsys.CrashImage(all), "")
	must(t, fsys.SyncDir("/"))
	expect(t, fsys.CrashImage(none), "")
}

func TestNameWithoutContent(t *testing.T) {
	fsys := memfs.New()
	create(t, fsys, "/a", "content")
	must(t, fsys.SyncDir("/"))
	expect(t, fsys.CrashImage(memfs.Policy{}), "/a=")
}

func TestRenameOverWithoutSync(t *testing.T) {
	fsys := memfs.New()
	settled(t, fsys, "/a", "old")
	create(t, fsys, "/a.tmp", "new") // forgot to sync it
	must(t, fsys.Rename("/a.tmp", "/a"))
	must(t, fsys.SyncDir("/"))
	expect(t, fsys.CrashImage(memfs.Policy{}), "/a=")
}

func TestWriteFileIsAtomicAtEveryCrash(t *testing.T) {
	fsys := memfs.New()
	old, young := strings.Repeat("old ", 3000), strings.Repeat("new bytes ", 900)
	must(t, vfs.WriteFile(fsys, "/a", []byte(old)))
	watched := &watcher{FS: fsys, check: func() {
		images(fsys, 5, func(policy memfs.Policy, image *memfs.FS) {
			got, err := vfs.ReadFile(image, "/a", 1<<20)
			if err != nil || string(got) != old && string(got) != young {
				t.Fatalf("%+v: %d bytes, %v", policy, len(got), err)
			}
		})
	}}
	must(t, vfs.WriteFile(watched, "/a", []byte(young)))
	if got, err := vfs.ReadFile(fsys.CrashImage(memfs.Policy{}), "/a", 1<<20); err != nil || string(got) != young {
		t.Errorf("lost after WriteFile returned: %d bytes, %v", len(got), err)
	}
}

// watcher checks after each step of WriteFile.
type watcher struct {
	*memfs.FS
	check func()
}

func (w *watcher) Create(name string) (vfs.File, error) { defer w.check(); return w.FS.Create(name) }
func (w *watcher) Rename(a, b string) error             { defer w.check(); return w.FS.Rename(a, b) }
func (w *watcher) SyncDir(dir string) error             { defer w.check(); return w.FS.SyncDir(dir) }

func TestDirectoryOperations(t *testing.T) {
	fsys := memfs.New()
	settled(t, fsys, "/a", "A")
	settled(t, fsys, "/b", "B")
	must(t, fsys.Rename("/a", "/c"))
	must(t, fsys.Remove("/b"))
	must(t, fsys.Link("/c", "/d"))
	got := seen(t, fsys)
	for _, want := range []string{
		"/a=A /b=B",      // nothing
		"/b=B /c=A",      // rename
		"/c=A",           // rename, remove
		"/c=A /d=A",      // everything
		"/a=A /b=B /d=A", // only the link, out of order
	} {
		if got[want] == 0 {
			t.Errorf("no image held %q", want)
		}
		delete(got, want)
	}
	for state := range got {
		if strings.Contains(state, "/a=") == strings.Contains(state, "/c=") {
			t.Errorf("a rename was torn: %q", state)
		}
	}
}

func TestLostDirectoryTakesItsFilesAlong(t *testing.T) {
	fsys := memfs.New()
	must(t, fsys.MkdirAll("/d/e"))
	f := create(t, fsys, "/d/e/f", "x")
	must(t, f.Sync())
	must(t, fsys.SyncDir("/d/e"))
	expect(t, fsys.CrashImage(memfs.Policy{}), "")
	must(t, fsys.SyncDir("/"))
	expect(t, fsys.CrashImage(memfs.Policy{}), "/d/")
	must(t, fsys.SyncDir("/d"))
	expect(t, fsys.CrashImage(memfs.Policy{}), "/d/ /d/e/ /d/e/f=x")

	fsys = memfs.New()
	must(t, vfs.MkdirAllSync(fsys, "/d/e"))
	expect(t, fsys.CrashImage(memfs.Policy{}), "/d/ /d/e/")
	fsys = memfs.New()
	must(t, fsys.MkdirAll("/d/e")) // by a process that was killed before it synced
	must(t, vfs.MkdirAllSync(fsys.KillImage(), "/d/e/f"))
}

func TestRenameBetweenDirectories(t *testing.T) {
	setup := func() *memfs.FS {
		fsys := memfs.New()
		must(t, vfs.MkdirAllSync(fsys, "/x"))
		must(t, vfs.MkdirAllSync(fsys, "/y"))
		settled(t, fsys, "/x/f", "F")
		must(t, fsys.SyncDir("/x"))
		settled(t, fsys, "/y/f", "old")
		must(t, fsys.Rename("/x/f", "/y/f"))
		return fsys
	}
	fsys := setup()
	for state := range seen(t, fsys) {
		if !strings.Contains(state, "=F") {
			t.Errorf("the file fell between two directories: %q", state)
		}
	}
	must(t, fsys.SyncDir("/y"))
	expect(t, fsys.CrashImage(memfs.Policy{}), "/x/ /x/f=F /y/ /y/f=F")
	must(t, fsys.SyncDir("/x"))
	expect(t, fsys.CrashImage(memfs.Policy{}), "/x/ /y/ /y/f=F")
	fsys = setup()
	must(t, fsys.SyncDir("/x"))
	expect(t, fsys.CrashImage(memfs.Policy{}), "/x/ /y/ /y/f=F")
}

func TestTornAndReordered(t *testing.T) {
	fsys := memfs.New()
	old, young := bytes.Repeat([]byte{'o'}, 8192), bytes.Repeat([]byte{'n'}, 8192)
	f := settled(t, fsys, "/a", string(old))
	_, err := f.WriteAt(young, 0)
	must(t, err)
	patterns := map[string]bool{}
	images(fsys, 50, func(policy memfs.Policy, image *memfs.FS) {
		data, err := vfs.ReadFile(image, "/a", 1<<20)
		must(t, err)
		var pattern []byte
		for at := 0; at < len(data); at += 512 {
			sector := data[at : at+512]
			if !bytes.Equal(sector, old[:512]) && !bytes.Equal(sector, young[:512]) {
				t.Fatalf("%+v: sector at %d is torn inside", policy, at)
			}
			pattern = append(pattern, sector[0])
		}
		patterns[string(pattern)] = true
	})
	if len(patterns) < 20 {
		t.Errorf("only %d different mixtures of 16 sectors", len(patterns))
	}
}

func TestOrderedImagesArePrefixes(t *testing.T) {
	fsys := memfs.New()
	log, other := settled(t, fsys, "/log", ""), settled(t, fsys, "/other", "")
	for i := range 20 { // each step one sector here, then one there
		_, err := log.WriteAt(bytes.Repeat([]byte{byte('a' + i)}, 512), int64(i)*512)
		must(t, err)
		_, err = other.WriteAt(bytes.Repeat([]byte{byte('a' + i)}, 512), int64(i)*512)
		must(t, err)
	}
	lengths := map[int]bool{}
	for seed := range uint64(200) {
		image := fsys.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: seed, Torn: 512})
		a, err := vfs.ReadFile(image, "/log", 1<<20)
		must(t, err)
		b, err := vfs.ReadFile(image, "/other", 1<<20)
		must(t, err)
		if d := len(a) - len(b); d != 0 && d != 512 || bytes.IndexByte(a, 0) >= 0 || bytes.IndexByte(b, 0) >= 0 {
			t.Fatalf("seed %d: %d and %d bytes are no prefix of history", seed, len(a), len(b))
		}
		lengths[len(a)] = true
	}
	if len(lengths) < 15 {
		t.Errorf("only %d of 21 prefixes were seen", len(lengths))
	}
}

func TestMappedStoresAreUnsynced(t *testing.T) {
	fsys := memfs.New()
	f, err := fsys.Create("/log")
	must(t, err)
	must(t, f.Allocate(64<<10))
	must(t, f.Sync())
	must(t, fsys.SyncDir("/"))
	m, err := f.Map(64 << 10)
	must(t, err)
	read := func(image *memfs.FS, off int64) string {
		g, err := image.Open("/log")
		must(t, err)
		p := make([]byte, 6)
		_, err = g.ReadAt(p, off)
		must(t, err)
		return strings.TrimRight(string(p), "\x00")
	}
	copy(m.Bytes()[100:], "first")
	if got := read(fsys.CrashImage(memfs.Policy{}), 100); got != "" {
		t.Errorf("an unsynced store survived: %q", got)
	}
	if got := read(fsys.CrashImage(memfs.Policy{Unsynced: memfs.All}), 100); got != "first" {
		t.Errorf("All lost a store: %q", got)
	}
	must(t, f.Sync())
	copy(m.Bytes()[9000:], "second") // after a sync stores still count
	kept, lost := 0, 0
	images(fsys, 50, func(_ memfs.Policy, image *memfs.FS) {
		if got := read(image, 100); got != "first" {
			t.Fatalf("a synced store was lost: %q", got)
		}
		if read(image, 9000) == "second" {
			kept++
		} else {
			lost++
		}
	})
	if kept == 0 || lost == 0 {
		t.Errorf("unsynced store kept %d times, lost %d times", kept, lost)
	}
	copy(m.Bytes(), "third")
	must(t, m.Close())
	if got := read(fsys.CrashImage(memfs.Policy{}), 0); got != "" {
		t.Errorf("unmapping made a store durable: %q", got)
	}
	must(t, f.Sync())
	if got := read(fsys.CrashImage(memfs.Policy{}), 0); got != "third" {
		t.Errorf("a sync after unmapping missed a store: %q", got)
	}
}

func TestMappedFileKeepsItsSize(t *testing.T) {
	fsys := memfs.New()
	f := create(t, fsys, "/a", "0123456789")
	m, err := f.Map(10)
	must(t, err)
	for what, err := range map[string]error{
		"truncate": f.Truncate(5), "grow": f.Truncate(20), "allocate": f.Allocate(20),
		"write": func() error { _, err := f.WriteAt([]byte("xy"), 9); return err }(),
		"create": func() error {
			_, err := fsys.Create("/a")
			return err
		}(),
	} {
		if err == nil {
			t.Errorf("%s changed the size of a mapped file", what)
		}
	}
	bytes := m.Bytes()
	must(t, m.Close())
	if string(bytes) == "0123456789" {
		t.Error("memory of a closed mapping is not poisoned")
	}
	expect(t, fsys, "/a=0123456789")
}

func TestKillImage(t *testing.T) {
	fsys := memfs.New()
	settled(t, fsys, "/a", "old")
	f, err := fsys.OpenReadWrite("/a")
	must(t, err)
	m, err := f.Map(3)
	must(t, err)
	copy(m.Bytes(), "new")
	create(t, fsys, "/b", "B")
	must(t, fsys.Link("/b", "/c"))
	_, err = fsys.Lock("/LOCK", vfs.Exclusive)
	must(t, err)

	next := fsys.KillImage()
	lock, err := next.Lock("/LOCK", vfs.Exclusive) // died with the process
	must(t, err)
	must(t, lock.Close())
	expect(t, next, "/LOCK= /a=new /b=B /c=B")
	expect(t, next.CrashImage(memfs.Policy{}), "/a=old") // still unsynced
	g, err := next.OpenReadWrite("/a")
	must(t, err)
	must(t, g.Sync())
	must(t, next.SyncDir("/"))
	expect(t, next.CrashImage(memfs.Policy{}), "/LOCK= /a=new /b= /c=")
	g, err = next.OpenReadWrite("/c")
	must(t, err)
	must(t, g.Sync())
	expect(t, next.CrashImage(memfs.Policy{}), "/LOCK= /a=new /b=B /c=B")
	expect(t, fsys.CrashImage(memfs.Policy{}), "/a=old") // the images are independent
	copy(m.Bytes(), "xyz")
	expect(t, next.CrashImage(memfs.Policy{Unsynced: memfs.All}), "/LOCK= /a=new /b=B /c=B")
}

func TestImagesAreIndependentAndRepeatable(t *testing.T) {
	fsys := memfs.New()
	for i := range 10 {
		f := settled(t, fsys, fmt.Sprintf("/f%d", i), strings.Repeat("settled", 2000))
		_, err := f.WriteAt([]byte(strings.Repeat("changed", 1000)), 3000)
		must(t, err)
		must(t, fsys.Rename(fmt.Sprintf("/f%d", i), fmt.Sprintf("/g%d", i)))
	}
	before := tree(t, fsys)
	images(fsys, 10, func(policy memfs.Policy, image *memfs.FS) {
		first := tree(t, image)
		if again := tree(t, fsys.CrashImage(policy)); again != first {
			t.Fatalf("%+v: two images differ", policy)
		}
		expect(t, image.CrashImage(memfs.Policy{}), first) // all of an image is durable
		names, err := image.List("/")
		must(t, err)
		for _, name := range names {
			f, err := image.OpenReadWrite("/" + name)
			must(t, err)
			_, err = f.WriteAt([]byte("scribble"), 100)
			must(t, err)
			must(t, f.Truncate(50))
			must(t, f.Sync())
		}
		if image.Used() != int64(len(names))*4096 {
			t.Fatalf("an image of %d small files uses %d bytes", len(names), image.Used())
		}
	})
	expect(t, fsys, before)
}

func TestStaleBlocks(t *testing.T) {
	fsys := memfs.New()
	f := settled(t, fsys, "/a", strings.Repeat("s", 512))
	_, err := f.WriteAt(bytes.Repeat([]byte("n"), 20000), 512)
	must(t, err)
	garbage := false
	for seed := range uint64(30) {
		image := fsys.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: seed, Reordered: true, Stale: true, Torn: 512})
		data, err := vfs.ReadFile(image, "/a", 1<<20)
		must(t, err)
		if strings.Trim(string(data[:512]), "s") != "" {
			t.Fatal("synced bytes were lost")
		}
		garbage = garbage || strings.Trim(string(data[512:]), "n\x00") != ""
	}
	if !garbage {
		t.Error("no stale bytes were seen")
	}
}

func TestWriteBackGivesOlderVersions(t *testing.T) {
	versions := map[string]bool{}
	for seed := range uint64(50) {
		fsys := memfs.New()
		f := settled(t, fsys, "/a", "one")
		for i, version := range []string{"two", "six", "ten"} {
			_, err := f.WriteAt([]byte(version), 0)
			must(t, err)
			fsys.WriteBack(memfs.Policy{Unsynced: memfs.Random, Seed: seed*3 + uint64(i), Reordered: seed%2 == 0})
		}
		create(t, fsys, "/b", "")
		must(t, fsys.Remove("/b"))
		fsys.WriteBack(memfs.Policy{Unsynced: memfs.Random, Seed: seed})
		versions[tree(t, fsys.CrashImage(memfs.Policy{}))] = true
		expect(t, fsys, "/a=ten")
		must(t, f.Sync())
		must(t, fsys.SyncDir("/"))
		expect(t, fsys.CrashImage(memfs.Policy{}), "/a=ten")
	}
	for _, version := range []string{"/a=one", "/a=two", "/a=six", "/a=ten", "/a=ten /b="} {
		if !versions[version] {
			t.Errorf("%s was never on the device: %v", version, versions)
		}
	}
}

func TestCapacity(t *testing.T) {
	fsys := memfs.New()
	fsys.SetCapacity(5 * 4096)
	f := create(t, fsys, "/a", "x")
	n, err := f.WriteAt(make([]byte, 30000), 1)
	if n != 5*4096-1 || !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("wrote %d bytes, %v", n, err)
	}
	if _, err := f.WriteAt(make([]byte, 100), 6*4096); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("wrote behind the capacity: %v", err)
	}
	if err := f.Allocate(6 * 4096); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("allocated more than there is: %v", err)
	}
	_, err = f.WriteAt(make([]byte, 5*4096), 0) // overwriting takes no space
	must(t, err)
	must(t, fsys.Remove("/a"))
	if fsys.Used() != 5*4096 {
		t.Errorf("an open file lost its space: %d bytes used", fsys.Used())
	}
	must(t, f.Close())
	if fsys.Used() != 0 {
		t.Errorf("%d bytes used by nothing", fsys.Used())
	}
	if _, err := fsys.Open("/a"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// BenchmarkCrashImage is of a database of 40 files and 2.5 MiB, one file of it changed: the case of a test that crashes at
// every call.
func BenchmarkCrashImage(b *testing.B) {
	fsys := memfs.New()
	for i := range 40 {
		settled(b, fsys, fmt.Sprintf("/f%d", i), strings.Repeat("s", 64<<10))
	}
	f, err := fsys.OpenReadWrite("/f7")
	must(b, err)
	_, err = f.WriteAt(make([]byte, 16<<10), 1000)
	must(b, err)
	b.ReportAllocs()
	for seed := uint64(0); b.Loop(); seed++ {
		fsys.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: seed, Reordered: true, Torn: 512})
	}
}

// Stores of one goroutine while another syncs, reads and takes images are legal on every system, so the race detector must
// not object.
func TestStoresDuringSync(t *testing.T) {
	fsys := memfs.New()
	f, err := fsys.Create("/log")
	must(t, err)
	must(t, f.Allocate(1<<16))
	m, err := f.Map(1 << 16)
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range m.Bytes() {
			m.Bytes()[i] = byte(i) | 1
		}
	}()
	for i := range uint64(50) {
		must(t, f.Sync())
		_, err := f.ReadAt(make([]byte, 1<<16), 0)
		must(t, err)
		fsys.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: i, Reordered: true})
		fsys.KillImage()
	}
	<-done
	must(t, m.Close())
	must(t, f.Close())
}
