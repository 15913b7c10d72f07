package fault

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/internal/segment"
	"github.com/pandodb/pando/vfs/memfs"
)

// chunksRun is a database with values of several chunks, and others.
type chunksRun struct {
	*testing.T
	fs   *sectors
	db   *pando.DB
	long map[string][]byte
	want map[string][]byte // the others
}

func newChunksRun(t *testing.T) *chunksRun {
	r := &chunksRun{T: t, fs: &sectors{FS: memfs.New()}, long: map[string][]byte{}, want: map[string][]byte{}}
	r.open()
	for i := range 300 {
		r.put(r.want, fmt.Sprintf("key%03d", i), bytes.Repeat(noise(fmt.Sprint(i)), 4))
	}
	return r
}

func (r *chunksRun) open() {
	r.Helper()
	var err error
	if r.db, err = pando.Open("db", &pando.Options{FS: wholly{r.fs}, MemoryBytes: 1 << 20, ValueThreshold: 300}); err != nil {
		r.Fatal(err)
	}
}

func (r *chunksRun) put(model map[string][]byte, key string, v []byte) {
	r.Helper()
	if err := r.db.Put([]byte(key), v); err != nil {
		r.Fatalf("put %s: %v", key, err)
	}
	model[key] = v
}

// putLong writes values of two chunks into a number of keyspaces, all of them at once, so that they settle together.
func (r *chunksRun) putLong(n int, spaces ...*pando.Keyspace) {
	r.Helper()
	b := r.db.NewBatch()
	defer b.Reset()
	for i := range n {
		key, v := fmt.Sprintf("long%03d", i), []byte(nil)
		for len(v) <= 1<<20 {
			v = append(v, noise(fmt.Sprint(key, len(v)))...)
		}
		for _, ks := range append(spaces, r.db.Default()) {
			if err := b.In(ks).Put([]byte(key), v); err != nil {
				r.Fatal(err)
			}
		}
		r.long[key] = v
	}
	if err := r.db.Write(b); err != nil {
		r.Fatal(err)
	}
}

func (r *chunksRun) keyspace(name string) *pando.Keyspace {
	r.Helper()
	ks, err := r.db.Keyspace(name, nil)
	if err != nil {
		r.Fatal(err)
	}
	return ks
}

func (r *chunksRun) close() {
	r.Helper()
	if err := r.db.Close(); err != nil {
		r.Error(err)
	}
}

// crash opens what a power cut leaves, and the lists of chunks are lost.
func (r *chunksRun) crash() {
	r.Helper()
	image := r.fs.CrashImage(memfs.Policy{})
	r.close()
	r.fs = &sectors{FS: image}
	r.loseLists()
	r.open()
}

func (r *chunksRun) checkpoint(when string) {
	r.Helper()
	if err := r.db.Checkpoint(ctx); err != nil {
		r.Fatalf("%s: %v", when, err)
	}
}

// outlast lets the time pass in which what cannot be read is not yet damaged, and then everything settles.
func (r *chunksRun) outlast() {
	r.Helper()
	if err := r.db.Checkpoint(ctx); !errors.Is(err, errDevice) || errors.Is(err, pando.ErrCorrupt) {
		r.Fatalf("a moment later: %v", err)
	}
	time.Sleep(time.Minute) // the worker tries again and again
	r.checkpoint("a minute later")
}

// look looks at the values: the long ones cannot be read, or all can be.
func (r *chunksRun) look(when string, lost bool) {
	r.Helper()
	for key, v := range r.want {
		if got, err := r.db.Get([]byte(key)); err != nil || !bytes.Equal(got, v) {
			r.Fatalf("%s: %s has %d bytes, %v", when, key, len(got), err)
		}
	}
	for key, v := range r.long {
		got, err := r.db.Get([]byte(key))
		if lost && !errors.Is(err, errDevice) || !lost && (err != nil || !bytes.Equal(got, v)) {
			r.Fatalf("%s: %s has %d bytes, %v", when, key, len(got), err)
		}
	}
	report, err := r.db.Check(ctx)
	if err != nil || lost != errors.Is(report.Err(), errDevice) || !lost && report.Err() != nil {
		r.Fatalf("%s: check says %v, %v", when, report.Err(), err)
	}
}

// leaveNothing deletes everything, of which nothing is left after a compaction.
func (r *chunksRun) leaveNothing() {
	r.Helper()
	if err := r.db.DeleteRange(nil, nil); err != nil {
		r.Fatal(err)
	}
	for range 2 {
		if err := r.db.Compact(ctx, pando.CompactOptions{}); err != nil {
			r.Fatal(err)
		}
	}
	if n := r.db.Metrics().LiveBytes; n > 10<<10 {
		r.Errorf("%d bytes are left", n)
	}
}

// churn overwrites most of the values, so that segments are emptied and removed.
func (r *chunksRun) churn() {
	r.Helper()
	for round := range 6 {
		for i := range 300 {
			if i%7 != 0 {
				r.put(r.want, fmt.Sprintf("key%03d", i), bytes.Repeat(noise(fmt.Sprint(round, i)), 4))
			}
		}
		r.checkpoint("churn")
	}
}

// loseLists makes the blobs unreadable that list where the chunks of a value lie.
func (r *chunksRun) loseLists() {
	fs := r.fs
	fs.fails(func(name string, from, to int64) bool {
		if !inSegment(name) || from == 0 {
			return false
		}
		f, err := fs.FS.Open(name)
		if err != nil {
			return false
		}
		defer f.Close()
		header := make([]byte, segment.HeaderSize)
		_, err = f.ReadAt(header, from)
		return err == nil && segment.Kind(header[8]) == segment.KindValueIndex
	})
}

// What lists the chunks of a long value that has not settled, and cannot be read any more, keeps nothing from settling, nor does it take
// anybody else's value along when it goes. The value is there again when the device is.
func TestLongValueWhoseChunksCannotBeFound(t *testing.T) {
	for _, end := range []string{"comes back", "is overwritten", "is overwritten when it has come back", "is deleted"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newChunksRun(t)
				defer func() { r.close() }()
				r.checkpoint("at first")
				r.putLong(1)
				r.crash()
				r.outlast()
				r.look("settled", true)
				r.churn()
				r.look("churned", true)
				r.close()
				r.open()
				r.look("opened again", true)
				if end != "is overwritten" && end != "is deleted" {
					r.fs.fails(nil)
					r.look("come back", false)
				}
				switch end {
				case "is deleted":
					if err := r.db.Delete([]byte("long000")); err != nil {
						t.Fatal(err)
					}
					delete(r.long, "long000")
					time.Sleep(time.Minute)
				case "is overwritten", "is overwritten when it has come back":
					r.put(r.want, "long000", []byte("short"))
					delete(r.long, "long000")
					time.Sleep(time.Minute)
				}
				r.checkpoint("gone")
				r.churn()
				r.look("at last", false)
				r.fs.fails(nil)
				r.look("at last", false)
				r.leaveNothing()
			})
		})
	}
}

// A value whose list of chunks cannot be read back from the moment on when it was written is there again when the device is: nothing of it
// was given up meanwhile.
func TestLongValueThatCannotBeReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newChunksRun(t)
		defer func() { r.close() }()
		r.checkpoint("at first")
		r.loseLists()
		r.putLong(1)
		r.outlast()
		r.look("settled", true)
		r.churn()
		r.fs.fails(nil)
		r.look("come back", false)
		r.leaveNothing()
	})
}

// Many long values keep everything from settling for no longer than one does, in whichever keyspace they are: those that are new, and
// those that are overwritten.
func TestManyLongValuesWhoseChunksCannotBeFound(t *testing.T) {
	for _, settled := range []bool{false, true} {
		t.Run(fmt.Sprint("settled=", settled), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newChunksRun(t)
				defer func() { r.close() }()
				other := r.keyspace("other")
				r.checkpoint("at first")
				r.putLong(4, other)
				if settled {
					r.checkpoint("before the fault")
				}
				r.crash()
				other = r.keyspace("other")
				if settled {
					for key := range r.long {
						r.put(r.want, key, []byte("short"))
						if err := other.Put([]byte(key), []byte("short")); err != nil {
							t.Fatal(err)
						}
					}
					clear(r.long)
				}
				r.outlast()
				r.look("settled", !settled)
				r.fs.fails(nil)
				r.look("come back", false)
				for key, v := range r.long {
					if got, err := other.Get([]byte(key)); err != nil || !bytes.Equal(got, v) {
						t.Errorf("%s has %d bytes, %v", key, len(got), err)
					}
				}
			})
		})
	}
}
