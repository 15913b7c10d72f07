//go:build linux || darwin

package kill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pandodb/pando"
)

const (
	fewFiles    = 60     // that the process may have open
	manyRecords = 50_000 // in more files than that, several times as many
)

func init() {
	children["PANDO_FILES_DIR"] = withFewFiles(loadAndRead)
	children["PANDO_HOGGED_DIR"] = withFewFiles(writeWithoutFiles)
}

// mayOpen limits how many files this process may have open.
func mayOpen(n uint64) error {
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n})
}

// withFewFiles makes a process of what may have few files open, which prints the number that comes of it.
func withFewFiles(run func(dir string) (int, error)) func(dir string) int {
	return func(dir string) int {
		n, err := 0, mayOpen(fewFiles)
		if err == nil {
			n, err = run(dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(n)
		return 0
	}
}

// printed runs such a process, which the variable names, and returns its number.
func printed(t *testing.T, variable string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+filepath.Join(t.TempDir(), "db"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var n int
	if _, err := fmt.Sscan(string(out), &n); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return n
}

// loadAndRead loads a database of many files, reads all of it at random, verifies it and compacts it. It returns how many files there were.
func loadAndRead(dir string) (files int, err error) {
	db, err := pando.Open(dir, &pando.Options{Profile: pando.Relaxed, MemoryBytes: 1 << 20})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rng := rand.New(rand.NewPCG(1, 2))
	key := func(i int) []byte { return fmt.Appendf(nil, "%08d", i) }
	var first [500]byte
	noise := rand.NewChaCha8([32]byte{1})
	for i := range manyRecords {
		_, _ = noise.Read(first[:]) // it never fails
		copy(first[:], key(i))
		if err := db.Put(key(i), first[:]); err != nil {
			return 0, err
		}
	}
	if err := db.Checkpoint(context.Background()); err != nil {
		return 0, err
	}
	names, err := os.ReadDir(filepath.Join(dir, "segments"))
	if err != nil {
		return 0, err
	}
	for range manyRecords / 4 {
		i := rng.IntN(manyRecords)
		if v, err := db.Get(key(i)); err != nil || !bytes.HasPrefix(v, key(i)) {
			return 0, fmt.Errorf("record %d: %d bytes, %w", i, len(v), err)
		}
	}
	r, err := db.Check(context.Background())
	if err := errors.Join(err, r.Err()); err != nil {
		return 0, err
	}
	return len(names), db.Compact(context.Background(), pando.CompactOptions{})
}

// A process may have fewer files open than its database has.
func TestDatabaseOfMoreFilesThanTheProcessMayOpen(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	files := printed(t, "PANDO_FILES_DIR")
	if t.Logf("%d files", files); files < 2*fewFiles {
		t.Errorf("%d segment files, want more than %d: the test shows nothing", files, 2*fewFiles)
	}
}

// writeWithoutFiles writes to a database while others have all files that the process may open, until that fails, and goes on when they
// give them back. It returns how many writes failed.
func writeWithoutFiles(dir string) (failed int, err error) {
	open := func() (*pando.DB, error) {
		return pando.Open(dir, &pando.Options{MemoryBytes: 1 << 20, ValueThreshold: 64 << 10})
	}
	db, err := open()
	if err != nil {
		return 0, err
	}
	stored := map[int]bool{}
	value := make([]byte, 10_000)
	key := func(i int) []byte { return fmt.Appendf(nil, "%08d", i) }
	put := func(i int) error {
		err := db.Put(key(i), value)
		stored[i] = err == nil
		return err
	}
	var others []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		others = append(others, f)
	}
	for i := range 200 {
		// One is free now and then, for a moment: a file that is made needs another one to be durable.
		if i%10 == 0 {
			if err := others[0].Close(); err != nil {
				return 0, err
			}
		}
		if err := put(i); err != nil {
			failed++
		}
		if i%10 == 0 {
			if f, err := os.Open(os.DevNull); err == nil {
				others[0] = f
			}
		}
	}
	for _, f := range others {
		_ = f.Close() // some are closed
	}
	if err := put(200); err != nil {
		return 0, fmt.Errorf("with files again: %w", err)
	}
	if err := db.Close(); err != nil {
		return 0, err
	}
	if db, err = open(); err != nil {
		return 0, err
	}
	for i, there := range stored {
		if has, err := db.Has(key(i)); err != nil || there && !has {
			return 0, fmt.Errorf("record %d: stored %v, there %v, %w", i, there, has, err)
		}
	}
	return failed, db.Close()
}

// Others that have all files which the process may open keep writers waiting for one, and no longer than that.
func TestWritersGoOnWhenThereAreFilesAgain(t *testing.T) {
	if printed(t, "PANDO_HOGGED_DIR") == 0 {
		t.Error("no write failed: the test shows nothing")
	}
}
