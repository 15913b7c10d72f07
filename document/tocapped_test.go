package document_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/pandodb/pando/document"
	"github.com/pandodb/pando/vfs/memfs"
)

// TestToCapped: a collection is copied into a capped one, or becomes one, with what it has but its indexes, and it keeps the newest
// documents for which there is room.
func TestToCapped(t *testing.T) {
	fs := memfs.New()
	s := open(t, fs)
	d := s.Database("test")
	must(t, d.Create(ctx, "c", document.JSON(`{"validator": {"n": {"$gt": 0}}, "validationLevel": "strict"}`)))
	c := d.Lookup("c")
	for i := range 40 {
		_, err := c.Insert(ctx, document.JSON(fmt.Sprintf(`{"_id": %d, "n": 1}`, i))) // 21 bytes, so 256 have room for 12
		must(t, err)
	}
	_, err := c.CreateIndex(ctx, document.Index{Keys: document.JSON(`{"n": 1}`)})
	must(t, err)
	must(t, c.CopyCapped(ctx, "copy", 10_000))
	if err := c.CopyCapped(ctx, "copy", 10_000); !errors.Is(err, document.NamespaceExists) {
		t.Errorf("to a copy that is there: %v", err)
	}
	must(t, c.MakeCapped(ctx, 200))
	if err := d.Lookup("none").MakeCapped(ctx, 200); !errors.Is(err, document.NamespaceNotFound) {
		t.Errorf("of nothing: %v", err)
	}
	var last string
	for i := 28; i < 40; i++ {
		last += fmt.Sprintf(`{"_id":%d,"n":1}`+"\n", i)
	}
	for range 2 { // and after it was opened again
		expect(t, "the newest", find(t, d.Lookup("c"), `{}`, nil), last)
		if n, err := d.Lookup("copy").Count(ctx, nil, nil); n != 40 || err != nil {
			t.Errorf("%d were copied, %v", n, err)
		}
		list, err := d.Collections(ctx)
		must(t, err)
		for i, want := range []string{
			`{"capped": true,"size": {"$numberInt":"256"},"validator": {"n": {"$gt": {"$numberInt":"0"}}},"validationLevel": "strict"}`,
			`{"capped": true,"size": {"$numberInt":"10240"},"validator": {"n": {"$gt": {"$numberInt":"0"}}},"validationLevel": "strict"}`,
		} {
			expect(t, list[i].Name, list[i].Options.String(), want)
		}
		if indexes, err := d.Lookup("c").Indexes(ctx); len(indexes) != 1 || err != nil || len(list) != 2 {
			t.Errorf("%d indexes, %v, %d collections", len(indexes), err, len(list))
		}
		must(t, s.Close())
		s = open(t, fs)
		d = s.Database("test")
	}
	_, err = d.Lookup("c").Insert(ctx, document.JSON(`{"_id": 40, "n": 1}`))
	must(t, err)
	if n, err := d.Lookup("c").Count(ctx, nil, nil); n != 12 || err != nil {
		t.Errorf("%d are left, %v", n, err)
	}
}

// TestToCappedUnderWrites: nothing that is written while a collection becomes capped is lost.
func TestToCappedUnderWrites(t *testing.T) {
	s := open(t, memfs.New())
	c := collection(t, s, "c", nil)
	const writers, each = 4, 100
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := range each {
				if _, err := c.Insert(ctx, document.JSON(fmt.Sprintf(`{"_id": "%d %d"}`, w, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		must(t, c.MakeCapped(ctx, 1<<20))
	}
	wait.Wait()
	if n, err := c.Count(ctx, nil, nil); n != writers*each || err != nil {
		t.Errorf("%d are there, %v", n, err)
	}
}
