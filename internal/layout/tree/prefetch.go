package tree

// prefetch asks the processor for what findIn will read first of leaf i: between knowing that and reading there is enough to do for most
// of it to come from memory. Of a leaf it is the table and the part in which the key lies if keys are spread evenly, as hashes are.
func (r *root) prefetch(b *body, i int, hash uint64, key []byte) {
	deltas := b.deltasOf(i)
	for j := len(deltas) - 1; j >= 0; j-- {
		if deltas[j].digest.has(hash) {
			r.env.Store.Prefetch(deltas[j].Pointer)
			return
		}
	}
	r.env.Store.PrefetchExcerpt(b.slots[i].ptr, b.share(i, key))
}

// prefetchLeaf asks the processor for leaf i as it lies on disk and for the beginnings of its deltas, all of which will be copied soon.
func (r *root) prefetchLeaf(b *body, i int) {
	r.env.Store.PrefetchAll(b.slots[i].ptr)
	for _, d := range b.deltasOf(i) {
		r.env.Store.Prefetch(d.Pointer)
	}
}

// share is how far key lies behind the lower bound of child i, in 256ths of the way to the upper one; -1: these bounds do not tell.
func (b *body) share(i int, key []byte) int {
	if i == 0 || i >= len(b.heads) || len(key) < b.skip {
		return -1
	}
	least, most, x := b.heads[i-1], b.heads[i], head(key[b.skip:])
	step := (most - least) >> 8
	if step == 0 || x < least || x > most {
		return -1
	}
	return min(int((x-least)/step), 255)
}
