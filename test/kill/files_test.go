//go:build linux || darwin || freebsd

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
	fewFiles    = 80     // that the process may have open
	manyRecords = 80_000 // in more files than that, several times as many
)

func init() { children["PANDO_FILES_DIR"] = withFewFiles }

// withFewFiles loads a database of many files, reads all of it at random, verifies it and compacts it.
func withFewFiles(dir string) int {
	limit := syscall.Rlimit{Cur: fewFiles, Max: fewFiles}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	files, err := loadAndRead(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(files)
	return 0
}

func loadAndRead(dir string) (files int, err error) {
	db, err := pando.Open(dir, &pando.Options{Profile: pando.Relaxed, MemoryBytes: 1 << 20})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rng := rand.New(rand.NewPCG(1, 2))
	key := func(i int) []byte { return fmt.Appendf(nil, "%08d", i) }
	var first [500]byte
	for i := range manyRecords {
		for j := range first {
			first[j] = byte(rng.Uint32())
		}
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
	for range manyRecords {
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
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PANDO_FILES_DIR="+filepath.Join(t.TempDir(), "db"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var files int
	if _, err := fmt.Sscan(string(out), &files); err != nil || files < 2*fewFiles {
		t.Errorf("%d segment files, want more than %d: the test shows nothing (%v)", files, 2*fewFiles, err)
	}
}
