package tree

import "github.com/pandodb/pando/internal/page"

// Leaf implements layout.Root.
func (r *root) Leaf(key []byte) (page.Page, bool) {
	if r.node == nil {
		return page.Page{}, false
	}
	b, i := r.resident(key)
	if b == nil {
		return page.Page{}, false
	}
	h := b.handles[i].Load()
	if h == 0 || isOrdered(h) {
		return page.Page{}, false
	}
	return cachedPage(r.env, h)
}

// resident returns the node and the slot of the leaf in which key lies if it is there at all; nil when a node on the way is not in
// memory. The tree is not empty.
func (r *root) resident(key []byte) (*body, int) {
	n := r.node
	for {
		b := n.body.Load()
		if b == nil {
			return nil, 0
		}
		i := b.find(key)
		if b.level > 0 {
			n = b.children[i]
			continue
		}
		if !n.used.Load() {
			n.used.Store(true)
		}
		return b, i
	}
}
