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

// On a disk that is nearly full documents can be deleted, and collections, indexes and databases dropped, which makes room for others.
func TestDeletingOnANearlyFullDisk(t *testing.T) {
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
	text := make([]byte, 900)
	rnd := rand.NewChaCha8([32]byte{})
	fill := func() (n int) {
		for {
			_, _ = rnd.Read(text)
			_, err := docs.Insert(ctx, bson.M{"n": n, "text": text})
			if errors.Is(err, pando.ErrDiskFull) {
				return n
			}
			must(t, err)
			n++
		}
	}
	n := fill()
	must(t, collection(t, s, "dropped", nil).Drop(ctx))
	must(t, elsewhere.Drop(ctx))
	must(t, docs.DropIndex(ctx, "n_1"))
	deleted, err := docs.Delete(ctx, document.JSON(fmt.Sprintf(`{"n": {"$gte": %d}}`, n/3)), &document.DeleteOptions{Many: true})
	must(t, err)
	if deleted < int64(n/2) {
		t.Errorf("%d of %d documents deleted", deleted, n)
	}
	must(t, s.DB().Checkpoint(ctx))
	if more := fill(); more < n/3 {
		t.Errorf("after %d of %d documents were deleted there was room for %d", deleted, n, more)
	}
}
