package document_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestADocumentIsTakenOnce: of several that find and delete or change the last document at once one gets it, and the others nothing.
func TestADocumentIsTakenOnce(t *testing.T) {
	c := collection(t, open(t, memfs.New()), "c", nil)
	for name, take := range map[string]func() (bson.Raw, *document.UpdateResult, error){
		"delete": func() (bson.Raw, *document.UpdateResult, error) {
			return c.FindAndModify(ctx, document.JSON(`{"state": "new"}`), nil, &document.ModifyOptions{Remove: true})
		},
		"change": func() (bson.Raw, *document.UpdateResult, error) {
			return c.FindAndModify(ctx, document.JSON(`{"state": "new"}`), document.JSON(`{"$set": {"state": "taken"}}`), nil)
		},
		"change by _id": func() (bson.Raw, *document.UpdateResult, error) {
			return c.FindAndModify(ctx, document.JSON(`{"_id": 1, "state": "new"}`), document.JSON(`{"$set": {"state": "taken"}}`), &document.ModifyOptions{New: true})
		},
		"delete by _id": func() (bson.Raw, *document.UpdateResult, error) {
			return c.FindAndModify(ctx, document.JSON(`{"_id": 1}`), nil, &document.ModifyOptions{Remove: true})
		},
	} {
		for range 100 {
			_, err := c.Delete(ctx, document.JSON(`{}`), &document.DeleteOptions{Many: true})
			must(t, err)
			_, err = c.Insert(ctx, document.JSON(`{"_id": 1, "state": "new"}`))
			must(t, err)
			var taken atomic.Int64
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					doc, r, err := take()
					switch {
					case err == nil && r.Matched == 1 && doc != nil:
						taken.Add(1)
					case !errors.Is(err, document.ErrNotFound) || r.Matched != 0:
						t.Errorf("%s: %s, %+v, %v", name, doc, r, err)
					}
				})
			}
			all.Wait()
			if n := taken.Load(); n != 1 {
				t.Fatalf("%s: %d took the document", name, n)
			}
		}
	}
}
