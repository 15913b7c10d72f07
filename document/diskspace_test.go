package document_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando"
	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// fillDisk inserts documents with texts of so many bytes until there is no more room, and says how many.
func fillDisk(t *testing.T, docs *document.Collection, size int) (n int) {
	t.Helper()
	rnd := rand.NewChaCha8([32]byte{1: byte(size)})
	next := func(n int) any {
		text := make([]byte, size)
		_, _ = rnd.Read(text)
		return bson.D{{Key: "n", Value: n}, {Key: "r", Value: int64(rnd.Uint64() >> 1)}, {Key: "text", Value: text}}
	}
	for list := make([]any, 100); ; n += len(list) { // many at a time, while there is room for so many
		for i := range list {
			list[i] = next(n + i)
		}
		_, err := docs.InsertMany(ctx, list, nil)
		if errors.Is(err, pando.ErrDiskFull) {
			break
		}
		must(t, err)
	}
	for ; ; n++ {
		_, err := docs.Insert(ctx, next(n))
		if errors.Is(err, pando.ErrDiskFull) {
			return n
		}
		must(t, err)
	}
}

// On a disk that is nearly full documents can be deleted, and collections, indexes and databases dropped, which makes room for others.
func TestDeletingOnANearlyFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	fs := memfs.New()
	fs.SetCapacity(48 << 20)
	fs.TellSpace()
	s := open(t, fs)
	docs := collection(t, s, "docs", nil)
	_, err := docs.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "n", Value: 1}}})
	must(t, err)
	_, err = collection(t, s, "dropped", nil).Insert(ctx, bson.M{"a": 1})
	must(t, err)
	elsewhere := s.Database("elsewhere")
	all, err := elsewhere.Collection(ctx, "all", nil)
	must(t, err)
	_, err = all.Insert(ctx, bson.M{"a": 1})
	must(t, err)
	n := fillDisk(t, docs, 900)
	must(t, collection(t, s, "dropped", nil).Drop(ctx))
	must(t, elsewhere.Drop(ctx))
	must(t, docs.DropIndex(ctx, "n_1"))
	deleted, err := docs.Delete(ctx, document.JSON(fmt.Sprintf(`{"n": {"$gte": %d}}`, n/3)), &document.DeleteOptions{Many: true})
	must(t, err)
	if deleted < int64(n/2) {
		t.Errorf("%d of %d documents deleted", deleted, n)
	}
	must(t, s.DB().Checkpoint(ctx))
	if more := fillDisk(t, docs, 900); more < n/3 {
		t.Errorf("after %d of %d documents were deleted there was room for %d", deleted, n, more)
	}
}

// full returns a collection with an index of which the disk is nearly full, and how many documents it has.
func full(t *testing.T) (docs *document.Collection, n int) {
	t.Helper()
	fs := memfs.New()
	fs.SetCapacity(smallDisk)
	fs.TellSpace()
	s, err := document.Open("db", &document.Options{
		Storage: pando.Options{FS: fs, MemoryBytes: 2 << 20, Profile: pando.Relaxed}, TTLInterval: -1, History: 1 << 20})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	docs = collection(t, s, "docs", nil)
	_, err = docs.CreateIndex(ctx, document.Index{Keys: bson.D{{Key: "r", Value: 1}}})
	must(t, err)
	return docs, fillDisk(t, docs, 200)
}

// So they can all over a collection and its index: what a delete of many replaces is not kept by its own walk.
func TestDeletingManyOnANearlyFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	docs, n := full(t)
	for rest := range 2 {
		deleted, err := docs.Delete(ctx, document.JSON(fmt.Sprintf(`{"n": {"$mod": [3, %d]}}`, rest)), &document.DeleteOptions{Many: true})
		must(t, err)
		if deleted < int64(n/3) {
			t.Errorf("%d of %d documents deleted", deleted, n)
		}
	}
	if more := fillDisk(t, docs, 200); more < n/3 {
		t.Errorf("after two thirds of %d documents were deleted there was room for %d", n, more)
	}
	if left, err := docs.Count(ctx, document.JSON(`{"n": {"$mod": [3, 2]}}`), nil); err != nil || left < int64(n/3) {
		t.Errorf("%d of %d documents are left, %v", left, n, err)
	}
}

// Where there is no memory for the keys of all that a delete finds it goes on as elsewhere, a chunk at a time.
func TestDeletingManyWithoutMemoryForKeys(t *testing.T) {
	fs := memfs.New()
	fs.TellSpace()
	s, err := document.Open("db", &document.Options{Storage: pando.Options{FS: fs, MemoryBytes: 2 << 20}, TTLInterval: -1, QueryMemoryBytes: 1 << 10})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	docs := collection(t, s, "docs", nil)
	const n = 3000
	list := make([]any, n)
	for i := range list {
		list[i] = bson.M{"n": i}
	}
	_, err = docs.InsertMany(ctx, list, nil)
	must(t, err)
	must(t, s.DB().Checkpoint(ctx))
	fs.SetCapacity(fs.Used() + 2<<20)
	fillDisk(t, collection(t, s, "other", nil), 200)
	deleted, err := docs.Delete(ctx, document.JSON(`{"n": {"$mod": [3, 0]}}`), &document.DeleteOptions{Many: true})
	left, failed := docs.Count(ctx, nil, nil)
	if err != nil || failed != nil || deleted != n/3 || left != n-n/3 {
		t.Errorf("%d deleted, %v; %d left, %v", deleted, err, left, failed)
	}
}

// And they can be made shorter, many with one call, though they get a shape that there was none of.
func TestShorteningManyOnANearlyFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and starts no goroutines: little for the race detector")
	}
	docs, n := full(t)
	r, err := docs.Update(ctx, document.JSON(`{"n": {"$mod": [2, 0]}}`), document.JSON(`{"$unset": {"text": 1}}`), &document.UpdateOptions{Many: true})
	must(t, err)
	if r.Modified < int64(n/2) {
		t.Errorf("%d of %d documents were modified", r.Modified, n)
	}
	if more := fillDisk(t, docs, 200); more < n/5 {
		t.Errorf("after half of %d documents were made shorter there was room for %d", n, more)
	}
}
