package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs"
	"github.com/pandodb/pando/vfs/faultfs"
	"github.com/pandodb/pando/vfs/memfs"
)

// cuts calls look with what a power cut, or the death of the process, leaves before each call of run.
func cuts(t *testing.T, base *memfs.FS, run func(fsys *faultfs.FS) error, look func(image *memfs.FS) error) {
	t.Helper()
	ffs := faultfs.New(base)
	rng := rand.New(rand.NewPCG(*seedFlag, 9))
	var mu sync.Mutex // the background calls too
	var failed error  // the first: only the goroutine of the test may end it
	calls := 0
	ffs.OnCall(func(op faultfs.Op, name string) error {
		mu.Lock()
		defer mu.Unlock()
		if failed != nil {
			return nil
		}
		calls++
		all := images(rng.Uint64())
		policies := []memfs.Policy{all[calls%len(all)]}
		if *deep {
			policies = all
		}
		for _, p := range policies {
			if err := look(base.CrashImage(p)); err != nil {
				failed = fmt.Errorf("power cut before call %d, %v %s (%+v): %w", calls, op, name, p, err)
				return nil
			}
		}
		if err := look(base.KillImage()); err != nil {
			failed = fmt.Errorf("killed before call %d, %v %s: %w", calls, op, name, err)
		}
		return nil
	})
	if err := errors.Join(run(ffs), failed); err != nil {
		t.Fatal(err)
	}
	if err := look(base.CrashImage(memfs.Policy{})); err != nil {
		t.Fatalf("power cut after the last call: %v", err)
	}
}

// unfinished reports whether an error of Open says that there is no database, or none that is whole.
func unfinished(err error) bool {
	return errors.Is(err, pando.ErrUnfinished) || errors.Is(err, pando.ErrNotFound) || errors.Is(err, pando.ErrNotDatabase)
}

// The target of a salvage that was interrupted once opened as if it were whole.
func TestCrashDuringSalvage(t *testing.T) {
	base := memfs.New()
	db, err := pando.Open("db", options(base, pando.Durable))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(*seedFlag, 4))
	want := state{}
	for i := range 1500 {
		k, v := fmt.Sprintf("key%04d", i), value(rng, length(rng))
		want[k] = v
		if err := db.Put([]byte(k), []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole, refused := 0, 0
	run := func(fsys *faultfs.FS) error {
		o := options(nil, pando.Durable)
		o.FS = fsys
		report, err := pando.Salvage(context.Background(), "db", "target", o)
		if err == nil {
			err = report.Err()
		}
		return err
	}
	cuts(t, base, run, func(image *memfs.FS) error {
		o := options(image, pando.Durable)
		o.MustExist = true
		db, err := pando.Open("target", o)
		if err != nil {
			if refused++; !unfinished(err) {
				return err
			}
			return nil
		}
		got, err := read(db)
		if err = errors.Join(err, db.Close()); err == nil && !maps.Equal(got, want) {
			err = fmt.Errorf("it opens, with %d of %d pairs", len(got), len(want))
		}
		whole++
		return err
	})
	if whole == 0 || refused == 0 {
		t.Errorf("%d images were whole, %d were refused", whole, refused)
	}
}

// So did a store of documents whose indexes were still to be made again, which queries go by.
func TestCrashDuringSalvageOfDocuments(t *testing.T) {
	base := memfs.New()
	storage := pando.Options{FS: base, MemoryBytes: 4 << 20, Compression: pando.None}
	s, err := document.Open("db", &document.Options{Storage: storage, TTLInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Database("test").Collection(context.Background(), "c", &document.CollectionOptions{Format: document.BSON, Compression: pando.None})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.CreateIndex(context.Background(), document.Index{Keys: bson.D{{Key: "u", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	var docs []any
	for i := range 500 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "u", Value: fmt.Sprintf("unique%05d", i)}, {Key: "f", Value: fmt.Sprintf("filler%05d", i)}})
	}
	_, err = c.InsertMany(context.Background(), docs, nil)
	if err = errors.Join(err, s.DB().Compact(context.Background(), pando.CompactOptions{}), s.Close()); err != nil {
		t.Fatal(err)
	}
	if spoilText(t, base, "filler00250") == 0 {
		t.Fatal("nothing was damaged")
	}
	whole := 0
	run := func(fsys *faultfs.FS) error {
		o := storage
		o.FS = fsys
		report, err := document.Salvage(context.Background(), "db", "target", &document.Options{Storage: o})
		if err == nil && report.Err() == nil {
			err = errors.New("nothing was lost, so that no index is made again")
		}
		return err
	}
	cuts(t, base, run, func(image *memfs.FS) error {
		o := storage
		o.FS, o.MustExist = image, true
		s, err := document.Open("target", &document.Options{Storage: o, TTLInterval: -1})
		if err != nil {
			if !unfinished(err) {
				return err
			}
			return nil
		}
		whole++
		c := s.Database("test").Lookup("c")
		if c == nil {
			return errors.Join(errors.New("it opens without the collection"), s.Close())
		}
		byIndex, err := c.Count(context.Background(), document.JSON(`{"u": {"$gte": ""}}`), nil)
		all, failed := c.Count(context.Background(), nil, nil)
		if err = errors.Join(err, failed, s.Close()); err == nil && (all != byIndex || all == 0) {
			err = fmt.Errorf("it opens, with %d documents, %d by their index", all, byIndex)
		}
		return err
	})
	if whole == 0 {
		t.Error("no image was whole")
	}
}

// spoilText flips a bit in each place in the segments that holds a text.
func spoilText(t *testing.T, fsys *memfs.FS, text string) (found int) {
	t.Helper()
	names, err := fsys.List("db/segments")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		raw, err := vfs.ReadFile(fsys, "db/segments/"+name, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		f, err := fsys.OpenReadWrite("db/segments/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for at := bytes.Index(raw, []byte(text)); at >= 0; at = bytes.Index(raw, []byte(text)) {
			raw[at] ^= 1
			if _, err := f.WriteAt(raw[at:at+1], int64(at)); err != nil {
				t.Fatal(err)
			}
			found++
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return found
}
