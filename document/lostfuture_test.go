package document_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// After a power cut that took the end of the log, or in a backup, other changes come to have the numbers of those that are lost. A stream
// once went on behind such a change, and left out those that had come before.
func TestResumingFromALostFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := memfs.New()
		s := open(t, fs)
		c := collection(t, s, "c", nil)
		insert := func(c *document.Collection, from, to int) {
			t.Helper()
			for i := from; i < to; i++ {
				_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}})
				must(t, err)
			}
		}
		insert(c, 0, 5)
		image := fs.KillImage()
		w, err := c.OpenWatch(ctx, nil, nil)
		must(t, err)
		defer w.Close()
		known := w.ResumeToken()
		insert(c, 5, 10)
		var lost []bson.Raw
		for range 5 {
			_, token := next(t, w)
			lost = append(lost, token)
		}
		idle, err := c.OpenWatch(ctx, nil, nil)
		must(t, err)
		lost = append(lost, idle.ResumeToken())
		must(t, idle.Close())

		time.Sleep(5 * time.Second)
		after := open(t, image)
		again := collection(t, after, "c", nil)
		for _, token := range lost {
			if _, err := again.OpenWatch(ctx, nil, &document.WatchOptions{ResumeAfter: token}); document.CodeOf(err) != 286 {
				t.Errorf("resumed from a change that is not there: %v", err)
			}
		}
		insert(again, 100, 120)
		for _, token := range lost {
			if _, err := again.OpenWatch(ctx, nil, &document.WatchOptions{ResumeAfter: token}); document.CodeOf(err) != 286 {
				t.Errorf("resumed from a change in whose place there is another one: %v", err)
			}
		}
		resumed, err := again.OpenWatch(ctx, nil, &document.WatchOptions{ResumeAfter: known})
		must(t, err)
		defer resumed.Close()
		for i := 100; i < 120; i++ {
			next(t, resumed)
			if id := resumed.Current().Lookup("documentKey", "_id").AsInt64(); id != int64(i) {
				t.Errorf("the event of %d instead of %d", id, i)
			}
		}
	})
}

// Tokens of older versions say nothing of times; they are taken as they were.
func TestTokensWithoutATime(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	w, err := c.OpenWatch(ctx, nil, nil)
	must(t, err)
	defer w.Close()
	for i := range 2 {
		_, err := c.Insert(ctx, bson.D{{Key: "_id", Value: i}})
		must(t, err)
	}
	_, token := next(t, w)
	text := token.Lookup("_data").StringValue()
	old := bson.D{{Key: "_data", Value: text[:2+16]}}
	again, err := c.OpenWatch(ctx, nil, &document.WatchOptions{ResumeAfter: old})
	must(t, err)
	defer again.Close()
	next(t, again)
	if id := again.Current().Lookup("documentKey", "_id").AsInt64(); id != 1 {
		t.Errorf("resumed at %d", id)
	}
}
