package cache

import (
	"bytes"
	"testing"

	"github.com/pandodb/pando/internal/epoch"
	"github.com/pandodb/pando/internal/page"
)

// TestInsertBytes: bytes that are no page come back as they were, also beside pages and in memory that pages have had before.
func TestInsertBytes(t *testing.T) {
	domain := epoch.New()
	c := New(64<<20, domain)
	defer func() {
		domain.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	var b page.Builder
	for round := range 200 {
		if _, err := c.InsertBuilder(&b, 7); err != nil {
			t.Fatal(err)
		}
		want := bytes.Repeat([]byte{byte(round), 0xff, 0}, round*round%5000)
		h, err := c.InsertBytes(want)
		if err != nil {
			t.Fatal(err)
		}
		guard := domain.Enter()
		p, ok := c.Get(h)
		if !ok || !bytes.Equal(p.Raw(), want) {
			t.Fatalf("%d bytes of %d, %v", len(p.Raw()), len(want), ok)
		}
		guard.Exit()
		if c.Drop(h); round%3 == 0 {
			domain.Collect()
		}
		if _, ok := c.Get(h); ok {
			t.Fatal("they are there though they were dropped")
		}
	}
	if _, err := c.InsertBytes(make([]byte, 65<<20)); err == nil {
		t.Error("more than the cache holds")
	}
}
