package faultfs_test

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
	"github.com/pandodb/pando/vfs/vfstest"
)

var errTest = errors.New("the test's own error")

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	vfstest.Run(t, func(t *testing.T) (vfs.FS, string) {
		fsys := faultfs.New(memfs.New())
		must(t, fsys.MkdirAll("/db"))
		t.Cleanup(func() {
			if leaks := fsys.Leaks(); len(leaks) > 0 {
				t.Errorf("the suite leaves open: %q", leaks)
			}
		})
		return fsys, "/db"
	})
}

func create(t testing.TB, fsys vfs.FS, name, content string) vfs.File {
	t.Helper()
	f, err := fsys.Create(name)
	must(t, err)
	_, err = f.WriteAt([]byte(content), 0)
	must(t, err)
	must(t, f.Sync())
	must(t, fsys.SyncDir("/"))
	return f
}

func read(t testing.TB, f vfs.File, length int) string {
	t.Helper()
	p := make([]byte, length)
	_, err := f.ReadAt(p, 0)
	must(t, err)
	return string(p)
}

// TestWriteFileFailsCleanly fails WriteFile at every call: the old content must stay whole, and nothing open or left over.
func TestWriteFileFailsCleanly(t *testing.T) {
	for k := 0; ; k++ {
		base := memfs.New()
		must(t, vfs.WriteFile(base, "/a", []byte("old")))
		fsys := faultfs.New(base)
		fsys.FailMutation(k, errTest)
		err := vfs.WriteFile(fsys, "/a", []byte("new"))
		if leaks := fsys.Leaks(); len(leaks) > 0 {
			t.Errorf("call %d: %q", k, leaks)
		}
		if fsys.Triggered() == 0 {
			must(t, err)
			if k != 5 || fsys.Mutations() != k { // create, write, sync, rename, sync directory
				t.Errorf("WriteFile took %d calls, expected 5", k)
			}
			return
		}
		if !errors.Is(err, errTest) {
			t.Errorf("call %d: %v", k, err)
		}
		got, err := vfs.ReadFile(base, "/a", 10)
		if err != nil || string(got) != "old" && string(got) != "new" {
			t.Errorf("call %d: left %q, %v", k, got, err)
		}
		if names, _ := base.List("/"); len(names) != 1 {
			t.Errorf("call %d: left %q", k, names)
		}
	}
}

// TestCrashAtEveryCall is the loop that engine tests are made of.
func TestCrashAtEveryCall(t *testing.T) {
	base := memfs.New()
	must(t, vfs.WriteFile(base, "/a", []byte("old")))
	fsys := faultfs.New(base)
	var calls []string
	fsys.OnCall(func(op faultfs.Op, name string) error {
		calls = append(calls, op.String()+" "+name)
		for seed := range uint64(8) {
			image := base.CrashImage(memfs.Policy{Unsynced: memfs.Random, Seed: seed, Reordered: true})
			got, err := vfs.ReadFile(image, "/a", 10)
			if err != nil || string(got) != "old" && string(got) != "new" {
				t.Errorf("before %s %s, seed %d: %q, %v", op, name, seed, got, err)
			}
		}
		return nil
	})
	must(t, vfs.WriteFile(fsys, "/a", []byte("new")))
	want := "create /a.tmp, write /a.tmp, sync /a.tmp, rename /a.tmp, sync directory /"
	if got := strings.Join(calls, ", "); got != want {
		t.Errorf("the hook saw %s", got)
	}
	fsys.OnCall(func(faultfs.Op, string) error { return errTest })
	if err := fsys.Remove("/a"); !errors.Is(err, errTest) {
		t.Errorf("the hook's error became %v", err)
	}
	if _, err := fsys.Stat("/a"); err != nil {
		t.Errorf("the hook saw a call that changes nothing: %v", err)
	}
}

func TestRulesPickTheirCalls(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	a, b := create(t, fsys, "/a.seg", "x"), create(t, fsys, "/b.log", "x")
	fsys.Set(faultfs.Rule{Ops: faultfs.Ops(faultfs.OpWriteAt), Name: "*.seg", Skip: 1, Times: 2, Err: errTest})
	var got []bool
	for range 5 {
		_, err := a.WriteAt([]byte("y"), 0)
		got = append(got, errors.Is(err, errTest))
		_, err = b.WriteAt([]byte("y"), 0)
		must(t, err)
		must(t, a.Sync())
	}
	if want := []bool{false, true, true, false, false}; !equal(got, want) || fsys.Triggered() != 2 {
		t.Errorf("writes failed: %v, want %v", got, want)
	}
	fsys.Set(faultfs.Rule{Ops: faultfs.All, Times: -1})
	var pathError *fs.PathError
	for range 3 {
		_, err := fsys.List("/")
		if !errors.Is(err, faultfs.ErrInjected) || !errors.As(err, &pathError) || pathError.Path != "/" {
			t.Errorf("list: %v", err)
		}
	}
	if err := a.Close(); !errors.Is(err, faultfs.ErrInjected) {
		t.Errorf("close: %v", err)
	}
	fsys.Set()
	if leaks := fsys.Leaks(); len(leaks) != 1 || !strings.HasPrefix(leaks[0], "file /b.log") {
		t.Errorf("a failed close must have closed: %q", leaks)
	}
	if n := fsys.Count(faultfs.OpList); n != 3 {
		t.Errorf("counted %d lists", n)
	}
}

func equal(a, b []bool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestReadFaults(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	f := create(t, fsys, "/a", "01234567")
	fsys.Set(faultfs.Rule{Fault: faultfs.FlipBit, Bit: 8*3 + 1})
	if got := read(t, f, 8); got != "01214567" {
		t.Errorf("flipped: %q", got)
	}
	if got := read(t, f, 8); got != "01234567" {
		t.Errorf("the flip stayed: %q", got)
	}
	fsys.Set(faultfs.Rule{Fault: faultfs.ShortRead, Err: errTest})
	p := make([]byte, 8)
	if n, err := f.ReadAt(p, 0); n != 4 || !errors.Is(err, errTest) {
		t.Errorf("short: %d, %v", n, err)
	}
	fsys.Set(faultfs.Rule{Fault: faultfs.StaleRead, Skip: 1, Times: -1})
	for _, version := range []string{"first", "second"} {
		_, err := f.WriteAt([]byte(version), 1)
		must(t, err)
	}
	if got := read(t, f, 8); got != "0second7" {
		t.Errorf("spared: %q", got)
	}
	if got := read(t, f, 8); got != "01234567" {
		t.Errorf("stale: %q", got)
	}
}

func TestWriteFaults(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	f := create(t, fsys, "/a", "........")
	fsys.Set(faultfs.Rule{Fault: faultfs.ShortWrite, Err: vfs.ErrNoSpace})
	if n, err := f.WriteAt([]byte("abcd"), 0); n != 2 || !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("short: %d, %v", n, err)
	}
	fsys.Set(faultfs.Rule{Fault: faultfs.LostWrite}, faultfs.Rule{Fault: faultfs.MisdirectedWrite, Skip: 1, Shift: 2})
	for _, text := range []string{"LL", "MM"} {
		if n, err := f.WriteAt([]byte(text), 4); n != 2 || err != nil {
			t.Errorf("a lying write told: %d, %v", n, err)
		}
	}
	if got := read(t, f, 8); got != "ab....MM" {
		t.Errorf("left %q", got)
	}
}

// TestFailedSyncs shows what each kernel does with a failed sync: what the caller is told, and what a crash leaves.
func TestFailedSyncs(t *testing.T) {
	for _, test := range []struct {
		fault       faultfs.Fault
		again       bool // a second sync of the same handle succeeds
		other       bool // a sync of another handle succeeds
		survives    bool // what was written before the failed sync is durable in the end
		description string
	}{
		{faultfs.Fail, true, true, true, "kept dirty"},
		{faultfs.DropSync, true, false, false, "dropped, reported to every handle"},
		{faultfs.DropSyncOnce, true, true, false, "dropped, reported once"},
	} {
		for _, mapped := range []bool{false, true} {
			base := memfs.New()
			fsys := faultfs.New(base)
			f := create(t, fsys, "/a", strings.Repeat(".", 8192))
			g, err := fsys.Open("/a")
			must(t, err)
			store := func(off int, text string) {
				_, err := f.WriteAt([]byte(text), int64(off))
				must(t, err)
			}
			if mapped {
				m, err := f.Map(8192)
				must(t, err)
				store = func(off int, text string) { copy(m.Bytes()[off:], text) }
			}
			store(0, "first")
			fsys.Set(faultfs.Rule{Fault: test.fault, Ops: faultfs.Ops(faultfs.OpSync), Err: errTest})
			if err := f.Sync(); !errors.Is(err, errTest) {
				t.Fatalf("%s: sync: %v", test.description, err)
			}
			store(5000, "second") // another page, which later syncs do write
			if err := f.Sync(); (err == nil) != test.again {
				t.Errorf("%s: second sync: %v", test.description, err)
			}
			if err := g.Sync(); (err == nil) != test.other {
				t.Errorf("%s: sync of another handle: %v", test.description, err)
			}
			must(t, g.Sync()) // reported at most once to each
			if got := read(t, f, 5); got != "first" {
				t.Errorf("%s: reads see %q", test.description, got)
			}
			image, err := vfs.ReadFile(base.CrashImage(memfs.Policy{Unsynced: memfs.All}), "/a", 8192)
			must(t, err)
			if got := bytes.HasPrefix(image, []byte("first")); got != test.survives {
				t.Errorf("%s (mapped %v): first survives: %v", test.description, mapped, got)
			}
			if !bytes.Contains(image, []byte("second")) {
				t.Errorf("%s (mapped %v): a page written after the failure was lost", test.description, mapped)
			}
			if killed, err := vfs.ReadFile(base.KillImage(), "/a", 8192); err != nil || !bytes.HasPrefix(killed, []byte("first")) {
				t.Errorf("%s: the page cache died with the process (%v)", test.description, err)
			}
			_, err = f.WriteAt([]byte("FIRST"), 0) // written again, it is dirty again
			must(t, err)
			must(t, f.Sync())
			image, err = vfs.ReadFile(base.CrashImage(memfs.Policy{}), "/a", 8192)
			if err != nil || !bytes.HasPrefix(image, []byte("FIRST")) {
				t.Errorf("%s: written again, but lost (%v)", test.description, err)
			}
		}
	}
}

func TestLeaks(t *testing.T) {
	fsys := faultfs.New(memfs.New())
	f := create(t, fsys, "/a", "data")
	m, err := f.Map(4)
	must(t, err)
	l, err := fsys.Lock("/LOCK", vfs.Exclusive)
	must(t, err)
	got := strings.Join(fsys.Leaks(), "; ")
	if got != "file /a, opened by call 1; mapping of /a, opened by call 5; lock /LOCK, opened by call 6" {
		t.Error(got)
	}
	must(t, m.Close())
	must(t, l.Close())
	must(t, f.Close())
	if leaks := fsys.Leaks(); len(leaks) > 0 {
		t.Errorf("%q", leaks)
	}
}
