//go:build linux

package device

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pandodb/pando"
)

// keys are written in turns, those that are even into a tree and the others into a hash table.
const keys = 3000

func key(n int) []byte { return fmt.Appendf(nil, "%08d", n%keys) }

// value is that of the n-th write: small ones, and some that lie apart, of up to many pages.
func value(n int) []byte {
	length := []int{20, 100, 150, 3000}[n%4]
	if n%301 == 0 {
		length = 200_000
	}
	return append(fmt.Appendf(nil, "%d ", n), bytes.Repeat([]byte{byte(n)}, length)...)
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("PANDO_DEVICE_DIR"); dir != "" {
		from, _ := strconv.Atoi(os.Getenv("PANDO_DEVICE_FROM"))
		if err := write(dir, from); err != nil {
			fmt.Println("error", err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// layouts opens the two keyspaces.
func layouts(db *pando.DB) ([2]*pando.Keyspace, error) {
	hash, err := db.Keyspace("hash", &pando.KeyspaceOptions{Layout: pando.Hash})
	return [2]*pando.Keyspace{db.Default(), hash}, err
}

// write is the process that writes, and reports each write behind it, until it cannot write any more. Others read meanwhile, and a little
// longer: reads of a device that is gone are errors, and do not end the process.
func write(dir string, from int) error {
	db, err := pando.Open(dir, options(pando.Durable))
	if err != nil {
		return err
	}
	spaces, err := layouts(db)
	if err != nil {
		return err
	}
	for _, space := range spaces {
		go func() {
			for {
				_, _ = space.Get(key(rand.IntN(keys)))
			}
		}()
	}
	go func() {
		for {
			for range db.Range(key(rand.IntN(keys)), nil) {
			}
		}
	}()
	for n := from; ; n++ {
		if err = spaces[n%2].Put(key(n), value(n)); err != nil {
			break
		}
		fmt.Println("wrote", n)
	}
	time.Sleep(300 * time.Millisecond)
	return err
}

// What was acknowledged is there when a device that died comes back, and who was writing or reading has heard of it by an error.
func TestDeviceDies(t *testing.T) {
	each(t, []string{"btrfs"}, func(t *testing.T, v *volume) {
		seed := time.Now().UnixNano()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		last := map[string]int{}
		next := 0
		for range *rounds {
			before, tried := writeUntilItDies(t, v, next, time.Duration(200+r.IntN(1500))*time.Millisecond)
			for n := next; n < before; n++ {
				last[string(key(n))] = n
			}
			v.unmount(t)
			v.mount(t)
			verify(t, v, last, before, tried)
			next = tried + keys - tried%keys // what was tried is not tried again
		}
	})
}

// writeUntilItDies returns the number of the first write that was not acknowledged before the device died, and of the first one that never was.
// Between them are those that nobody would have heard of behind a power cut. They need not be there: ext4 does not tell a sync of what it could
// not note in its journal because of the shutdown.
func writeUntilItDies(t *testing.T, v *volume, from int, after time.Duration) (before, tried int) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "PANDO_DEVICE_DIR="+v.database(), fmt.Sprintf("PANDO_DEVICE_FROM=%d", from))
	var said bytes.Buffer
	child.Stderr = &said
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	var next atomic.Int64
	next.Store(int64(from))
	dead := make(chan struct{})
	time.AfterFunc(after, func() {
		defer close(dead)
		before = int(next.Load())
		v.die(t)
	})
	end := ""
	for s := bufio.NewScanner(out); s.Scan(); {
		if text, ok := strings.CutPrefix(s.Text(), "wrote "); ok {
			n, _ := strconv.Atoi(text)
			next.Store(int64(n) + 1)
		} else {
			end = s.Text()
		}
	}
	<-dead
	if err := child.Wait(); err != nil || !strings.HasPrefix(end, "error ") || !strings.Contains(end, "input/output error") {
		t.Fatalf("the process that wrote ended with %v, and said %q\n%s", err, end, said.String())
	}
	return before, int(next.Load())
}

// verify compares the database with what was acknowledged. Of the writes from before to tried each may be there or not.
func verify(t *testing.T, v *volume, last map[string]int, before, tried int) {
	t.Helper()
	db, err := pando.Open(v.database(), options(pando.Durable))
	must(t, err)
	defer func() { must(t, db.Close()) }()
	spaces, err := layouts(db)
	must(t, err)
	for n := range keys {
		got, err := spaces[n%2].Get(key(n))
		for m := before; m <= tried; m++ {
			if m%keys == n && err == nil && bytes.Equal(got, value(m)) {
				last[string(key(n))] = m
			}
		}
		want, written := last[string(key(n))]
		if !written && errors.Is(err, pando.ErrNotFound) {
			continue
		}
		if err != nil || !bytes.Equal(got, value(want)) {
			t.Fatalf("key %s: %.20q, %v, want that of write %d, of %d", key(n), got, err, want, tried)
		}
	}
	whole(t, db)
}
