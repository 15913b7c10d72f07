//go:build linux

package device

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/pandodb/pando"
)

// A disk that others fill makes writes fail, and nothing else; when they leave room, writes go on.
func TestFullDisk(t *testing.T) {
	each(t, nil, func(t *testing.T, v *volume) {
		db, err := pando.Open(v.database(), options(pando.Relaxed))
		must(t, err)
		defer func() { db.Close() }()
		last := map[string]int{}
		n := 0
		put := func() error {
			err := db.Put(key(n), value(n))
			if err == nil {
				last[string(key(n))] = n
			}
			n++
			return err
		}
		for range *rounds {
			for range 1000 {
				must(t, put())
			}
			others := fill(t, v)
			for failed := 0; failed < 10; {
				if err := put(); err != nil {
					failed++
					if !errors.Is(err, pando.ErrDiskFull) || errors.Is(err, pando.ErrFailed) {
						t.Fatal(err)
					}
				}
			}
			same(t, db, last)
			must(t, os.Remove(others))
			for deadline := time.Now().Add(time.Minute); put() != nil; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("there is room, and writes fail")
				}
			}
		}
		must(t, db.Close())
		db, err = pando.Open(v.database(), options(pando.Relaxed))
		must(t, err)
		same(t, db, last)
		whole(t, db)
	})
}

// fill writes a file that takes all that is free.
func fill(t *testing.T, v *volume) (name string) {
	t.Helper()
	f, err := os.Create(v.dir + "/others")
	must(t, err)
	defer f.Close()
	for range 3 { // a sync may find that there is some more
		for err = nil; err == nil; {
			_, err = io.CopyN(f, zeroes{}, 4096)
		}
		_ = f.Sync()
	}
	return f.Name()
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// same compares the database with what was written.
func same(t *testing.T, db *pando.DB, last map[string]int) {
	t.Helper()
	for k, n := range last {
		if got, err := db.Get([]byte(k)); err != nil || !bytes.Equal(got, value(n)) {
			t.Fatalf("key %s: %.20q, %v, want that of write %d", k, got, err, n)
		}
	}
	if count, err := db.Count(nil, nil); err != nil || count != int64(len(last)) {
		t.Fatalf("%d records, %v, want %d", count, err, len(last))
	}
}
