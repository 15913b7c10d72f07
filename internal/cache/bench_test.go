package cache

import (
	"testing"

	"github.com/pandodb/pando/internal/record"
)

// BenchmarkGet is a look-up as the tree makes it, in a cache of a size that processor caches hold.
func BenchmarkGet(b *testing.B) {
	c, d := newCache(b, 1<<20)
	h, err := c.Insert(content(1, 8000), 1)
	if err != nil {
		b.Fatal(err)
	}
	p, _ := c.Get(h)
	key := p.AppendKey(nil, 5)
	hash := record.Hash(1, key)
	b.Run("handle", func(b *testing.B) {
		for b.Loop() {
			if _, ok := c.Get(h); !ok {
				b.Fatal("gone")
			}
		}
	})
	b.Run("record", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g := d.Enter()
			p, _ := c.Get(h)
			if _, ok := p.Get(hash, key); !ok {
				b.Fatal("gone")
			}
			g.Exit()
		}
	})
}

// BenchmarkInsert evicts a page for each.
func BenchmarkInsert(b *testing.B) {
	c, _ := newCache(b, 8<<20)
	raw := content(1, 8000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Insert(raw, 1); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMissing looks keys up in far more pages than processor caches hold.
func BenchmarkMissing(b *testing.B) {
	const pages = 20_000
	c, d := newCache(b, 256<<20)
	type probe struct {
		h    Handle
		key  []byte
		hash uint64
	}
	probes := make([]probe, pages)
	for i := range probes {
		h, err := c.Insert(content(uint64(i), 8000), 1)
		if err != nil {
			b.Fatal(err)
		}
		p, _ := c.Get(h)
		key := p.AppendKey(nil, i%p.Len())
		probes[i] = probe{h, key, record.Hash(1, key)}
	}
	for i := 0; b.Loop(); i++ {
		x := &probes[i*7919%pages]
		g := d.Enter()
		p, _ := c.Get(x.h)
		if _, ok := p.Get(x.hash, x.key); !ok {
			b.Fatal("gone")
		}
		g.Exit()
	}
}
