package tree

import (
	"github.com/pandodb/pando/internal/cache"
	"github.com/pandodb/pando/internal/layout"
	"github.com/pandodb/pando/internal/page"
)

// cachedPage returns the page of a handle. The caller is inside an epoch section.
func cachedPage(env *layout.Environment, h uint64) (page.Page, bool) {
	return env.Cache.Get(cache.Handle(h))
}

// pinPage keeps the page of a handle in the cache until unpinPage. used tells whether others have asked for it lately.
func pinPage(env *layout.Environment, h uint64) (p page.Page, used, ok bool) {
	if h == 0 {
		return page.Page{}, false, false
	}
	guard := env.Epoch.Enter()
	used = env.Cache.Used(cache.Handle(h))
	p, ok = env.Cache.Pin(cache.Handle(h))
	guard.Exit()
	return p, used, ok
}

func unpinPage(env *layout.Environment, h uint64) { env.Cache.Unpin(cache.Handle(h)) }

func insertPage(env *layout.Environment, raw []byte, keyspace uint32) (uint64, error) {
	h, err := env.Cache.Insert(raw, keyspace)
	return uint64(h), err
}

// insertOrdered is insertPage for a page that is gone over in order.
func insertOrdered(env *layout.Environment, raw []byte) (uint64, error) {
	h, err := env.Cache.InsertOrdered(raw)
	return uint64(h), err
}

// isOrdered reports whether keys have to be searched for in the page of a handle.
func isOrdered(h uint64) bool { return cache.Handle(h).Ordered() }

// insertBuilder is insertPage for a page just built.
func insertBuilder(env *layout.Environment, b *page.Builder, keyspace uint32) uint64 {
	h, err := env.Cache.InsertBuilder(b, keyspace)
	if err != nil {
		return 0
	}
	return uint64(h)
}

// framed is how much of the cache a page of size bytes takes, none where it is too large.
func framed(env *layout.Environment, size int) int { return env.Cache.Frame(size) }

func dropPage(env *layout.Environment, h uint64) { env.Cache.Drop(cache.Handle(h)) }

// askPage asks the processor for the page of a handle, or for its beginning where the walk may not come to it.
func askPage(env *layout.Environment, h uint64, all bool) {
	switch {
	case h == 0:
	case all:
		env.Cache.Ask(cache.Handle(h))
	default:
		env.Cache.AskBegin(cache.Handle(h))
	}
}
