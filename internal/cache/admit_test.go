package cache

import "testing"

// When pages are replaced by others of another size, the chunks of the old ones serve the new ones, and hardly any is evicted.
func TestChunksAreRecalled(t *testing.T) {
	c, d := newCache(t, 8<<20)
	var old []Handle
	for n := range uint64(500) {
		h, err := c.Insert(content(n, 8000), 1)
		if err != nil {
			t.Fatal(err)
		}
		old = append(old, h)
	}
	for n, h := range old {
		c.Drop(h)
		d.Collect()
		if _, err := c.Insert(content(uint64(n), 11000), 1); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.Stats(); s.Evictions > 25 || s.Pages < 475 {
		t.Errorf("%d pages, %d evictions", s.Pages, s.Evictions)
	}
	if err := c.audit(); err != nil {
		t.Error(err)
	}
}

func TestAdmit(t *testing.T) {
	c, _ := newCache(t, 1<<20)
	if !c.Admit(1) {
		t.Error("an empty cache takes no page")
	}
	for n := range uint64(300) {
		if _, err := c.Insert(content(n, 8000), 1); err != nil {
			t.Fatal(err)
		}
	}
	const name = 5<<40 | 7
	for n := range admitAt - 1 {
		if c.Admit(name) {
			t.Errorf("a full cache takes a page at request %d", n+1)
		}
	}
	if !c.Admit(name) {
		t.Error("a full cache does not take a page that was asked for before")
	}
	c.Admit(name + 1<<50) // takes the place
	if c.Admit(name) {
		t.Error("the request was not forgotten")
	}
	c.Resize(2 << 20)
	if !c.Admit(9 << 40) {
		t.Error("a cache that was given room does not take a page")
	}
}
